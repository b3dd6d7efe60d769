//! Nodes, stages and edges.

use warploom_lang::{FuncId, Id, IdVec, InputId, Pipeline, Type};

use crate::access::{Access, AccessMap, Load};
use crate::features::Features;
use crate::ids::{EdgeId, NodeId, StageId};
use crate::node_set::NodeSet;

/// A pipeline as the scheduler sees it. It holds no sizes.
#[derive(Clone, Debug)]
pub struct Dag {
    pub(crate) name: String,
    pub(crate) inputs: usize,
    pub(crate) nodes: IdVec<NodeId, Node>,
    pub(crate) stages: IdVec<StageId, Stage>,
    pub(crate) edges: IdVec<EdgeId, Edge>,
}

/// What a [`Node`] stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Source {
    /// An input.
    Input(InputId),
    /// A Func.
    Func(FuncId),
}

/// An input or a Func. Inputs have no stages and are never scheduled, but can be staged.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it stands for.
    pub source: Source,
    /// Its name, unique in the pipeline.
    pub name: String,
    /// The names of its dimensions: `d0`, `d1`, ... for an input.
    pub dims: Vec<String>,
    /// The dimensions from the fastest to the slowest in memory.
    pub storage_order: Vec<usize>,
    /// The types of its values.
    pub types: Vec<Type>,
    /// Bytes all values of one point take.
    pub bytes_per_point: usize,
    /// Whether the pipeline was asked for it.
    pub is_output: bool,
    /// Whether its only definition is one access at its own variables: a copy under another name.
    pub is_wrapper: bool,
    /// Whether it has no updates and reads everything at exactly its own variables. An input reads
    /// nothing, and so is pointwise.
    pub is_pointwise: bool,
    /// Whether it does nothing but move the indices of one access inside, each by itself: its only
    /// definition is that access, or selects between it and values that read nothing.
    pub is_boundary_condition: bool,
    /// Its stages in order; none for an input.
    pub stages: Vec<StageId>,
    /// The edges to the stages that read it.
    pub consumers: Vec<EdgeId>,
}

impl Node {
    /// Whether it is an input.
    pub fn is_input(&self) -> bool {
        matches!(self.source, Source::Input(_))
    }

    /// Whether it has updates.
    pub fn has_updates(&self) -> bool {
        self.stages.len() > 1
    }
}

/// What a loop runs over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum LoopKind {
    /// This dimension of the Func.
    Pure(usize),
    /// The variable of this number of the reduction domain.
    Reduction(usize),
}

/// A loop of a stage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loop {
    /// The name of its variable, unique in the stage.
    pub name: String,
    /// What it runs over.
    pub kind: LoopKind,
}

/// One definition of a Func.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The node it belongs to.
    pub node: NodeId,
    /// The Func it belongs to.
    pub func: FuncId,
    /// 0 for the pure definition, then the updates.
    pub number: usize,
    /// The name schedules use: `blur`, or `blur.1` where there are updates.
    pub name: String,
    /// The loops, innermost first: the reduction variables, the first (fastest) one innermost, then the
    /// pure dimensions, the fastest in memory innermost. A dimension that the stage writes at anything but
    /// its own variable has no loop.
    pub loops: Vec<Loop>,
    /// Everything it reads, each distinct access once.
    pub accesses: Vec<Access>,
    /// Where it writes.
    pub store: AccessMap,
    /// How many values it writes at a point; 0 for an undefined start.
    pub values: usize,
    /// Whether it runs only where a condition holds.
    pub has_predicate: bool,
    /// What it does at a point.
    pub features: Features,
    /// The Strahler number of the definition. See [`branching`](crate::branching).
    pub branching: u32,
    /// The edges from the nodes it reads, producers in order.
    pub producers: Vec<EdgeId>,
    /// Every node it depends on, directly or not. See [`Stage::is_downstream_of`].
    pub dependencies: NodeSet,
}

impl Stage {
    /// Whether `node` must be there before this stage can be complete. An update is downstream of its own
    /// Func, whose earlier stages come first.
    pub fn is_downstream_of(&self, node: NodeId) -> bool {
        self.dependencies.contains(node)
    }

    /// Whether it is an update.
    pub fn is_update(&self) -> bool {
        self.number > 0
    }

    /// The names of its loops, innermost first.
    pub(crate) fn loop_names(&self) -> Vec<&str> {
        self.loops.iter().map(|l| l.name.as_str()).collect()
    }
}

/// That a stage reads a node. There is one edge for a node and a stage, and none from a Func to itself.
#[derive(Clone, Debug)]
pub struct Edge {
    /// What is read.
    pub producer: NodeId,
    /// What reads it.
    pub consumer: StageId,
    /// Where, accesses that move alike together.
    pub loads: Vec<Load>,
    /// How many distinct accesses there are: common subexpressions count once, the values of a Func of
    /// several values each for itself.
    pub calls: u64,
}

impl Dag {
    /// The graph of a pipeline.
    pub fn new(pipeline: &Pipeline) -> Dag {
        crate::build::build(pipeline)
    }

    /// The pipeline's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Inputs, then Funcs, producers before their consumers.
    pub fn nodes(&self) -> &IdVec<NodeId, Node> {
        &self.nodes
    }

    /// All stages, in the order of the nodes.
    pub fn stages(&self) -> &IdVec<StageId, Stage> {
        &self.stages
    }

    /// All edges, in the order of the consumers.
    pub fn edges(&self) -> &IdVec<EdgeId, Edge> {
        &self.edges
    }

    /// The nodes with consumers before their producers, the order of decisions.
    pub fn consumers_first(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        self.nodes.keys().rev()
    }

    /// The node of a Func.
    pub fn func_node(&self, func: FuncId) -> NodeId {
        NodeId::new(self.inputs + func.index())
    }

    /// The node of an input.
    pub fn input_node(&self, input: InputId) -> NodeId {
        NodeId::new(input.index())
    }

    /// The node of this name.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// The outputs, in the order of the nodes.
    pub fn outputs(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter(|(_, node)| node.is_output).map(|(id, _)| id)
    }

    /// The edge from a node to a stage.
    pub fn edge_between(&self, producer: NodeId, consumer: StageId) -> Option<EdgeId> {
        let mut edges = self.stages[consumer].producers.iter().copied();
        edges.find(|edge| self.edges[*edge].producer == producer)
    }
}
