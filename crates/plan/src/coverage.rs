//! Counts which decisions a set of schedules takes, and for which kinds of stages.

mod kind;
mod rewrites;
mod survey;

use std::fmt;

use warploom_lang::rewrite::Rewrite;
use warploom_schedule::{KernelNumbers, NestNumbers};

macro_rules! named {
    ($(#[$about:meta])* $type:ident, $count:ident: $($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        const $count: usize = [$($name),*].len();

        impl $type {
            /// All variants, in order.
            pub const ALL: [$type; $count] = [$($type::$variant),*];

            /// The name in printed tables.
            pub const fn name(self) -> &'static str {
                const NAMES: [&str; $count] = [$($name),*];
                NAMES[self as usize]
            }
        }
    };
}

named! {
    /// A decision of a schedule about a stage or staged input, other than its words.
    ///
    /// A stage is *eligible* for a decision if its readers, as scheduled, and its own loops allow it:
    ///
    /// | decision | eligible stages |
    /// | --- | --- |
    /// | inlined | stages of Funcs without updates that are not outputs |
    /// | root | all stages |
    /// | shared, in an over-loop | stages of Funcs that are not outputs and are read in one kernel (for an over-loop, all inside one); also inputs |
    /// | private | the same, if all readers have threads and read it at exactly their own points along these |
    /// | registers | stages of Funcs that are read by one nest and write their own points or fixed ones |
    /// | loops around and over | stages with a reduction variable, at root and in blocks |
    /// | staged input | copies of inputs, one per kernel that reads the input |
    /// | block tiles | stages of kernels that have loops to divide |
    /// | threads, rounds, serial tiles, unrolling | stages in nests that have such loops at their place |
    /// | reductions on blocks and threads, in another order | stages with variables whose dependences allow it inside some loops |
    /// | atomics on blocks and threads | updates that one atomic operation makes, at root and in memory that threads share |
    Choice, CHOICES:
    /// Inlined into every use.
    Inlined "inlined";
    /// A kernel's own stage.
    Root "root";
    /// In shared memory, computed by a flat loop.
    SharedFlat "shared flat";
    /// In shared memory, computed by its own thread loops.
    SharedThreads "shared threads";
    /// In a block, in private memory of each thread.
    Private "private";
    /// In registers of its only reader.
    Registers "registers";
    /// Inside a loop over the block that belongs to another stage.
    InOverLoop "in over-loop";
    /// Loops around its kernel.
    Around "around loop";
    /// Loops over the block, over its own variables.
    Over "over loop";
    /// A copy of an input in shared memory.
    StagedInput "staged input";
    /// A block size that does not divide a dimension evenly.
    BlockCut "block tile cut";
    /// Block tiles along several dimensions.
    BlockSeveral "block tile 2+ dims";
    /// A single block that computes everything.
    BlockWhole "block tile whole";
    /// Threads along one loop.
    ThreadsOne "threads 1 dim";
    /// Threads along two loops.
    ThreadsTwo "threads 2 dims";
    /// Threads along three loops.
    ThreadsThree "threads 3 dims";
    /// Fewer threads than points, so that all threads continue with the next points.
    Rounds "rounds";
    /// More threads than points.
    Idle "idle threads";
    /// Several points per thread along a dimension.
    SerialTile "serial tile";
    /// Unrolled serial loops.
    Unrolled "unrolled";
    /// A reduction variable that is divided into parts.
    SplitReduction "split reduction";
    /// A reduction variable that is unrolled.
    UnrolledReduction "unrolled reduction";
    /// A reduction variable shared by blocks.
    ReductionOnBlocks "reduction on blocks";
    /// A reduction variable shared by threads.
    ReductionOnThreads "reduction on threads";
    /// Reduction loops that are not in definition order.
    Reordered "reordered reduction";
    /// A reduction variable shared by blocks that update global memory by atomics.
    AtomicsOnBlocks "atomics on blocks";
    /// A reduction variable shared by at least two threads that update it by atomics.
    AtomicsOnThreads "atomics on threads";
}

named! {
    /// The kind of stage that a decision is about. A stage has the first kind that fits, in this order.
    StageKind, KINDS:
    /// A copy of an input.
    InputCopy "input copy";
    /// An update that reads its Func at points other than the one it writes.
    Scan "scan";
    /// An update that writes points other than its own, given by data or reduction variables.
    Scatter "scatter";
    /// A stage with several values.
    Tuple "tuple";
    /// A stage over a reduction domain that writes its own point.
    Reduction "reduction";
    /// A boundary condition: it only moves indices in-bounds.
    Boundary "boundary";
    /// A stage that reads at indices which are themselves read.
    Gather "gather";
    /// A stage that reads with dimensions exchanged.
    Transposing "transposing";
    /// A stage that reads with a stride greater than one.
    Downsampling "downsampling";
    /// A stage that reads with a stride less than one.
    Upsampling "upsampling";
    /// A stage that reads something at several points.
    Stencil "stencil";
    /// Any other stage.
    Pointwise "pointwise";
}

/// The number of eligible stages, and how many of them took a decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Share {
    /// How many could take the decision.
    pub eligible: u64,
    /// How many of these took it.
    pub taken: u64,
}

