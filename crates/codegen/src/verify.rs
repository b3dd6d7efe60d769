//! Checks programs against the rules of the [kernel IR](crate::ir).

mod atomics;
mod error;
mod nodes;
mod values;
mod vectors;

use tracing::debug_span;
use warploom_lang::Type;
use warploom_lang::affine::Interval;

use crate::ir::{
    Array, ArrayId, AtomicOp, Launch, NodeId, NodeKind, Program, Role, Space, Stmt, VarId, WARP, every_stmt,
};
use atomics::Atomics;
pub use error::{Fault, Missing, StmtIndex, StmtPath, VerifyError};
use nodes::Tables;
use values::{Fact, Values, Varies};

/// Checks the launches of a program and every kernel.
///
/// # Errors
///
/// The first rule that is broken, and where.
pub fn verify(program: &Program) -> Result<(), VerifyError> {
    let _pass = debug_span!("verify").entered();
    launches(program, &program.launches)?;
    for (id, kernel) in program.kernels.iter() {
        let around = program.loops_around(id);
        let tables = Tables { program, kernel, around: &around };
        let name = || kernel.name.clone();
        tables.check().map_err(|fault| VerifyError::Kernel { kernel: name(), fault })?;
        let (values, atomics) = (Values::new(kernel, &around), Atomics::of(kernel));
        let mut verifier = Verifier { tables, values, atomics, path: Vec::new() };
        if let Err(fault) = verifier.list(&kernel.body, StmtIndex::Body, Varies::Nowhere) {
            return Err(VerifyError::Statement { kernel: name(), at: StmtPath(verifier.path), fault });
        }
    }
    Ok(())
}

fn launches(program: &Program, list: &[Launch]) -> Result<(), VerifyError> {
    list.iter().try_for_each(|launch| match launch {
        Launch::Kernel(id) if program.kernels.get(*id).is_none() => {
            Err(VerifyError::Launch(Missing::Kernel(*id)))
        }
        Launch::Kernel(_) => Ok(()),
        Launch::Loop { body, .. } => launches(program, body),
    })
}

/// Walks the statements of a kernel.
struct Verifier<'a> {
    tables: Tables<'a>,
    values: Values<'a>,
    atomics: Option<Atomics<'a>>,
    /// The path to the current statement.
    path: Vec<StmtIndex>,
}

