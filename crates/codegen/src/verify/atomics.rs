//! Checks that atomics and plain accesses of an array do not mix: in shared memory a barrier must
//! separate them, and between the blocks of a launch nothing does.

use warploom_lang::{Id, IdVec};

use super::error::Fault;
use crate::ir::{Access, AccessKind, ArrayId, Effects, Kernel, NodeKind, Space, Stmt, every_stmt};

/// How the arrays of a kernel with atomics were accessed since the last barrier.
#[derive(Clone)]
pub(super) struct Atomics<'a> {
    kernel: &'a Kernel,
    since: IdVec<ArrayId, Accesses>,
}

#[derive(Clone, Copy, Default)]
struct Accesses {
    plain: bool,
    atomic: bool,
}

impl<'a> Atomics<'a> {
    /// `None` for a kernel without atomics, which needs no check.
    pub fn of(kernel: &'a Kernel) -> Option<Atomics<'a>> {
        let mut stmts = every_stmt(&kernel.body);
        let since = kernel.arrays.values().map(|_| Accesses::default()).collect();
        stmts.any(|stmt| matches!(stmt, Stmt::Atomic { .. })).then_some(Atomics { kernel, since })
    }

    /// Records the accesses of one statement, not of the statements inside it.
    pub fn note(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        let exprs = &self.kernel.exprs;
        for id in exprs.reachable(stmt.operands()) {
            if let NodeKind::Load(array) = exprs[id].kind {
                self.access(array, Accesses { plain: true, atomic: false })?;
            }
        }
        let Effects { writes, reads, .. } = stmt.effects();
        for Access { array, kind, .. } in reads.into_iter().chain(writes) {
            let atomic = kind == AccessKind::Atomic;
            self.access(array, Accesses { plain: !atomic, atomic })?;
        }
        Ok(())
    }

    fn access(&mut self, array: ArrayId, own: Accesses) -> Result<(), Fault> {
        let arrays = &self.kernel.arrays;
        let home = match arrays[array].space {
            Space::Global(_) => arrays.keys().find(|other| arrays[*other].space == arrays[array].space),
            Space::Shared | Space::Thread => None,
        };
        let all = &mut self.since[home.unwrap_or(array)];
        all.plain |= own.plain;
        all.atomic |= own.atomic;
        match all.plain && all.atomic {
            true => Err(Fault::AtomicAndPlain { array: arrays[array].name.clone() }),
            false => Ok(()),
        }
    }

    /// A barrier separates earlier from later accesses within the block.
    pub fn barrier(&mut self) {
        for (id, array) in self.kernel.arrays.iter() {
            if array.space == Space::Shared {
                self.since[id] = Accesses::default();
            }
        }
    }

    /// The accesses before a path that some blocks take while others take a path with the accesses `other`.
    pub fn in_other_blocks(&self, other: &Atomics<'_>) -> Self {
        let mut all = self.clone();
        for (id, array) in self.kernel.arrays.iter() {
            if matches!(array.space, Space::Global(_)) {
                all.since[id] = other.since[id];
            }
        }
        all
    }

    /// Merges the accesses of an alternative path.
    pub fn join(&mut self, other: &Atomics<'_>) {
        for index in 0..self.since.len() {
            let (own, other) = (&mut self.since[Id::new(index)], other.since[Id::new(index)]);
            own.plain |= other.plain;
            own.atomic |= other.atomic;
        }
    }
}
