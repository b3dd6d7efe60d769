//! Which decisions a set of schedules takes, and for which kinds of stages.

mod kind;
mod survey;

use std::fmt;

use crate::schedule::coverage::survey::Survey;
use crate::schedule::problem::Problem;
use crate::schedule::random::facts::Facts;
use crate::schedule::tree::{KernelNumbers, NestNumbers, Schedule};

macro_rules! named {
    ($(#[$about:meta])* $type:ident, $count:ident: $($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        const $count: usize = [$($name),*].len();

        impl $type {
            /// All of them, in order.
            pub const ALL: [$type; $count] = [$($type::$variant),*];

            /// The name in tables.
            pub const fn name(self) -> &'static str {
                const NAMES: [&str; $count] = [$($name),*];
                NAMES[self as usize]
            }
        }
    };
}

named! {
    /// A decision of a schedule about a stage or staged input.
    ///
    /// A stage is *eligible* for a decision if its readers, as the schedule has them, and its own loops allow it:
    ///
    /// | decision | eligible are stages |
    /// | --- | --- |
    /// | inlined | of Funcs without updates that are no outputs |
    /// | root | all |
    /// | shared, in an over-loop | of Funcs that are no outputs and are read in one kernel, inside an over-loop; and inputs there |
    /// | private | of the same, if all readers have threads and read it at exactly their points along these |
    /// | registers | of Funcs that are read by one nest and write their own points or fixed ones |
    /// | loops around and over | with a reduction variable, at root and in blocks |
    /// | staged input | copies of inputs, one for each kernel that reads the input |
    /// | block tiles | of kernels, with loops along which there is something to divide |
    /// | threads, rounds, serial tiles, unrolling | in nests, with such loops at their place |
    /// | reductions on blocks and threads, in another order | with variables whose dependences allow it under some loops |
    Decision, DECISIONS:
    /// Computed wherever it is used.
    Inlined "inlined";
    /// A kernel's own stage.
    Root "root";
    /// In shared memory, by a flat loop.
    SharedFlat "shared flat";
    /// In shared memory, by threads of its own.
    SharedThreads "shared threads";
    /// In a block, in memory of each thread's own.
    Private "private";
    /// In registers of its only reader.
    Registers "registers";
    /// Inside a loop over the block of another stage.
    InOverLoop "in over-loop";
    /// Loops around its kernel.
    Around "around loop";
    /// Loops over the block of its own variables.
    Over "over loop";
    /// A copy of an input in shared memory.
    StagedInput "staged input";
    /// Blocks that do not divide a dimension.
    BlockCut "block tile cut";
    /// Blocks along several dimensions.
    BlockSeveral "block tile 2+ dims";
    /// One block that holds all.
    BlockWhole "block tile whole";
    /// Threads along one loop.
    ThreadsOne "threads 1 dim";
    /// Threads along two loops.
    ThreadsTwo "threads 2 dims";
    /// Threads along three loops.
    ThreadsThree "threads 3 dims";
    /// Fewer threads than points, so that all go on with the next ones.
    Rounds "rounds";
    /// More threads than points.
    Idle "idle threads";
    /// Several points of a dimension in each thread.
    SerialTile "serial tile";
    /// Serial loops that are written out.
    Unrolled "unrolled";
    /// A reduction variable in parts.
    SplitReduction "split reduction";
    /// A reduction variable that is written out.
    UnrolledReduction "unrolled reduction";
    /// A reduction variable that blocks share.
    ReductionOnBlocks "reduction on blocks";
    /// A reduction variable that threads share.
    ReductionOnThreads "reduction on threads";
    /// Reduction loops in another order than they are defined in.
    Reordered "reordered reduction";
}

named! {
    /// What kind of stage a decision is about. A stage is of the first kind that fits, in this order.
    StageKind, KINDS:
    /// A staged input.
    InputCopy "input copy";
    /// An update that reads its Func at other points than the one it writes.
    Scan "scan";
    /// An update that writes other points than its own: where data or reduction variables say.
    Scatter "scatter";
    /// Of several values.
    Tuple "tuple";
    /// Over a reduction domain, into its own point.
    Reduction "reduction";
    /// Moves indices inside an image and does nothing else.
    Boundary "boundary";
    /// Reads at indices that are themselves read.
    Gather "gather";
    /// Reads with dimensions exchanged.
    Transposing "transposing";
    /// Reads in steps of more than one.
    Downsampling "downsampling";
    /// Reads in steps of less than one.
    Upsampling "upsampling";
    /// Reads something at several points.
    Stencil "stencil";
    /// All else.
    Pointwise "pointwise";
}

/// How many could and how many did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Share {
    /// How many could.
    pub eligible: u64,
    /// How many of these did.
    pub taken: u64,
}