impl Share {
    /// The fraction that took the decision, from 0 to 1; 0 if none was eligible.
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

/// How often schedules took each [`Choice`] per [`StageKind`], out of how often they could.
///
/// ```
/// use warploom_lang::*;
/// use warploom_plan::{Coverage, Choice, Problem, StageKind};
/// use warploom_schedule::Schedule;
/// use warploom_target::Device;
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 3);
/// let pipeline = Pipeline::new("ramps", [func("twice", x, ramp.at(x) * 2)])?;
/// let request = Realisation::new(&pipeline).output("twice", Region::of_extents(&[64]));
/// let problem = Problem::new(&pipeline, &request, &Device::preset("h200")?)?;
/// let mut coverage = Coverage::default();
/// coverage.add(&problem, &problem.default_schedule());
/// let inlined = coverage.share(Choice::Inlined, StageKind::Pointwise);
/// assert_eq!((inlined.eligible, inlined.taken), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    shares: [[Share; KINDS]; CHOICES],
    /// One per number of a kernel, then one per number of a nest.
    numbers: [Share; NUMBERS],
    /// How many rewrites of each kind count.
    rewrites: [u64; Rewrite::WORDS.len()],
    schedules: u64,
    levels: Share,
    shuffles: Share,
    edges: Share,
    vector_copies: Share,
}

const NUMBERS: usize = KernelNumbers::WORDS.len() + NestNumbers::WORDS.len();

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage {
            shares: [[Share::default(); KINDS]; CHOICES],
            numbers: [Share::default(); NUMBERS],
            rewrites: [0; Rewrite::WORDS.len()],
            schedules: 0,
            levels: Share::default(),
            shuffles: Share::default(),
            edges: Share::default(),
            vector_copies: Share::default(),
        }
    }
}

impl Coverage {
    /// Adds the counts of another coverage.
    pub fn merge(&mut self, other: &Coverage) {
        for (own, other) in self.shares.iter_mut().flatten().zip(other.shares.iter().flatten()) {
            own.merge(*other);
        }
        for (own, other) in self.numbers.iter_mut().zip(other.numbers) {
            own.merge(other);
        }
        for (own, other) in self.rewrites.iter_mut().zip(other.rewrites) {
            *own += other;
        }
        self.schedules += other.schedules;
        self.levels.merge(other.levels);
        self.shuffles.merge(other.shuffles);
        self.edges.merge(other.edges);
        self.vector_copies.merge(other.vector_copies);
    }

    /// The number of schedules counted.
    pub fn schedules(&self) -> u64 {
        self.schedules
    }

    /// How often a decision was taken for a kind of stage.
    pub fn share(&self, decision: Choice, kind: StageKind) -> Share {
        self.shares[decision as usize][kind as usize]
    }

    /// How many schedules compute one Func in a block and another one in a thread. Eligible are
    /// pipelines with at least two Funcs that are not outputs, one of which can be held in registers.
    pub fn levels(&self) -> Share {
        self.levels
    }

    /// How many Funcs threads exchange by shuffles. Eligible are Funcs in shared memory with thread loops, in
    /// blocks of whole warps.
    pub fn shuffles(&self) -> Share {
        self.shuffles
    }

    /// How many kernels compute only the part of their Func beyond which its values repeat. Eligible are kernels of
    /// Funcs that are not outputs.
    pub fn edges(&self) -> Share {
        self.edges
    }

    /// How many copies ahead of time are made by vectors. Eligible are those whose points are adjacent in pairs.
    pub fn vector_copies(&self) -> Share {
        self.vector_copies
    }

    /// For each number or flag: how many kernels or nests set it, out of those that could.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static str, Share)> {
        let words = KernelNumbers::WORDS.iter().chain(NestNumbers::WORDS);
        words.copied().zip(self.numbers)
    }

    /// How many rewrites of each kind were put to the test: with several groups and a cut one, if they divide values,
    /// and in a kernel with several blocks.
    pub fn rewrites(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Rewrite::WORDS.into_iter().zip(self.rewrites)
    }

    /// The decisions taken by less than `part` of the eligible stages, if at least `enough` stages were
    /// eligible.
    pub fn rare(&self, part: f64, enough: u64) -> Vec<(Choice, StageKind, Share)> {
        let all = Choice::ALL.into_iter().flat_map(|decision| {
            StageKind::ALL.into_iter().map(move |kind| (decision, kind, self.share(decision, kind)))
        });
        all.filter(|(.., share)| share.eligible >= enough && share.part() < part).collect()
    }

    fn record_word(&mut self, word: &str, taken: bool) {
        let mut words = KernelNumbers::WORDS.iter().chain(NestNumbers::WORDS).zip(&mut self.numbers);
        words.find(|(known, _)| **known == word).into_iter().for_each(|(_, share)| share.record(taken));
    }

    fn record(&mut self, decision: Choice, kind: StageKind, taken: bool) {
        self.shares[decision as usize][kind as usize].record(taken);
    }
}

/// The width of a table column.
const COLUMN: usize = 13;

/// Prints one line per decision and one column per kind of stage: the fraction that took the decision,
/// and of how many.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = Choice::ALL.into_iter().map(|decision| decision.name().len()).max().unwrap_or(0);
        write!(f, "{:head$}", "")?;
        for kind in StageKind::ALL {
            write!(f, "{:>COLUMN$}", kind.name())?;
        }
        writeln!(f)?;
        for decision in Choice::ALL {
            write!(f, "{:head$}", decision.name())?;
            for kind in StageKind::ALL {
                write!(f, "{:>COLUMN$}", shown(self.share(decision, kind)))?;
            }
            writeln!(f)?;
        }
        for (word, share) in self.numbers() {
            writeln!(f, "{word:head$}{:>COLUMN$}", shown(share))?;
        }
        writeln!(f, "{:head$}{:>COLUMN$}", "shuffles", shown(self.shuffles))?;
        writeln!(f, "{:head$}{:>COLUMN$}", "repeated edges", shown(self.edges))?;
        writeln!(f, "{:head$}{:>COLUMN$}", "copies by vectors", shown(self.vector_copies))?;
        for (word, count) in self.rewrites() {
            writeln!(f, "{word:head$}{count:>COLUMN$}")?;
        }
        writeln!(
            f,
            "{} schedules; with one Func in a block and one in a thread: {}",
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
