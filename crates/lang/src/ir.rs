//! The intermediate representation of a pipeline: tables of Funcs, stages and shared expression
//! nodes.

use std::panic::Location;

use ahash::AHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::ids::{ExprId, FuncId, Id, IdVec, InputId, ParamId, TableId};
use crate::op::Op;
pub use crate::table::TableDecl;
use crate::types::{Type, Value};

/// One node of an expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Node {
    /// The operation or access that the node performs.
    pub kind: NodeKind,
    /// The type of the node's value.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The operands of an operation, or the indices of an access.
    #[serde(default, skip_serializing_if = "SmallVec::is_empty")]
    pub args: SmallVec<[ExprId; 3]>,
}

/// The operation or access that a [`Node`] performs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// The variable of a dimension of the enclosing Func.
    Var(u32),
    /// A variable of the enclosing stage's reduction domain, by number.
    RVar(u32),
    /// The value of a scalar parameter.
    Param(ParamId),
    /// The smallest index of an input's dimension.
    InputMin(InputId, u32),
    /// The extent of an input's dimension.
    InputExtent(InputId, u32),
    /// A load from an input; the arguments are the indices.
    Load(InputId),
    /// A read of a Func's value, by number; the arguments are the indices. In an update, it may be
    /// the enclosing Func.
    Call(FuncId, u32),
    /// An element of a constant table; the arguments are the indices.
    Table(TableId),
    /// An operation on the arguments.
    Op(Op),
}

/// Hash-consed expression nodes: each distinct node is stored once. The tables that they read come
/// with them.
///
/// Arguments always come before the nodes that use them, so a walk in order sees operands first.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    tables: IdVec<TableId, TableDecl>,
    nodes: IdVec<ExprId, Node>,
    known: AHashMap<Node, ExprId>,
}

impl Exprs {
    /// No nodes yet, with these tables.
    pub(crate) fn with_tables(tables: IdVec<TableId, TableDecl>) -> Exprs {
        Exprs { tables, ..Exprs::default() }
    }

    /// The tables that nodes read.
    pub fn tables(&self) -> &IdVec<TableId, TableDecl> {
        &self.tables
    }

    /// The id of the table equal to `table`; adds the table if it is new.
    pub(crate) fn intern_table(&mut self, table: &TableDecl) -> TableId {
        let known = self.tables.iter().find(|(_, known)| *known == table).map(|(id, _)| id);
        known.unwrap_or_else(|| self.tables.push(table.clone()))
    }

    /// The id of the node equal to `node`; adds the node if it is new.
    pub fn intern(&mut self, node: Node) -> ExprId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node with this id; `None` if the id is out of range.
    pub fn get(&self, id: ExprId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// All nodes, operands before their users.
    pub fn nodes(&self) -> &IdVec<ExprId, Node> {
        &self.nodes
    }

    /// Every node that `roots` depend on, each once, operands first.
    pub fn reachable(&self, roots: impl IntoIterator<Item = ExprId>) -> Vec<ExprId> {
        const WORD: usize = u64::BITS as usize;
        let mut stack: Vec<ExprId> = roots.into_iter().collect();
        // One bit per node. Operands come before their users, so no node has a larger id than the last root.
        let mut seen = vec![0u64; stack.iter().max().map_or(0, |last| last.index() / WORD + 1)];
        while let Some(id) = stack.pop() {
            let (word, bit) = (&mut seen[id.index() / WORD], 1 << (id.index() % WORD));
            if *word & bit == 0 {
                *word |= bit;
                stack.extend(&self.nodes[id].args);
            }
        }
        let mut order = Vec::new();
        for (number, mut left) in seen.into_iter().enumerate() {
            while left != 0 {
                order.push(ExprId::new(number * WORD + left.trailing_zeros() as usize));
                left &= left - 1;
            }
        }
        order
    }

    /// Whether some expressions read a Func.
    pub fn reads(&self, func: FuncId, roots: impl IntoIterator<Item = ExprId>) -> bool {
        let mut nodes = self.reachable(roots).into_iter().map(|id| self.nodes[id].kind);
        nodes.any(|kind| matches!(kind, NodeKind::Call(read, _) if read == func))
    }

    /// The value of a constant node; `None` for other nodes.
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

/// The declaration of an input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InputDecl {
    /// The name under which a caller supplies it; unique in the pipeline.
    pub name: String,
    /// The type of its elements.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The number of dimensions.
    pub dimensions: usize,
    /// The dimensions from the fastest to the slowest in memory: a permutation of `0..dimensions`.
    pub storage_order: Vec<usize>,
}

/// The declaration of a scalar parameter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParamDecl {
    /// The name under which a caller supplies it; unique in the pipeline.
    pub name: String,
    /// The type of its value.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The smallest and largest allowed value; `None` if any value is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(Value, Value)>,
    /// The value unless a caller gives another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl ParamDecl {
    /// The value unless a caller gives another: the default, or the middle of the range. `None` if it has neither.
    pub fn usual(&self) -> Option<Value> {
        let middle = |(low, high): (Value, Value)| {
            let middle = low.as_f64() / 2.0 + high.as_f64() / 2.0;
            Value::from_number(self.ty, if self.ty.is_float() { middle } else { middle.floor() })
        };
        self.default.or_else(|| self.range.and_then(middle))
    }
}

