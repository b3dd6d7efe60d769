//! Checks mutants, and finds out why some survive.

use std::cell::OnceCell;

use warploom_codegen::ir::{Array, AtomicOp, Kernel, KernelId, NodeKind, Program, Space, Stmt, every_stmt};
use warploom_codegen::verify::{StmtPath, verify};
use warploom_lang::op::Op;
use warploom_lang::{Type, Value};
use warploom_sim::SimError;
use warploom_target::Device;

use super::edit::{Turns, in_turn, make_synchronous, replace, retain, statements, version_of};
use super::{Fate, Mutant, MutatedKernel, Mutation, Survival, node, replacements};
use crate::case::Case;
use crate::check::{Failure, Run};
use crate::data::mixed;

/// The number of other inputs that are tried on a mutant that survives those of its case.
const OTHER_INPUTS: u64 = 4;

/// A case whose program is mutated.
pub(super) struct Bench<'a> {
    run: &'a Run<'a>,
    program: &'a Program,
    device: &'a Device,
    /// The case with other inputs.
    others: OnceCell<Vec<Run<'a>>>,
}

/// The place of a changed statement.
struct Site<'a> {
    kernel: KernelId,
    at: &'a StmtPath,
    stmt: &'a Stmt,
}

impl<'a> Bench<'a> {
    pub(super) fn new(run: &'a Run<'a>, program: &'a Program, device: &'a Device) -> Bench<'a> {
        Bench { run, program, device, others: OnceCell::new() }
    }

    /// Makes and checks all mutants of a kernel.
    pub(super) fn kernel(&self, id: KernelId) -> MutatedKernel {
        let kernel = &self.program.kernels[id];
        let mut mutants = Vec::new();
        for (at, stmt) in statements(&kernel.body) {
            let (site, mut changed) = (Site { kernel: id, at: &at, stmt }, self.program.clone());
            for (mutation, to) in replacements(stmt, &mut changed.kernels[id]) {
                changed.kernels[id].body.clone_from(&kernel.body);
                replace(&mut changed.kernels[id].body, &at, to);
                let fate = self.fate(mutation, &changed, &site);
                let array = stmt.written().map(|array| kernel.arrays[array].name.clone());
                mutants.push(Mutant { mutation, at: at.clone(), array, fate });
            }
        }
        MutatedKernel { kernel: kernel.clone(), mutants }
    }

    fn fate(&self, mutation: Mutation, changed: &Program, site: &Site<'_>) -> Fate {
        if verify(changed).is_err() {
            return Fate::Refused;
        }
        match self.run.simulate(changed, self.device) {
            Err(Failure::Wrong(_)) => Fate::Wrong,
            Err(_) => Fate::Stopped,
            Ok(()) => Fate::Survived(self.survival(mutation, changed, site)),
        }
    }

    /// The program with another statement in one place.
    fn with(&self, site: &Site<'_>, stmt: impl FnOnce(&mut Kernel) -> Stmt) -> Program {
        let mut program = self.program.clone();
        let kernel = &mut program.kernels[site.kernel];
        let stmt = stmt(kernel);
        replace(&mut kernel.body, site.at, Some(stmt));
        program
    }

    fn survival(&self, mutation: Mutation, changed: &Program, site: &Site<'_>) -> Survival {
        let Kernel { threads, grid, .. } = self.program.kernels[site.kernel];
        // All threads of a block reach a shuffle, and a replacement would have to bind its variable.
        if !matches!(site.stmt, Stmt::Shuffle { .. }) && !self.reached(site) {
            return Survival::Unreached;
        }
        if self.others().iter().any(|run| run.simulate(changed, self.device).is_err()) {
            return Survival::Inputs;
        }
        match mutation {
            Mutation::NoBarrier if self.passes_in_turn(changed, site, Turns::First) => Survival::OneThread,
            // Threads that shuffle cannot run one after another.
            Mutation::NoBarrier if self.shuffles(site) => Survival::Unshared,
            Mutation::NoBarrier => {
                let mut orders = [Turns::Ascending, Turns::Descending].into_iter();
                match orders.all(|turns| self.passes_in_turn(changed, site, turns)) {
                    true => Survival::Unshared,
                    false => Survival::Unexplained,
                }
            }
            Mutation::NoCommit | Mutation::NoWait | Mutation::ShortWait => self.without_wait(changed, site),
            Mutation::ShiftedVector => Survival::Unexplained,
            Mutation::PlainAtomic if threads == 1 && grid == [1; 3] => Survival::OneThread,
            Mutation::PlainAtomic => Survival::Unshared,
            Mutation::NoAtomic | Mutation::OtherOperator(_) | Mutation::NoShuffle | Mutation::OtherLane => {
                match self.passes(&self.poisoned(site)) {
                    true => Survival::Unseen,
                    false => Survival::Neutral,
                }
            }
        }
    }

    /// Why copies do not miss a commit or wait, in one version of a block.
    fn without_wait(&self, changed: &Program, site: &Site<'_>) -> Survival {
        let stripped = |from: &Program, what: fn(&Stmt) -> bool| {
            let mut program = from.clone();
            retain(version_of(&mut program.kernels[site.kernel].body, site.at), &|stmt| !what(stmt));
            program
        };
        if self.passes(&stripped(self.program, |stmt| matches!(stmt, Stmt::Commit | Stmt::Wait(_)))) {
            return Survival::Unseen;
        }
        let mut body = self.program.kernels[site.kernel].body.clone();
        let version = version_of(&mut body, site.at);
        let waits = every_stmt(version).filter(|stmt| matches!(stmt, Stmt::Wait(_))).count();
        let others = stripped(
            changed,
            match *site.stmt == Stmt::Commit {
                true => |stmt| *stmt == Stmt::Commit,
                false => |stmt| matches!(stmt, Stmt::Wait(_)),
            },
        );
        if waits > 1 && !self.passes(&others) { Survival::Covered } else { Survival::Unexplained }
    }

    fn shuffles(&self, site: &Site<'_>) -> bool {
        every_stmt(&self.program.kernels[site.kernel].body).any(|stmt| matches!(stmt, Stmt::Shuffle { .. }))
    }

    /// Whether the statement is executed: an invalid write in its place is noticed.
    fn reached(&self, site: &Site<'_>) -> bool {
        let tripwire = self.with(site, |kernel| {
            let (name, ty) = ("tripwire".to_owned(), Type::I32);
            let array = kernel.arrays.push(Array::new(name, ty, Space::Thread, 1));
            let one = node(kernel, NodeKind::Op(Op::Const(Value::from(1))), ty, &[]);
            Stmt::Store { array, index: one, value: one }
        });
        let failure = self.run.simulate(&tripwire, self.device).err();
        failure.is_some_and(|failure| match failure {
            Failure::Fault(error) => matches!(*error, SimError::OutOfBounds { .. }),
            _ => false,
        })
    }

    /// Whether a program without a barrier gives correct outputs if threads run one after another up to the
    /// neighbouring barriers.
    fn passes_in_turn(&self, changed: &Program, site: &Site<'_>, turns: Turns) -> bool {
        let mut program = changed.clone();
        make_synchronous(&mut program.kernels[site.kernel]);
        in_turn(&mut program.kernels[site.kernel], site.at, turns);
        self.passes(&program)
    }

    /// The program with an atomic that adds a large number, or a shuffle that returns one. The number is odd, so that
    /// adding it to an integer changes it, however often this happens.
    fn poisoned(&self, site: &Site<'_>) -> Program {
        let large = |kernel: &mut Kernel, ty: Type| {
            let large = Op::Cast(ty).eval(&[Value::from(1_234_567_891)]);
            node(kernel, NodeKind::Op(Op::Const(large)), ty, &[])
        };
        self.with(site, |kernel| match *site.stmt {
            Stmt::Atomic { array, index, .. } => {
                let value = large(kernel, kernel.arrays[array].ty);
                Stmt::Atomic { op: AtomicOp::Add, array, index, value }
            }
            Stmt::Shuffle { var, value, .. } => Stmt::Let(var, large(kernel, kernel.exprs[value].ty)),
            Stmt::Let(..)
            | Stmt::Store { .. }
            | Stmt::Copy { .. }
            | Stmt::Vector { .. }
            | Stmt::Commit
            | Stmt::Wait(_)
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Barrier => unreachable!("only atomics and shuffles give values to poison"),
        })
    }

    fn passes(&self, program: &Program) -> bool {
        let mut runs = std::iter::once(self.run).chain(self.others());
        runs.all(|run| run.simulate(program, self.device).is_ok())
    }

    fn others(&self) -> &[Run<'a>] {
        self.others.get_or_init(|| {
            let runs = (1..=OTHER_INPUTS).map(|number| {
                let case = self.run.case;
                let other = Case { seed: mixed(case.seed ^ number), ..case.clone() };
                // The sizes are those of the case, which could be evaluated. A panic here is a failure of the case.
                let inputs = other.inputs().unwrap_or_else(|error| panic!("other inputs: {error}"));
                let expected =
                    other.reference(&inputs).unwrap_or_else(|error| panic!("other inputs: {error}"));
                let run = Run { case, inputs, expected };
                let unchanged = run.simulate(self.program, self.device);
                unchanged.unwrap_or_else(|failure| {
                    panic!("the unchanged kernels fail with other inputs: {failure}")
                });
                run
            });
            runs.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use warploom_codegen::lower;
    use warploom_lang::*;
    use warploom_schedule::Schedule;

    use super::*;
    use crate::check::Verdict;

    /// A stage in shared memory, and one that reads it at `x` and at `x + shift`.
    fn case(shift: i32, threads: u32) -> Case {
        let x = vars!(x);
        let input = Input::new("input", Type::I32, 1);
        let first = func("first", x, input.at(x) * 3);
        let second = func("second", x, first.at(x) - first.at(x + shift));
        let pipeline = Pipeline::new("p", [second]).unwrap();
        let request = Realisation::new(&pipeline)
            .input("input", Region::of_extents(&[32]))
            .output("second", Region::of_extents(&[24]));
        let lines = format!(
            "p\n kernel second block x 8\n  first threads x {threads} shared\n  second threads x {threads}\n"
        );
        let schedule = Schedule::parse(&lines, &pipeline).unwrap();
        Case { pipeline, request, schedule, seed: 3 }
    }

    /// Checks the mutant without a barrier: its fate, and whether it is right if threads run one after another.
    fn without_barrier(shift: i32, threads: u32) -> (Fate, [bool; 3]) {
        let device = Device::preset("h200").unwrap();
        let mut found = None;
        let verdict = case(shift, threads).check_with(|run| {
            let program = run.case.lower_with(&device, lower::Options::default())?;
            let (id, kernel) = program.kernels.iter().next().unwrap();
            let all = statements(&kernel.body);
            let (at, stmt) = all.iter().find(|(_, stmt)| **stmt == Stmt::Barrier).unwrap();
            let bench = Bench::new(run, &program, &device);
            let mut changed = program.clone();
            replace(&mut changed.kernels[id].body, at, None);
            let site = Site { kernel: id, at, stmt };
            let turns = [Turns::Ascending, Turns::Descending, Turns::First];
            let turns = turns.map(|turns| bench.passes_in_turn(&changed, &site, turns));
            found = Some((bench.fate(Mutation::NoBarrier, &changed, &site), turns));
            Ok(Verdict::Passed)
        });
        assert_eq!(verdict.unwrap(), Verdict::Passed);
        found.unwrap()
    }

    #[test]
    fn turns_tell_whether_threads_exchange_values() {
        // Thread x reads the element that thread x + 1 writes.
        assert_eq!(without_barrier(1, 9), (Fate::Stopped, [false, true, false]));
        assert_eq!(without_barrier(0, 9), (Fate::Survived(Survival::Unshared), [true, true, false]));
        assert_eq!(without_barrier(1, 1), (Fate::Survived(Survival::OneThread), [true, true, true]));
    }
}