impl Verifier<'_> {
    /// Checks a list of statements. `flow` says between which threads of the block control flow may have diverged.
    fn list(&mut self, body: &[Stmt], step: fn(usize) -> StmtIndex, flow: Varies) -> Result<(), Fault> {
        let mark = self.values.enter();
        for (position, stmt) in body.iter().enumerate() {
            self.path.push(step(position));
            self.stmt(stmt, flow)?;
            self.path.pop();
        }
        self.values.leave(mark);
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt, flow: Varies) -> Result<(), Fault> {
        let uniform = flow == Varies::Nowhere;
        match stmt {
            Stmt::Let(var, value) => {
                let Fact { varies, range, .. } = self.value(*value)?;
                self.values.bind(*var, self.tables.kernel.exprs[*value].ty, varies, range)?;
            }
            Stmt::Shuffle { .. } if flow == Varies::Threads => return Err(Fault::DivergentShuffle),
            Stmt::Shuffle { var, value, lane } => self.shuffle(*var, *value, *lane)?,
            Stmt::Store { array, index, value } => self.write(*array, *index, *value)?,
            Stmt::Copy { array, index, value } => {
                self.write(*array, *index, *value)?;
                self.copy(*array, self.loaded(*value))?;
            }
            Stmt::Vector { to, at, from, index, width } => {
                self.vector((*to, *at), (*from, *index), *width)?
            }
            Stmt::Commit | Stmt::Wait(_) if !uniform => return Err(Fault::DivergentWait),
            Stmt::Commit | Stmt::Wait(_) => {}
            Stmt::Atomic { op, array, index, value } => {
                self.write(*array, *index, *value)?;
                self.atomic(*op, *array)?;
            }
            Stmt::For { var, count, body, .. } => return self.repeat(*var, *count, body, flow),
            Stmt::If { condition, body, otherwise } => {
                let fact = self.condition(*condition)?;
                self.note_atomics(stmt)?;
                return self.branch(fact, [body, otherwise], flow);
            }
            Stmt::Barrier if !uniform => return Err(Fault::DivergentBarrier),
            Stmt::Barrier => self.atomics.iter_mut().for_each(Atomics::barrier),
        }
        self.note_atomics(stmt)
    }

    fn note_atomics(&mut self, stmt: &Stmt) -> Result<(), Fault> {
        self.atomics.as_mut().map_or(Ok(()), |atomics| atomics.note(stmt))
    }

    fn value(&mut self, id: NodeId) -> Result<Fact, Fault> {
        self.tables.value(id)?;
        self.values.fact(id)
    }

    fn write(&mut self, array: ArrayId, index: NodeId, value: NodeId) -> Result<(), Fault> {
        self.value(value)?;
        self.tables.access(array, self.tables.kernel.exprs[value].ty, index)?;
        self.values.fact(index)?;
        self.values.check_bounds(array, index)?;
        let decl = &self.tables.kernel.arrays[array];
        match decl.space {
            Space::Global(buffer) if self.tables.program.buffers[buffer].role.is_constant() => {
                Err(Fault::WritesInput { array: decl.name.clone() })
            }
            _ => Ok(()),
        }
    }

    fn atomic(&self, op: AtomicOp, array: ArrayId) -> Result<(), Fault> {
        let Array { ref name, ty, space, .. } = self.tables.kernel.arrays[array];
        match space != Space::Thread && op.works_on(ty) {
            true => Ok(()),
            false => Err(Fault::Atomic { array: name.clone(), ty, space }),
        }
    }

    /// The array that a value is loaded from, if it is loaded.
    fn loaded(&self, value: NodeId) -> Option<ArrayId> {
        match self.tables.kernel.exprs[value].kind {
            NodeKind::Load(from) => Some(from),
            _ => None,
        }
    }

    /// Checks that a copy moves elements of a buffer that the kernel only reads to a shared array.
    fn copy(&self, array: ArrayId, from: Option<ArrayId>) -> Result<(), Fault> {
        let Tables { program, kernel, .. } = self.tables;
        let Array { ref name, ty, space, .. } = kernel.arrays[array];
        let is_table = |buffer| matches!(program.buffers[buffer].role, Role::Table(_));
        let source = from.map(|from| kernel.arrays[from].space);
        let written = || every_stmt(&kernel.body).filter_map(Stmt::written).map(|id| kernel.arrays[id].space);
        let from_buffer = matches!(source, Some(Space::Global(buffer)) if !is_table(buffer))
            && !written().any(|space| Some(space) == source);
        match space == Space::Shared && from_buffer && ty.bytes() >= 4 {
            true => Ok(()),
            false => Err(Fault::Copy { array: name.clone(), ty }),
        }
    }

    fn shuffle(&mut self, var: VarId, value: NodeId, lane: NodeId) -> Result<(), Fault> {
        let (threads, offered, from) = (self.tables.kernel.threads, self.value(value)?, self.value(lane)?);
        let [ty, lane] = [value, lane].map(|id| self.tables.kernel.exprs[id].ty);
        if !threads.is_multiple_of(WARP) {
            return Err(Fault::PartialWarp { threads });
        }
        if ty.bytes() < 4 {
            return Err(Fault::ShuffledType { found: ty });
        }
        // Like an index, a lane that may be valid is checked in the simulator, where its value is known.
        if lane != Type::I32 || from.range.max < 0 || from.range.min >= i64::from(WARP) {
            return Err(Fault::Lane { found: lane, min: from.range.min, max: from.range.max });
        }
        self.values.bind(var, ty, Varies::Threads, offered.range)
    }

    fn repeat(&mut self, var: VarId, count: u32, body: &[Stmt], flow: Varies) -> Result<(), Fault> {
        let mark = self.values.enter();
        self.values.bind(var, Type::I32, Varies::Nowhere, Interval::below(count))?;
        if count == 0 || i32::try_from(count).is_err() {
            return Err(Fault::LoopCount { var: self.tables.kernel.vars[var].clone(), count });
        }
        self.list(body, StmtIndex::Body, flow)?;
        if self.atomics.is_some() && count > 1 {
            // Check the body twice: the end of an iteration is followed by the start of the next.
            self.list(body, StmtIndex::Body, flow)?;
        }
        self.values.leave(mark);
        Ok(())
    }

    fn condition(&mut self, id: NodeId) -> Result<Fact, Fault> {
        let fact = self.value(id)?;
        match self.tables.kernel.exprs[id].ty {
            Type::Bool => Ok(fact),
            found => Err(Fault::Condition { found }),
        }
    }

    /// Checks the two lists of an `if`, given the fact of its condition.
    fn branch(&mut self, condition: Fact, lists: [&[Stmt]; 2], flow: Varies) -> Result<(), Fault> {
        let Fact { varies, range, .. } = condition;
        let before = self.atomics.clone();
        let never = [range.max < 1, range.min > 0];
        for ((list, never), step) in lists.into_iter().zip(never).zip([StmtIndex::Body, StmtIndex::Otherwise])
        {
            // If the condition diverges within the block, the two lists run concurrently. If it differs only between
            // blocks, they run concurrently for buffers.
            let start = match (&before, &self.atomics) {
                (Some(before), Some(so_far)) if varies == Varies::Nowhere => {
                    Some(before.in_other_blocks(so_far))
                }
                (_, so_far) => so_far.clone(),
            };
            let other = std::mem::replace(&mut self.atomics, start);
            let mark = self.values.enter();
            if never {
                self.values.never_runs();
            }
            self.list(list, step, flow.max(varies))?;
            self.values.leave(mark);
            if let (Some(own), Some(other)) = (&mut self.atomics, &other) {
                own.join(other);
            }
        }
        Ok(())
    }
}
