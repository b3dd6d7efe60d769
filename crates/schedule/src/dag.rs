//! The dependence graph of a pipeline: nodes, stages and edges.

pub(crate) mod access;
mod build;
pub(crate) mod derivative;
mod graphviz;
mod shape;
mod text;

use warploom_lang::{FuncId, Id, IdVec, InputId, Pipeline, Type};

use crate::dag::access::{Access, AccessMap, Load};
use crate::id_set::NodeSet;
use crate::ids::{EdgeId, NodeId, StageId};

/// The scheduler's view of a pipeline. It holds no sizes.
#[derive(Clone, Debug)]
pub struct Dag {
    pub(crate) name: String,
    pub(crate) inputs: usize,
    pub(crate) nodes: IdVec<NodeId, Node>,
    pub(crate) stages: IdVec<StageId, Stage>,
    pub(crate) edges: IdVec<EdgeId, Edge>,
}

/// A Func or an input: what a [`Node`] represents, a stage reads or an array holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Source {
    /// A Func of the pipeline, by its id.
    Func(FuncId),
    /// An input of the pipeline, by its id.
    Input(InputId),
}

impl Source {
    /// The Func, if it is one.
    pub fn func(self) -> Option<FuncId> {
        match self {
            Source::Func(func) => Some(func),
            Source::Input(_) => None,
        }
    }
}

/// An input or a Func. Inputs have no stages and are never scheduled, but they can be staged.
#[derive(Clone, Debug)]
pub struct Node {
    /// The input or Func that the node represents.
    pub source: Source,
    /// The name of the input or Func, unique in the pipeline.
    pub name: String,
    /// The names of the dimensions. The dimensions of an input are called `d0`, `d1`, ...
    pub dims: Vec<String>,
    /// The dimensions, from the fastest to the slowest in memory.
    pub storage_order: Vec<usize>,
    /// The type of each value; a Func can have several.
    pub types: Vec<Type>,
    /// The bytes of one point, over all values.
    pub bytes_per_point: usize,
    /// Whether the node is an output of the pipeline.
    pub is_output: bool,
    /// Whether the only definition is a single access at the Func's own variables: a copy under another
    /// name.
    pub is_wrapper: bool,
    /// Whether the node has no updates and reads everything at exactly its own variables. An input
    /// reads nothing, so it is pointwise.
    pub is_pointwise: bool,
    /// Whether the Func only moves the indices of a single access in-bounds, each index on its own. Its
    /// only definition is that access, or selects between the access and values that read nothing.
    pub is_boundary_condition: bool,
    /// The stages in order; empty for an input.
    pub stages: Vec<StageId>,
    /// The edges to the stages that read the node.
    pub consumers: Vec<EdgeId>,
}

impl Node {
    /// Whether the node is an input of the pipeline.
    pub fn is_input(&self) -> bool {
        matches!(self.source, Source::Input(_))
    }

    /// Whether the Func has update definitions. False for an input.
    pub fn has_updates(&self) -> bool {
        self.stages.len() > 1
    }
}

/// The kind of a loop: a dimension or a reduction variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum LoopKind {
    /// The dimension of the Func with this number.
    Pure(usize),
    /// The variable of the reduction domain with this number.
    Reduction(usize),
}

/// A loop of a stage, over one variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Loop {
    /// The name of the loop variable, unique in the stage.
    pub name: String,
    /// Whether the loop runs over a dimension or a reduction variable, and which one.
    pub kind: LoopKind,
}

/// One definition of a Func.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The node of the stage's Func.
    pub node: NodeId,
    /// The Func that the stage defines.
    pub func: FuncId,
    /// 0 for the pure definition, then 1, 2, ... for the updates.
    pub number: usize,
    /// The name that schedules use: `blur`, or `blur.1` if the Func has updates.
    pub name: String,
    /// The loops, innermost first: the reduction variables, starting with the first (fastest), then the
    /// pure dimensions, starting with the fastest in memory. A dimension that the stage does not write
    /// at its own variable has no loop.
    pub loops: Vec<Loop>,
    /// All reads, each distinct access once.
    pub accesses: Vec<Access>,
    /// The map of the indices that the stage writes.
    pub store: AccessMap,
    /// The number of values that the stage writes per point; 0 for an undefined initial value.
    pub values: usize,
    /// Whether the stage runs only where a condition holds.
    pub has_predicate: bool,
    /// The Strahler number of the definition. See [`branching`](crate::branching).
    pub branching: u32,
    /// The edges from the nodes that the stage reads, in producer order.
    pub producers: Vec<EdgeId>,
    /// All nodes that the stage depends on, directly or indirectly. See [`Stage::is_downstream_of`].
    pub dependencies: NodeSet,
}

impl Stage {
    /// Whether the stage needs `node`, directly or indirectly. An update is downstream of its own Func,
    /// because the earlier stages of the Func come first.
    pub fn is_downstream_of(&self, node: NodeId) -> bool {
        self.dependencies.contains(node)
    }

    /// Whether the stage is an update definition.
    pub fn is_update(&self) -> bool {
        self.number > 0
    }

    pub(crate) fn loop_names(&self) -> Vec<&str> {
        self.loops.iter().map(|l| l.name.as_str()).collect()
    }
}

/// A dependence: the consumer stage reads the producer node. There is at most one edge per pair of node
/// and stage, and no edge from a Func to itself.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The node that is read.
    pub producer: NodeId,
    /// The stage that reads it.
    pub consumer: StageId,
    /// The accesses, grouped by how they move.
    pub loads: Vec<Load>,
    /// The number of distinct accesses. Common subexpressions count once; each value of a Func with
    /// several values counts separately.
    pub calls: u64,
}

impl Dag {
    /// Builds the graph of a pipeline.
    pub fn new(pipeline: &Pipeline) -> Dag {
        build::build(pipeline)
    }

    /// The name of the pipeline.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All nodes: inputs, then Funcs, with producers before their consumers.
    pub fn nodes(&self) -> &IdVec<NodeId, Node> {
        &self.nodes
    }

    /// All stages, in node order.
    pub fn stages(&self) -> &IdVec<StageId, Stage> {
        &self.stages
    }

    /// All edges, in consumer order.
    pub fn edges(&self) -> &IdVec<EdgeId, Edge> {
        &self.edges
    }

    /// The nodes with consumers before their producers, which is the order of scheduling decisions.
    pub fn consumers_first(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        self.nodes.keys().rev()
    }

    /// The node that represents a Func.
    pub fn func_node(&self, func: FuncId) -> NodeId {
        NodeId::new(self.inputs + func.index())
    }

    /// The node that represents an input.
    pub fn input_node(&self, input: InputId) -> NodeId {
        NodeId::new(input.index())
    }

    /// The node with this name, if there is one.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// The outputs of the pipeline, in node order.
    pub fn outputs(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().filter(|(_, node)| node.is_output).map(|(id, _)| id)
    }

    /// The edge from a node to a stage, if the stage reads the node.
    pub fn edge_between(&self, producer: NodeId, consumer: StageId) -> Option<EdgeId> {
        let mut edges = self.stages[consumer].producers.iter().copied();
        edges.find(|edge| self.edges[*edge].producer == producer)
    }
}
