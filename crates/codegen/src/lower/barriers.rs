//! Barriers between the nests of a block: where one touches memory that another thread wrote, or writes what
//! another touched, since the last barrier.

use ahash::AHashSet;

use crate::ir::{ArrayId, KernelExprs, NodeKind, Stmt, VarId, every_stmt};

/// A part of a block, for barriers to stand between.
pub(crate) enum Segment {
    /// The statements of one nest.
    Nest(Vec<Stmt>),
    /// A loop over the block.
    Loop {
        /// Its variable.
        var: VarId,
        /// How often it runs.
        count: u32,
        /// What it holds.
        body: Vec<Segment>,
    },
}

/// The segments one after the other, with barriers where the threads exchange something through one of the
/// arrays that are `exchanged`.
pub(crate) fn with_barriers(
    segments: Vec<Segment>,
    exprs: &KernelExprs,
    exchanged: &AHashSet<ArrayId>,
) -> Vec<Stmt> {
    Barriers { exprs, exchanged }.between(segments, &mut Touched::default()).0
}

struct Barriers<'a> {
    exprs: &'a KernelExprs,
    exchanged: &'a AHashSet<ArrayId>,
}

/// Arrays that statements touch.
#[derive(Clone, Default)]
struct Touched {
    read: AHashSet<ArrayId>,
    written: AHashSet<ArrayId>,
}

impl Touched {
    /// Whether a barrier must stand between these statements and later ones.
    fn conflicts(&self, later: &Touched) -> bool {
        !later.read.is_disjoint(&self.written)
            || !later.written.is_disjoint(&self.read)
            || !later.written.is_disjoint(&self.written)
    }

    fn extend(&mut self, later: &Touched) {
        self.read.extend(&later.read);
        self.written.extend(&later.written);
    }
}

impl Barriers<'_> {
    /// Segments with barriers between them, and what they touch before the first barrier; `since` is what
    /// was touched since the last one.
    fn between(&self, segments: Vec<Segment>, since: &mut Touched) -> (Vec<Stmt>, Touched) {
        let mut body = Vec::new();
        let (mut first, mut crossed) = (Touched::default(), false);
        for segment in segments {
            let (stmts, own) = match segment {
                Segment::Nest(stmts) => {
                    let own = self.touched(&stmts);
                    if since.conflicts(&own) {
                        body.push(Stmt::Barrier);
                        *since = Touched::default();
                        crossed = true;
                    }
                    since.extend(&own);
                    (stmts, own)
                }
                Segment::Loop { var, count, body } => self.looped(var, count, body, since),
            };
            if !crossed {
                first.extend(&own);
            }
            crossed |= contains_barrier(&stmts);
            body.extend(stmts);
        }
        (body, first)
    }

    /// A loop, with a barrier at its end if the next iteration needs one, and one in front of it if what was
    /// touched before does.
    fn looped(
        &self,
        var: VarId,
        count: u32,
        body: Vec<Segment>,
        since: &mut Touched,
    ) -> (Vec<Stmt>, Touched) {
        let mut last = Touched::default();
        let (mut body, first) = self.between(body, &mut last);
        if last.conflicts(&first) {
            body.push(Stmt::Barrier);
            last = Touched::default();
        }
        let mut stmts = Vec::new();
        if since.conflicts(&first) {
            stmts.push(Stmt::Barrier);
            *since = Touched::default();
        }
        if contains_barrier(&body) {
            *since = Touched::default();
        }
        since.extend(&last);
        stmts.push(Stmt::For { var, count, unrolled: false, body });
        (stmts, first)
    }

    /// What some statements touch.
    fn touched(&self, body: &[Stmt]) -> Touched {
        let mut touched = Touched::default();
        for stmt in every_stmt(body) {
            touched.written.extend(stmt.written().filter(|array| self.exchanged.contains(array)));
            for id in self.exprs.reachable(stmt.operands()) {
                if let NodeKind::Load(array) = self.exprs[id].kind
                    && self.exchanged.contains(&array)
                {
                    touched.read.insert(array);
                }
            }
        }
        touched
    }
}

fn contains_barrier(body: &[Stmt]) -> bool {
    every_stmt(body).any(|stmt| *stmt == Stmt::Barrier)
}