impl Share {
    /// The part that did, from 0 to 1; 0 where none could.
    pub fn part(self) -> f64 {
        self.taken as f64 / self.eligible.max(1) as f64
    }

    fn record(&mut self, taken: bool) {
        self.eligible += 1;
        self.taken += u64::from(taken);
    }

    fn merge(&mut self, other: Share) {
        self.eligible += other.eligible;
        self.taken += other.taken;
    }
}

/// How often schedules took each [`Decision`] for each [`StageKind`], out of how often they could.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::schedule::{Coverage, Decision, Problem, Schedule, StageKind};
/// use warploom_target::Device;
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 3);
/// let pipeline = Pipeline::new("ramps", [func("twice", x, ramp.at(x) * 2)])?;
/// let request = Realisation::new(&pipeline).output("twice", Region::of_extents(&[64]));
/// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
/// let mut coverage = Coverage::default();
/// coverage.add(&problem, &Schedule::default_for(&problem));
/// let inlined = coverage.share(Decision::Inlined, StageKind::Pointwise);
/// assert_eq!((inlined.eligible, inlined.taken), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    shares: [[Share; KINDS]; DECISIONS],
    /// One for each number of a kernel, then one for each number of a nest.
    numbers: [Share; NUMBERS],
    schedules: u64,
    levels: Share,
}

const NUMBERS: usize = KernelNumbers::WORDS.len() + NestNumbers::WORDS.len();

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage {
            shares: [[Share::default(); KINDS]; DECISIONS],
            numbers: [Share::default(); NUMBERS],
            schedules: 0,
            levels: Share::default(),
        }
    }
}

impl Coverage {
    /// Counts the decisions of a legal schedule.
    pub fn add(&mut self, problem: &Problem, schedule: &Schedule) {
        let facts = Facts::new(problem);
        Survey::new(&facts, schedule).count(self);
        self.schedules += 1;
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Coverage) {
        for (own, other) in self.shares.iter_mut().flatten().zip(other.shares.iter().flatten()) {
            own.merge(*other);
        }
        for (own, other) in self.numbers.iter_mut().zip(other.numbers) {
            own.merge(other);
        }
        self.schedules += other.schedules;
        self.levels.merge(other.levels);
    }

    /// How many schedules were counted.
    pub fn schedules(&self) -> u64 {
        self.schedules
    }

    /// How often a decision was taken for a kind of stage.
    pub fn share(&self, decision: Decision, kind: StageKind) -> Share {
        self.shares[decision as usize][kind as usize]
    }

    /// How many schedules compute one Func in a block and another one in a thread. Those of pipelines could
    /// that have two Funcs beside their outputs, one of which registers can hold.
    pub fn levels(&self) -> Share {
        self.levels
    }

    /// How many kernels and nests in shared memory give each of their numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static str, Share)> {
        let words = KernelNumbers::WORDS.iter().chain(NestNumbers::WORDS);
        words.copied().zip(self.numbers)
    }

    /// What was taken by less than a part of the stages that could, of which there are enough to tell.
    pub fn rare(&self, part: f64, enough: u64) -> Vec<(Decision, StageKind, Share)> {
        let all = Decision::ALL.into_iter().flat_map(|decision| {
            StageKind::ALL.into_iter().map(move |kind| (decision, kind, self.share(decision, kind)))
        });
        all.filter(|(.., share)| share.eligible >= enough && share.part() < part).collect()
    }

    fn record(&mut self, decision: Decision, kind: StageKind, taken: bool) {
        self.shares[decision as usize][kind as usize].record(taken);
    }
}

/// Width of a column of the table.
const COLUMN: usize = 13;

/// A line for each decision, a column for each kind of stage: the part that took it, of how many.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = Decision::ALL.into_iter().map(|decision| decision.name().len()).max().unwrap_or(0);
        write!(f, "{:head$}", "")?;
        for kind in StageKind::ALL {
            write!(f, "{:>COLUMN$}", kind.name())?;
        }
        writeln!(f)?;
        for decision in Decision::ALL {
            write!(f, "{:head$}", decision.name())?;
            for kind in StageKind::ALL {
                write!(f, "{:>COLUMN$}", shown(self.share(decision, kind)))?;
            }
            writeln!(f)?;
        }
        for (word, share) in self.numbers() {
            writeln!(f, "{word:head$}{:>COLUMN$}", shown(share))?;
        }
        writeln!(
            f,
            "{} schedules, a Func in a block and one in a thread: {}",
            self.schedules,
            shown(self.levels)
        )
    }
}

fn shown(share: Share) -> String {
    match share.eligible {
        0 => "-".to_string(),
        eligible => format!("{:.0}% {eligible}", 100.0 * share.part()),
    }
}
