//! Folds expressions that rewrites make constant.

use crate::ids::ExprId;
use crate::ir::{Exprs, Node, NodeKind};
use crate::op::Op;
use crate::types::Value;

impl Exprs {
    /// A constant.
    pub(crate) fn constant_node(&mut self, value: Value) -> ExprId {
        let kind = NodeKind::Op(Op::Const(value));
        self.intern(Node { kind, ty: value.ty(), args: Default::default() })
    }
}

/// A node with known operands: the value of an operation on constants or of an element of a table, the chosen
/// side of a `select`, otherwise the node itself.
pub(super) fn folded(exprs: &mut Exprs, node: Node) -> ExprId {
    let operands: Option<Vec<Value>> = node.args.iter().map(|arg| exprs.constant(*arg)).collect();
    let value = match (node.kind, operands) {
        (NodeKind::Op(op), Some(operands)) => Some(op.eval(&operands)),
        (NodeKind::Table(table), Some(operands)) => {
            exprs.tables()[table].value(operands.into_iter().map(|index| index.as_int().unwrap_or(-1)))
        }
        (NodeKind::Op(Op::Select), None) => {
            if let Some(condition) = exprs.constant(node.args[0]) {
                return if condition.bits() != 0 { node.args[1] } else { node.args[2] };
            }
            None
        }
        _ => None,
    };
    match value {
        Some(value) => exprs.constant_node(value),
        None => exprs.intern(node),
    }
}