/// A Func: one pure stage and any number of updates.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FuncDecl {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// The names of its dimensions, which schedules use as loop names.
    pub dims: Vec<String>,
    /// The type of each value; one entry unless the Func has several values.
    pub types: Vec<Type>,
    /// Its definitions: stage 0 is pure, the others are updates in order.
    pub stages: Vec<Stage>,
    /// The dimensions from the fastest to the slowest in memory, if that is not their own order: see
    /// [`Func::stored`](crate::Func::stored).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Vec<usize>>,
}

/// One definition of a Func.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// Where it writes: one index per dimension.
    pub indices: Vec<ExprId>,
    /// The values to write: one expression per value; empty for an undefined start.
    pub values: Vec<ExprId>,
    /// The reduction domain, the fastest variable first; empty for a pure definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain: Vec<ReductionVar>,
    /// The points of the domain at which it runs; `None` means all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<ExprId>,
    /// Whether the author allows the update to be computed in another order, as if numbers were real:
    /// see [`Func::reassociate`](crate::Func::reassociate).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reassociate: bool,
    /// The source location; `None` for pipelines read from files.
    #[serde(skip)]
    pub place: Option<&'static Location<'static>>,
}

/// A reference to one definition of a Func.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StageRef {
    /// The Func that the stage defines.
    pub func: FuncId,
    /// The number of the definition; 0 is the pure one.
    pub stage: usize,
}

/// One variable of a stage's reduction domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReductionVar {
    /// The name, which schedules use as a loop name.
    pub name: String,
    /// The first value, as an expression.
    pub min: ExprId,
    /// The number of values, as an expression.
    pub extent: ExprId,
}

impl Stage {
    /// A pure definition.
    pub(crate) fn pure(
        indices: Vec<ExprId>,
        values: Vec<ExprId>,
        place: Option<&'static Location<'static>>,
    ) -> Stage {
        Stage { indices, values, domain: Vec::new(), predicate: None, reassociate: false, place }
    }

    /// The expressions evaluated at every point: indices, values and predicate, not the domain's bounds.
    pub fn roots(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.indices.iter().chain(&self.values).chain(&self.predicate).copied()
    }

    /// The expressions evaluated at every point, and the domain's bounds.
    pub fn all_roots(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.roots().chain(self.domain.iter().flat_map(|var| [var.min, var.extent]))
    }

    /// Whether `dimension` is pure in this stage: its variable appears at its own position on the
    /// left-hand side.
    pub fn is_pure(&self, exprs: &Exprs, dimension: usize) -> bool {
        exprs[self.indices[dimension]].kind == NodeKind::Var(dimension as u32)
    }

    /// The source location, as `file:line:column`.
    pub(crate) fn place_text(&self) -> Option<String> {
        self.place.map(|place| format!("{}:{}:{}", place.file(), place.line(), place.column()))
    }

    /// Whether the stage writes at a constant index along a dimension.
    pub fn is_fixed(&self, exprs: &Exprs, dimension: usize) -> bool {
        matches!(exprs[self.indices[dimension]].kind, NodeKind::Op(Op::Const(_)))
    }
}

impl FuncDecl {
    /// The dimensions from the fastest to the slowest in memory.
    pub fn storage_order(&self) -> Vec<usize> {
        self.stored.clone().unwrap_or_else(|| (0..self.dims.len()).collect())
    }

    /// The names of its values: `out`, or `out.0` and `out.1` for a pair.
    pub fn value_names(&self) -> Vec<String> {
        match self.types.len() {
            1 => vec![self.name.clone()],
            values => (0..values).map(|value| format!("{}.{value}", self.name)).collect(),
        }
    }

    /// The size of all values of one point, in bytes.
    pub fn bytes_per_point(&self) -> usize {
        self.types.iter().map(|ty| ty.bytes()).sum()
    }
}

/// The name of a stage in messages and tables: `blur` if the Func has one stage, otherwise `blur.0`
/// for the pure one and `blur.1` for the first update.
pub fn stage_name(func: &FuncDecl, stage: usize) -> String {
    match func.stages.len() {
        1 => func.name.clone(),
        _ => format!("{}.{stage}", func.name),
    }
}

/// The name of the copy of an input that a schedule makes, in schedules, messages and tables: `input.stage`.
pub fn copy_name(input: &str) -> String {
    format!("{input}.stage")
}

/// The maximum number of entries in a table. Ids fit in 32 bits.
pub(crate) const MAX_TABLE: usize = 1 << 24;

/// Whether an id points into a table of `len` entries.
pub(crate) fn within<K: Id>(id: K, len: usize) -> bool {
    id.index() < len
}
