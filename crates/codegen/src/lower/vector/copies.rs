//! Asynchronous copies by vectors.

use ahash::AHashMap;

use super::Unrolled;
use crate::ir::{ArrayId, NodeId, NodeKind, Stmt};
use crate::lower::nesting::Nesting;
use crate::lower::state::KernelLowering;
use crate::points::{AccessPoint, Key};

/// A copy in each iteration of a loop.
struct Copy {
    /// The shared array, and the index in it.
    to: (ArrayId, NodeId),
    /// The buffer, and the index in it.
    from: (ArrayId, NodeId),
    /// The load from the buffer.
    value: NodeId,
}

impl KernelLowering<'_> {
    /// A loop of asynchronous copies, with vectors after it for those that can be vectors.
    pub(super) fn copy_loop(&mut self, around: &Unrolled, body: Vec<Stmt>) -> Vec<Stmt> {
        let (mut inner, mut vectors) = (Vec::new(), Vec::new());
        for stmt in body {
            match self.copy_of(&stmt).and_then(|copy| self.copied_vectors(around, &copy)) {
                Some(made) => vectors.extend(made),
                None => inner.push(stmt),
            }
        }
        if !inner.iter().all(|stmt| matches!(stmt, Stmt::Let(..))) {
            let (var, count) = (around.var, around.count);
            vectors.insert(0, Stmt::For { var, count, limit: None, unrolled: true, body: inner });
        }
        vectors
    }

    fn copy_of(&self, stmt: &Stmt) -> Option<Copy> {
        let Stmt::Copy { array, index, value } = *stmt else { return None };
        let load = &self.builder.exprs[value];
        match load.kind {
            NodeKind::Load(from) => Some(Copy { to: (array, index), from: (from, load.args[0]), value }),
            _ => None,
        }
    }

    /// The vectors of a copy, as wide as both sides allow.
    fn copied_vectors(&mut self, around: &Unrolled, copy: &Copy) -> Option<Vec<Stmt>> {
        let Copy { to: (to, at), from: (from, index), .. } = *copy;
        let width = self.width(around, to, at)?.min(self.width(around, from, index)?);
        let mut nesting = Nesting::default();
        let start = self.starts(&mut nesting, around, width);
        let [at, index] = [at, index].map(|index| {
            let first = self.builder.sub(index, around.step);
            self.builder.add(first, start)
        });
        self.touch_vector(around, copy, (at, index), (start, width));
        let vector = Stmt::Vector { to, at, from, index, width };
        Some(nesting.around(&mut self.builder, vec![vector]))
    }

    /// Records the points of all elements of a vector, if requested.
    fn touch_vector(
        &mut self,
        around: &Unrolled,
        copy: &Copy,
        (at, index): (NodeId, NodeId),
        (start, width): (NodeId, u32),
    ) {
        let (to, from) = (copy.to, copy.from);
        let sides = [
            (
                Key { array: to.0, index: to.1, value: Some(copy.value) },
                Key { array: to.0, index: at, value: Some(index) },
            ),
            (Key { array: from.0, index: from.1, value: None }, Key { array: from.0, index, value: None }),
        ];
        for (element, vector) in sides {
            let places = self.points.as_ref().map_or_else(Vec::new, |points| points.places(element).to_vec());
            for place in places {
                let each = (0..width).map(|offset| {
                    let step = self.builder.offset(start, offset.into());
                    let mut values = AHashMap::from([(around.step, step)]);
                    let at = place.at.iter().map(|at| self.replaced_value(*at, &mut values)).collect();
                    AccessPoint { at, stage: place.stage }
                });
                let each: Vec<AccessPoint> = each.collect();
                self.points.iter_mut().for_each(|points| points.add_vector(vector, each.clone()));
            }
        }
    }
}
