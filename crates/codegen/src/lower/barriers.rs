//! Barriers between the nests of a block: where one touches shared memory that another wrote, or writes what
//! another touched, since the last barrier.

use ahash::AHashSet;
use warploom_lang::IdVec;

use crate::ir::{Array, ArrayId, KernelExprs, NodeId, NodeKind, Space, Stmt};

/// Shared arrays that statements touch.
#[derive(Default)]
struct Touched {
    read: AHashSet<ArrayId>,
    written: AHashSet<ArrayId>,
}

/// The segments one after the other, with barriers where they are needed.
pub(crate) fn with_barriers(
    segments: Vec<Vec<Stmt>>,
    exprs: &KernelExprs,
    arrays: &IdVec<ArrayId, Array>,
) -> Vec<Stmt> {
    let mut body = Vec::new();
    let mut since = Touched::default();
    for segment in segments {
        let mut own = Touched::default();
        own.visit(&segment, exprs, arrays);
        let reads_written = !own.read.is_disjoint(&since.written);
        let overwrites = !own.written.is_disjoint(&since.read) || !own.written.is_disjoint(&since.written);
        if reads_written || overwrites {
            body.push(Stmt::Barrier);
            since = Touched::default();
        }
        since.read.extend(own.read);
        since.written.extend(own.written);
        body.extend(segment);
    }
    body
}

impl Touched {
    fn visit(&mut self, body: &[Stmt], exprs: &KernelExprs, arrays: &IdVec<ArrayId, Array>) {
        let shared = |array: ArrayId| arrays[array].space == Space::Shared;
        for stmt in body {
            match stmt {
                Stmt::Let(_, value) => self.loads(&[*value], exprs, &shared),
                Stmt::Store { array, index, value } | Stmt::Atomic { array, index, value, .. } => {
                    self.loads(&[*index, *value], exprs, &shared);
                    if shared(*array) {
                        self.written.insert(*array);
                    }
                }
                Stmt::For { body, .. } => self.visit(body, exprs, arrays),
                Stmt::If { condition, body } => {
                    self.loads(&[*condition], exprs, &shared);
                    self.visit(body, exprs, arrays);
                }
                Stmt::Barrier => {}
            }
        }
    }

    fn loads(&mut self, roots: &[NodeId], exprs: &KernelExprs, shared: &impl Fn(ArrayId) -> bool) {
        for id in exprs.reachable(roots.iter().copied()) {
            if let NodeKind::Load(array) = exprs[id].kind
                && shared(array)
            {
                self.read.insert(array);
            }
        }
    }
}
