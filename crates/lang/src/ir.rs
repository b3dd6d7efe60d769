//! A pipeline as the compiler sees it: tables of Funcs, stages and shared expression nodes.

use std::panic::Location;

use ahash::AHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::ids::{ExprId, FuncId, Id, IdVec, InputId, ParamId};
use crate::op::Op;
use crate::types::{Type, Value};

/// One node of an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Operands, or the indices of an access.
    #[serde(default, skip_serializing_if = "SmallVec::is_empty")]
    pub args: SmallVec<[ExprId; 3]>,
}

/// What a [`Node`] is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// The variable of this dimension of the enclosing Func.
    Var(u32),
    /// The variable of this number of the enclosing stage's reduction domain.
    RVar(u32),
    /// A scalar parameter.
    Param(ParamId),
    /// The smallest index of an input's dimension.
    InputMin(InputId, u32),
    /// The extent of an input's dimension.
    InputExtent(InputId, u32),
    /// A value of an input.
    Load(InputId),
    /// A value of a Func; of the enclosing Func itself in an update.
    Call(FuncId, u32),
    /// An operation.
    Op(Op),
}

/// Expression nodes, each distinct one held once.
///
/// Arguments always come before the nodes that use them, so a walk in order sees operands first.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    nodes: IdVec<ExprId, Node>,
    known: AHashMap<Node, ExprId>,
}

impl Exprs {
    /// The node equal to `node`, added if there is none yet.
    pub fn intern(&mut self, node: Node) -> ExprId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node, if there is one of that index.
    pub fn get(&self, id: ExprId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// All nodes in order.
    pub fn nodes(&self) -> &IdVec<ExprId, Node> {
        &self.nodes
    }

    /// Every node that `roots` are made of, operands first, each once.
    pub fn reachable(&self, roots: impl IntoIterator<Item = ExprId>) -> Vec<ExprId> {
        let mut stack: Vec<ExprId> = roots.into_iter().collect();
        let mut seen = ahash::AHashSet::new();
        while let Some(id) = stack.pop() {
            if seen.insert(id) {
                stack.extend(&self.nodes[id].args);
            }
        }
        let mut order: Vec<ExprId> = seen.into_iter().collect();
        order.sort_unstable();
        order
    }

    /// The value, if the node is a constant.
    pub fn constant(&self, id: ExprId) -> Option<Value> {
        match self.nodes[id].kind {
            NodeKind::Op(Op::Const(value)) => Some(value),
            _ => None,
        }
    }
}

impl std::ops::Index<ExprId> for Exprs {
    type Output = Node;

    fn index(&self, id: ExprId) -> &Node {
        &self.nodes[id]
    }
}

/// An input image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InputDecl {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// How many dimensions it has.
    pub dimensions: usize,
    /// The dimensions from the fastest to the slowest in memory.
    pub storage_order: Vec<usize>,
}

/// A scalar parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParamDecl {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The smallest and largest value it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(Value, Value)>,
}

/// A Func: one pure stage and any number of updates.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FuncDecl {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// The names of its dimensions.
    pub dims: Vec<String>,
    /// The types of its values.
    pub types: Vec<Type>,
    /// Its definitions: number 0 is pure, the others are updates in order.
    pub stages: Vec<Stage>,
}

/// One definition of a Func.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// Where it writes, one index a dimension.
    pub indices: Vec<ExprId>,
    /// What it writes, one expression a value; none for an undefined start.
    pub values: Vec<ExprId>,
    /// The reduction domain, the fastest variable first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain: Vec<ReductionVar>,
    /// Where in the domain it runs; everywhere if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ExprId>,
    /// Where the user wrote it.
    #[serde(skip)]
    pub place: Option<&'static Location<'static>>,
}

/// One variable of a stage's reduction domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReductionVar {
    /// Its name.
    pub name: String,
    /// The first value.
    pub min: ExprId,
    /// How many values.
    pub extent: ExprId,
}

impl Stage {
    /// The expressions evaluated at every point: indices, values and predicate, not the domain's bounds.
    pub fn roots(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.indices.iter().chain(&self.values).chain(&self.predicate).copied()
    }

    /// Whether `dimension` is pure in this stage: its variable stands at its own position on the left.
    pub fn is_pure(&self, exprs: &Exprs, dimension: usize) -> bool {
        exprs[self.indices[dimension]].kind == NodeKind::Var(dimension as u32)
    }

    /// Where the user wrote it, as `file:line:column`.
    pub(crate) fn place_text(&self) -> Option<String> {
        self.place.map(|place| format!("{}:{}:{}", place.file(), place.line(), place.column()))
    }

    /// Whether it writes at one fixed place along a dimension.
    pub fn is_fixed(&self, exprs: &Exprs, dimension: usize) -> bool {
        matches!(exprs[self.indices[dimension]].kind, NodeKind::Op(Op::Const(_)))
    }
}

impl FuncDecl {
    /// The names of its values: `out`, or `out.0` and `out.1` for a pair.
    pub fn value_names(&self) -> Vec<String> {
        match self.types.len() {
            1 => vec![self.name.clone()],
            values => (0..values).map(|value| format!("{}.{value}", self.name)).collect(),
        }
    }

    /// Bytes all values of one point take.
    pub fn bytes_per_point(&self) -> usize {
        self.types.iter().map(|ty| ty.bytes()).sum()
    }
}

/// The number of a stage, for messages and tables: `blur` for the pure one, `blur.1` for an update.
pub fn stage_name(func: &FuncDecl, stage: usize) -> String {
    match func.stages.len() {
        1 => func.name.clone(),
        _ => format!("{}.{stage}", func.name),
    }
}

/// The largest index a table may have, so that ids stay 32 bits wide.
pub(crate) const MAX_TABLE: usize = 1 << 24;

/// Whether an id points into a table of `len` entries.
pub(crate) fn within<K: Id>(id: K, len: usize) -> bool {
    id.index() < len
}
