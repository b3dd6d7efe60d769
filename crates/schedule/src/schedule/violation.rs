//! What can be wrong with a schedule's tree, said in one sentence each, at its place in the nest.

use ahash::AHashMap;
use thiserror::Error;
use warploom_lang::Pipeline;

use crate::schedule::error::Spot;
use crate::schedule::path::Path;
use crate::schedule::print::lines;
use crate::schedule::tree::Schedule;

/// What runs side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The blocks of a kernel.
    Blocks,
    /// The threads of a block.
    Threads,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Blocks => "blocks",
            Side::Threads => "threads",
        })
    }
}

/// A rule that a schedule breaks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
#[non_exhaustive]
pub enum Rule {
    /// A Func that is computed nowhere.
    #[error("`{func}` is needed but computed nowhere; inline it, or give it a place before its readers")]
    Missing {
        /// The Func.
        func: String,
    },
    /// A Func of which only some stages are computed.
    #[error("`{stage}` is computed nowhere, but other stages of its Func are; give it a place among them")]
    MissingStage {
        /// The stage.
        stage: String,
    },
    /// Something that is computed at two places.
    #[error("`{name}` is computed at another place already; keep one of them")]
    Twice {
        /// The stage or Func.
        name: String,
    },
    /// A Func that is inlined and has a place.
    #[error("`{func}` is inlined, so it cannot have a place; remove one of them")]
    InlinedAndPlaced {
        /// The Func.
        func: String,
    },
    /// An output that is inlined.
    #[error("`{func}` is an output, so it cannot be inlined; compute it in a kernel of its own")]
    InlinedOutput {
        /// The Func.
        func: String,
    },
    /// An inlined Func that has updates.
    #[error(
        "`{func}` has {stages} stages, and only pure Funcs can be inlined; put it in registers or elsewhere"
    )]
    InlinedUpdates {
        /// The Func.
        func: String,
        /// How many stages it has.
        stages: usize,
    },
    /// An output that does not end up in global memory.
    #[error("`{func}` is an output, so all its stages must be kernels' own stages, in global memory")]
    OutputPlace {
        /// The Func.
        func: String,
    },
    /// A stage without a definition.
    #[error("`{stage}` is undefined, so there is nothing to compute; leave it out")]
    Undefined {
        /// The stage.
        stage: String,
    },
    /// A kernel that does not end with its own stage.
    #[error("the kernel of `{stage}` must end with `{stage}`; make it the last line of the kernel")]
    OwnStage {
        /// The kernel's stage.
        stage: String,
    },
    /// A kernel's own stage with a storage word.
    #[error("`{stage}` is the kernel's own stage, which is in global memory; remove the storage")]
    OwnStorage {
        /// The stage.
        stage: String,
    },
    /// A stage inside a block without a storage word.
    #[error("nothing says where `{item}` lives in the block; write `shared` or `private`")]
    NoStorage {
        /// The stage or staged input.
        item: String,
    },
    /// A staged input that is not in shared memory.
    #[error("`{item}` is a copy of an input, which all threads read; write `shared`")]
    PrivateInput {
        /// The staged input.
        item: String,
    },
    /// An input that is staged twice in a kernel.
    #[error("`{item}` is in this kernel already; keep one copy")]
    StagedTwice {
        /// The staged input.
        item: String,
    },
    /// A staged input that nothing reads.
    #[error("nothing below reads `{item}`; move it before its readers, or remove it")]
    Unread {
        /// The staged input.
        item: String,
    },
    /// A producer that comes after its consumer.
    #[error("`{consumer}` reads `{producer}`, which is computed later; move `{producer}` before it")]
    Order {
        /// What is read.
        producer: String,
        /// What reads it.
        consumer: String,
    },
    /// A Func of one kernel that another kernel reads.
    #[error(
        "`{producer}` lives in a block, but `{consumer}` reads it in the kernel of `{kernel}`; give `{producer}` a kernel of its own, or inline it"
    )]
    OutsideKernel {
        /// What is read.
        producer: String,
        /// What reads it.
        consumer: String,
        /// The stage of the kernel that reads it.
        kernel: String,
    },
    /// A Func inside a loop that its consumer is outside of.
    #[error(
        "`{producer}` is computed inside the loop over `{variable}`, but `{consumer}` reads it outside; move `{producer}` out of the loop"
    )]
    NotEnclosing {
        /// What is read.
        producer: String,
        /// What reads it.
        consumer: String,
        /// The loop's variable.
        variable: String,
    },
    /// A consumer inside a reduction loop of its producer.
    #[error(
        "`{consumer}` reads `{producer}` inside the loop over `{variable}`, before that is complete; move `{consumer}` behind the loop"
    )]
    Incomplete {
        /// What is read.
        producer: String,
        /// What reads it.
        consumer: String,
        /// The loop's variable.
        variable: String,
    },
    /// Stages of a Func in the wrong order.
    #[error("`{stage}` must run after `{earlier}`; exchange them")]
    StageOrder {
        /// The stage.
        stage: String,
        /// The one that comes before it.
        earlier: String,
    },
    /// Stages of a Func that cannot share one array.
    #[error(
        "`{stage}` and `{earlier}` write one array, so both must be kernels' own stages, or in one kernel with the same storage, inside the same loops except their own"
    )]
    StagePlace {
        /// The stage.
        stage: String,
        /// The one that comes before it.
        earlier: String,
    },
    /// A Func in registers that something else reads.
    #[error(
        "`{func}` is in registers of `{stage}`, but `{consumer}` reads it too; compute it in the block, or inline it"
    )]
    RegistersElsewhere {
        /// The Func.
        func: String,
        /// The stage it stands under.
        stage: String,
        /// What else reads it.
        consumer: String,
    },
    /// Funcs in registers in the wrong order.
    #[error("`{consumer}` reads `{producer}`, which comes later in the registers; exchange them")]
    RegistersOrder {
        /// What is read.
        producer: String,
        /// What reads it.
        consumer: String,
    },
    /// A Func in registers that writes neither at its own point nor at a fixed one.
    #[error(
        "`{stage}` writes where data or reduction variables say, which registers cannot follow; compute it in the block or at root"
    )]
    RegistersShape {
        /// The stage.
        stage: String,
    },
    /// Funcs in registers under a copy.
    #[error("`{item}` is a copy of an input and reads no Func; put `{func}` under the stage that reads it")]
    RegistersOfInput {
        /// The staged input.
        item: String,
        /// The Func.
        func: String,
    },
    /// A size of nothing.
    #[error("`{variable}` has the size 0; write a positive number or `all`")]
    ZeroSize {
        /// The variable.
        variable: String,
    },
    /// A tile of something that is no loop.
    #[error("`{item}` has no loop over `{variable}`; use one of its own variables")]
    NoLoop {
        /// The stage or staged input.
        item: String,
        /// The variable.
        variable: String,
    },
    /// A variable that two loops divide.
    #[error("`{variable}` of `{item}` is divided twice; keep one of them")]
    SplitTwice {
        /// The stage or staged input.
        item: String,
        /// The variable.
        variable: String,
    },
    /// A loop over a variable of a stage that is not inside.
    #[error(
        "`{stage}` is not inside the loop over its variable `{variable}`; move it inside, or remove the loop"
    )]
    IdleLoop {
        /// The stage.
        stage: String,
        /// The variable.
        variable: String,
    },
    /// A reduction variable whose values depend on each other.
    #[error(
        "the values of `{variable}` of `{stage}` depend on each other, so {side} cannot share them; run them one after the other"
    )]
    Dependent {
        /// The stage.
        stage: String,
        /// The variable.
        variable: String,
        /// What would share them.
        side: Side,
    },
    /// Reduction loops in another order than they are defined in.
    #[error(
        "`{outer}` of `{stage}` runs outside `{inner}`, but the definition has it inside and the order matters; exchange them"
    )]
    Reordered {
        /// The stage.
        stage: String,
        /// The variable that is too far outside.
        outer: String,
        /// The variable that should be outside it.
        inner: String,
    },
    /// A private Func that is spread by a flat loop.
    #[error("`{stage}` is private, but a flat loop does not say which thread has which point; use `threads`")]
    PrivateFlat {
        /// The stage.
        stage: String,
    },
    /// A private Func of which a thread reads what another wrote.
    #[error(
        "`{func}` is private, but threads of `{consumer}` read values of `{func}` that other threads computed; give both the same thread tiles and read it only at the same point, or write `shared`"
    )]
    PrivateRead {
        /// The Func.
        func: String,
        /// What reads it.
        consumer: String,
    },
    /// A Func in a block or thread that may be anywhere.
    #[error(
        "`{func}` needs {extent} points along `{variable}` here, because its readers' indices have no constant width; clamp the index, inline `{func}`, or compute it at root"
    )]
    Unbounded {
        /// The Func or input.
        func: String,
        /// The dimension.
        variable: String,
        /// How many points.
        extent: i64,
    },
    /// Too much in a thread.
    #[error(
        "`{func}` takes {bytes} bytes in each thread, more than the {limit} allowed; make the serial tile smaller"
    )]
    ThreadBytes {
        /// The Func.
        func: String,
        /// Bytes it takes.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Too much in a block.
    #[error(
        "the kernel of `{stage}` takes {bytes} bytes of shared memory ({parts}), more than the {limit} of {device}; make the block smaller"
    )]
    SharedBytes {
        /// The kernel's stage.
        stage: String,
        /// Bytes it takes.
        bytes: u64,
        /// What takes them.
        parts: String,
        /// Bytes there are.
        limit: u64,
        /// The device.
        device: String,
    },
    /// Too many threads.
    #[error(
        "`{item}` takes {threads} threads, more than the {limit} of a block on {device}; use fewer and a serial tile"
    )]
    Threads {
        /// The stage or staged input.
        item: String,
        /// Threads it takes.
        threads: u64,
        /// Threads there are.
        limit: u64,
        /// The device.
        device: String,
    },
    /// Too many blocks.
    #[error(
        "the kernel of `{stage}` takes {blocks} blocks, more than the {limit} of {device}; make the block larger"
    )]
    Grid {
        /// The kernel's stage.
        stage: String,
        /// Blocks it takes.
        blocks: u64,
        /// Blocks there are.
        limit: u64,
        /// The device.
        device: String,
    },
    /// A pitch where there are no rows in shared memory.
    #[error(
        "`pitch` belongs to the first stage of an array with rows in shared memory, which `{item}` is not; remove it"
    )]
    PitchPlace {
        /// The stage or staged input.
        item: String,
    },
    /// Rows that overlap.
    #[error(
        "the rows of `{item}` have {row} elements in a block, more than the pitch of {pitch}; make it larger"
    )]
    Pitch {
        /// The stage or staged input.
        item: String,
        /// Elements between rows.
        pitch: u32,
        /// Elements of a row.
        row: i64,
    },
    /// More blocks at once than an SM can hold.
    #[error(
        "the kernel of `{stage}` asks for {blocks} blocks per SM, and an SM of {device} holds {limit} of them; ask for fewer, or make the block smaller"
    )]
    Resident {
        /// The kernel's stage.
        stage: String,
        /// Blocks per SM that the schedule asks for.
        blocks: u32,
        /// Blocks that an SM holds, by their threads and shared memory.
        limit: u32,
        /// The device.
        device: String,
    },
}

