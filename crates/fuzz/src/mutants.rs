//! Mutants: kernels with one barrier, atomic, shuffle, vector, commit or wait removed or altered, to test that the checks notice.
//!
//! A mutant that the verifier, the simulator and the comparison of outputs all accept *survives*. Either the
//! statement has no effect in that case, and [`Survival`] says why, or one of the checks has a gap.

mod bench;
mod edit;
mod run;

use std::fmt;

use warploom_codegen::ir::{Array, AtomicOp, Kernel, KernelNode, NodeId, NodeKind, Space, Stmt};
use warploom_codegen::lower;
use warploom_codegen::verify::StmtPath;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Type, Value};
use warploom_target::Device;

use crate::case::Case;
use crate::check::{Failure, Verdict};
use bench::Bench;
pub use run::{FoundKernel, Mutated, mutate};

/// How a mutant differs from its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// A barrier is removed.
    NoBarrier,
    /// An atomic is removed.
    NoAtomic,
    /// An atomic becomes a load, an operation and a store.
    PlainAtomic,
    /// An atomic has another operator.
    OtherOperator(AtomicOp),
    /// A thread takes its own value instead of another thread's.
    NoShuffle,
    /// A shuffle takes the value of a neighbouring lane.
    OtherLane,
    /// A vector starts one element later in its buffer, or in its shared array.
    ShiftedVector,
    /// Copies are not committed to a group of their own.
    NoCommit,
    /// A wait for copies is removed.
    NoWait,
    /// A wait leaves one more group in flight.
    ShortWait,
}

impl Mutation {
    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Mutation::NoBarrier => "barrier removed",
            Mutation::NoAtomic => "atomic removed",
            Mutation::PlainAtomic => "atomic made plain",
            Mutation::OtherOperator(_) => "other operator",
            Mutation::NoShuffle => "shuffle removed",
            Mutation::OtherLane => "other lane",
            Mutation::ShiftedVector => "vector shifted",
            Mutation::NoCommit => "commit removed",
            Mutation::NoWait => "wait removed",
            Mutation::ShortWait => "shorter wait",
        }
    }
}

/// The fate of a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// The verifier refused it.
    Refused,
    /// The simulator stopped: a race, or a read of an unwritten element.
    Stopped,
    /// An output was wrong.
    Wrong,
    /// The inputs of the case showed no difference.
    Survived(Survival),
}

impl Fate {
    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Refused => "refused",
            Fate::Stopped => "stopped",
            Fate::Wrong => "wrong",
            Fate::Survived(_) => "survived",
        }
    }
}

/// Why a mutant survived, as determined by further runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Survival {
    /// The statement is never executed.
    Unreached,
    /// The mutant is noticed with other inputs of the same sizes.
    Inputs,
    /// Only one thread of the block works between the neighbouring barriers, or updates by atomics in the launch.
    OneThread,
    /// No thread accesses elements that another thread has accessed on the other side of the barrier, or that another
    /// thread updates. For a barrier, the results also stay the same if threads run one after another up to the
    /// neighbouring barriers, in either order.
    Unshared,
    /// No output changes even if the atomic adds a large number, or the shuffle returns one; or nothing reads the
    /// copied elements.
    Unseen,
    /// A commit or wait of another loop, inside or around this one, ends the same copies.
    Covered,
    /// The outputs depend on the element, but this change does not alter them: it has the same result, or a later stage
    /// rounds or clamps the difference away.
    Neutral,
    /// None of these: a check has a gap.
    Unexplained,
}

impl Survival {
    /// All reasons, in order.
    pub const ALL: [Survival; 8] = [
        Survival::Unreached,
        Survival::Inputs,
        Survival::OneThread,
        Survival::Unshared,
        Survival::Unseen,
        Survival::Covered,
        Survival::Neutral,
        Survival::Unexplained,
    ];

    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Survival::Unreached => "unreached",
            Survival::Inputs => "inputs",
            Survival::OneThread => "one thread",
            Survival::Unshared => "unshared",
            Survival::Unseen => "unseen",
            Survival::Covered => "covered",
            Survival::Neutral => "neutral",
            Survival::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for Survival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Survival::Unreached => "never executed",
            Survival::Inputs => "noticed with other inputs",
            Survival::OneThread => "only one thread works there",
            Survival::Unshared => "no two threads share an element there",
            Survival::Unseen => "no output depends on it",
            Survival::Covered => "another loop waits for the same copies",
            Survival::Neutral => "no output changes",
            Survival::Unexplained => "unexplained, a check may have a gap",
        })
    }
}

