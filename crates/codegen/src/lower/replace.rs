//! Statements with other values in place of some.

use ahash::AHashMap;

use crate::ir::{ArrayId, KernelNode, NodeId, NodeKind, Stmt};
use crate::lower::state::KernelLowering;
use crate::points::{Key, Place};

impl KernelLowering<'_> {
    /// Statements with other values in place of some.
    pub fn all_replaced(&mut self, stmts: &[Stmt], values: &mut AHashMap<NodeId, NodeId>) -> Vec<Stmt> {
        stmts.iter().map(|stmt| self.replaced(stmt, values)).collect()
    }

    /// A statement with other values in place of some.
    pub fn replaced(&mut self, stmt: &Stmt, values: &mut AHashMap<NodeId, NodeId>) -> Stmt {
        match *stmt {
            Stmt::Let(var, value) => Stmt::Let(var, self.replaced_value(value, values)),
            Stmt::Store { array, index, value } => {
                let (index, value) = self.replaced_write(array, index, value, values);
                Stmt::Store { array, index, value }
            }
            Stmt::Atomic { op, array, index, value } => {
                let (index, value) = self.replaced_write(array, index, value, values);
                Stmt::Atomic { op, array, index, value }
            }
            Stmt::For { var, count, limit, unrolled, ref body } => {
                Stmt::For { var, count, limit, unrolled, body: self.all_replaced(body, values) }
            }
            Stmt::If { condition, ref body, ref otherwise } => {
                let condition = self.replaced_value(condition, values);
                let (body, otherwise) =
                    (self.all_replaced(body, values), self.all_replaced(otherwise, values));
                Stmt::If { condition, body, otherwise }
            }
            ref other => other.clone(),
        }
    }

    /// The index and the value of a write with other values in place of some.
    fn replaced_write(
        &mut self,
        array: ArrayId,
        index: NodeId,
        value: NodeId,
        values: &mut AHashMap<NodeId, NodeId>,
    ) -> (NodeId, NodeId) {
        let (to, new) = (self.replaced_value(index, values), self.replaced_value(value, values));
        let key = |index: NodeId, value: NodeId| Key { array, index, value: Some(value) };
        self.touch_replaced(key(index, value), key(to, new), values);
        (to, new)
    }

    /// An expression with other values in place of some. Keeps what it finds.
    pub fn replaced_value(&mut self, root: NodeId, values: &mut AHashMap<NodeId, NodeId>) -> NodeId {
        for id in self.builder.exprs.reachable([root]) {
            if values.contains_key(&id) {
                continue;
            }
            let node = self.builder.exprs[id].clone();
            let args = node.args.iter().map(|arg| values[arg]).collect();
            let new = self.builder.exprs.intern(KernelNode { args, ..node.clone() });
            values.insert(id, new);
            if let NodeKind::Load(array) = node.kind {
                let key = |load: &KernelNode| Key { array, index: load.args[0], value: None };
                let to = key(&self.builder.exprs[new]);
                self.touch_replaced(key(&node), to, values);
            }
        }
        values[&root]
    }

    /// Keeps the points of an access for the one that replaces it: where a loaded value is a coordinate, it is in registers too.
    fn touch_replaced(&mut self, from: Key, to: Key, values: &mut AHashMap<NodeId, NodeId>) {
        for Place { at, stage } in self.touched(from) {
            let at: Vec<NodeId> = at.iter().map(|id| self.replaced_value(*id, values)).collect();
            self.touch(to, &at, stage);
        }
    }
}