/// A broken [`Rule`] and the line of the schedule's text where it is broken.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{rule}\n{spot}")]
pub struct Violation {
    /// What is wrong.
    pub rule: Rule,
    /// The node of the tree.
    pub path: Path,
    /// Its line in the text that [`Schedule::to_text`] gives.
    pub spot: Spot,
}

/// Rules and nodes as violations, in the order of the text.
pub(crate) fn located(schedule: &Schedule, pipeline: &Pipeline, found: Vec<(Path, Rule)>) -> Vec<Violation> {
    let lines = lines(schedule, pipeline);
    // The first of the lines that show a node: names of inlined Funcs may go on.
    let mut shown: AHashMap<&Path, usize> = AHashMap::with_capacity(lines.len());
    for (number, (path, _)) in lines.iter().enumerate() {
        shown.entry(path).or_insert(number);
    }
    let mut violations: Vec<Violation> = Vec::new();
    for (path, rule) in found {
        // What has no line of its own stands in that of the nearest node around it.
        let around = std::iter::successors(Some(path.clone()), |path| Some(path.parent()));
        let nearest = around.take(path.depth() + 1).find_map(|path| shown.get(&path));
        let number = nearest.copied().unwrap_or(0);
        let text = lines.get(number).map_or("", |(_, text)| text.as_str());
        let start = text.len() - text.trim_start().len();
        let length = text[start..].find("  ").unwrap_or(text.len() - start);
        let spot = Spot::new(number + 1, text, start, start + 1, length);
        violations.push(Violation { rule, path, spot });
    }
    violations.sort_by_key(|violation| violation.spot.line);
    violations
}