/// A kernel with one changed statement, and its fate.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The change.
    pub mutation: Mutation,
    /// The path of the changed statement in the kernel's body.
    pub at: StmtPath,
    /// The array that the statement writes; `None` for a barrier.
    pub array: Option<String>,
    /// The check that noticed the change, if any.
    pub fate: Fate,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mutation.name())?;
        if let Mutation::OtherOperator(op) = self.mutation {
            write!(f, " `{}`", op.operation().name())?;
        }
        let array = self.array.iter().try_for_each(|array| write!(f, ", `{array}`"));
        array.and_then(|()| write!(f, ", statement {}", self.at))
    }
}

/// A kernel and all its mutants.
#[derive(Clone, Debug)]
pub struct MutatedKernel {
    /// The unchanged kernel.
    pub kernel: Kernel,
    /// Its mutants, in the order of its statements.
    pub mutants: Vec<Mutant>,
}

impl Case {
    /// Mutates each kernel of the case that has a barrier, an atomic, a shuffle, vectors or copies, and checks every mutant in the simulator.
    ///
    /// # Errors
    /// If the case fails unchanged.
    pub fn mutate(&self, device: &Device) -> Result<Vec<MutatedKernel>, Failure> {
        Ok(self.mutated(device)?.0)
    }

    /// The same, and whether the case had anything to check.
    fn mutated(&self, device: &Device) -> Result<(Vec<MutatedKernel>, Verdict), Failure> {
        let mut kernels = Vec::new();
        let verdict = self.check_with(|run| {
            let program = run.case.lower_with(device, lower::Options::default())?;
            run.simulate(&program, device)?;
            let bench = Bench::new(run, &program, device);
            kernels = program.kernels.keys().map(|id| bench.kernel(id)).collect();
            Ok(Verdict::Passed)
        })?;
        kernels.retain(|kernel| !kernel.mutants.is_empty());
        Ok((kernels, verdict))
    }
}

/// The replacements to try for a statement that synchronises threads or moves a vector; `None` removes it.
fn replacements(stmt: &Stmt, kernel: &mut Kernel) -> Vec<(Mutation, Option<Stmt>)> {
    match *stmt {
        Stmt::Barrier => vec![(Mutation::NoBarrier, None)],
        Stmt::Atomic { op, array, index, value } => {
            let Array { ty, .. } = kernel.arrays[array];
            let old = node(kernel, NodeKind::Load(array), ty, &[index]);
            let new = node(kernel, NodeKind::Op(Op::Binary(op.operation())), ty, &[old, value]);
            let plain = Stmt::Store { array, index, value: new };
            let others = AtomicOp::ALL.into_iter().filter(|other| *other != op && other.works_on(ty));
            let altered = |op| (Mutation::OtherOperator(op), Some(Stmt::Atomic { op, array, index, value }));
            [(Mutation::NoAtomic, None), (Mutation::PlainAtomic, Some(plain))]
                .into_iter()
                .chain(others.map(altered))
                .collect()
        }
        Stmt::Shuffle { var, value, lane } => {
            let one = node(kernel, NodeKind::Op(Op::Const(Value::from(1))), Type::I32, &[]);
            let neighbour = node(kernel, NodeKind::Op(Op::Binary(BinaryOp::Xor)), Type::I32, &[lane, one]);
            let other = Stmt::Shuffle { var, value, lane: neighbour };
            vec![(Mutation::NoShuffle, Some(Stmt::Let(var, value))), (Mutation::OtherLane, Some(other))]
        }
        Stmt::Vector { to, at, from, index, width } => {
            let one = node(kernel, NodeKind::Op(Op::Const(Value::from(1))), Type::I32, &[]);
            let add = NodeKind::Op(Op::Binary(BinaryOp::Add));
            let mut shifted = |index: NodeId| node(kernel, add, Type::I32, &[index, one]);
            let (later_at, later_index) = (shifted(at), shifted(index));
            let sides = [(to, later_at, index), (from, at, later_index)].into_iter();
            let aligned = sides.filter(|(array, ..)| kernel.arrays[*array].space != Space::Thread);
            let vector = |(_, at, index)| Some(Stmt::Vector { to, at, from, index, width });
            aligned.map(|side| (Mutation::ShiftedVector, vector(side))).collect()
        }
        Stmt::Commit => vec![(Mutation::NoCommit, None)],
        Stmt::Wait(groups) => {
            vec![(Mutation::NoWait, None), (Mutation::ShortWait, Some(Stmt::Wait(groups + 1)))]
        }
        Stmt::Let(..) | Stmt::Store { .. } | Stmt::Copy { .. } | Stmt::For { .. } | Stmt::If { .. } => {
            Vec::new()
        }
    }
}

fn node(kernel: &mut Kernel, kind: NodeKind, ty: Type, args: &[NodeId]) -> NodeId {
    kernel.exprs.intern(KernelNode { kind, ty, args: args.iter().copied().collect() })
}
