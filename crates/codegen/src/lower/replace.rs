//! Substitutes values in statements.

use ahash::AHashMap;

use crate::ir::{Access, KernelNode, NodeId, NodeKind, Stmt};
use crate::lower::state::KernelLowering;
use crate::points::{AccessPoint, Key};

impl KernelLowering<'_> {
    /// Statements with values substituted.
    pub fn all_replaced(&mut self, stmts: &[Stmt], values: &mut AHashMap<NodeId, NodeId>) -> Vec<Stmt> {
        stmts.iter().map(|stmt| self.replaced(stmt, values)).collect()
    }

    /// A statement with values substituted.
    pub fn replaced(&mut self, stmt: &Stmt, values: &mut AHashMap<NodeId, NodeId>) -> Stmt {
        let mut new = stmt.clone();
        for operand in new.operands_mut() {
            *operand = self.replaced_value(*operand, values);
        }
        for list in new.lists_mut().into_iter().flatten() {
            *list = self.all_replaced(list, values);
        }
        if let (Some(from), Some(to)) = (written(stmt), written(&new)) {
            self.touch_replaced(from, to, values);
        }
        new
    }

    /// An expression with values substituted. Memoises its results in `values`.
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

    /// Records the points of an access for the access that replaces it: coordinates that were loaded are in registers
    /// too.
    fn touch_replaced(&mut self, from: Key, to: Key, values: &mut AHashMap<NodeId, NodeId>) {
        let Some(points) = &self.points else { return };
        let (places, vectors) = (points.places(from).to_vec(), points.vectors(from).to_vec());
        for place in places {
            let AccessPoint { at, stage } = self.replaced_place(&place, values);
            self.touch(to, &at, stage);
        }
        for elements in vectors {
            let elements: Vec<AccessPoint> =
                elements.iter().map(|place| self.replaced_place(place, values)).collect();
            self.points.iter_mut().for_each(|points| points.add_vector(to, elements.clone()));
        }
    }

    fn replaced_place(&mut self, place: &AccessPoint, values: &mut AHashMap<NodeId, NodeId>) -> AccessPoint {
        let at = place.at.iter().map(|id| self.replaced_value(*id, values)).collect();
        AccessPoint { at, stage: place.stage }
    }
}

/// The access by which a statement writes.
fn written(stmt: &Stmt) -> Option<Key> {
    let Access { array, index, .. } = stmt.effects().writes?;
    Some(Key { array, index, value: stmt.operands().get(1).copied() })
}
