//! The rules of schedules, each with the sentence that says how one breaks it.

use thiserror::Error;

use crate::decisions::Refusal;
use crate::problem::Problem;

/// What runs in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The blocks of a kernel run in parallel.
    Blocks,
    /// The threads of a block run in parallel.
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
    /// The schedule rewrites the pipeline, but is checked against another form of it.
    #[error(
        "the schedule describes the pipeline after other rewrites; check it against the problem that its rewrites lead to"
    )]
    OtherRewrites,
    /// A needed Func is not computed anywhere.
    #[error("`{func}` is required but never computed; inline it, or place it before its readers")]
    Missing {
        /// The name of the Func.
        func: String,
    },
    /// Only some stages of a Func are computed.
    #[error("`{stage}` is never computed, but other stages of its Func are; place it with them")]
    MissingStage {
        /// The missing stage.
        stage: String,
    },
    /// A stage or Func is computed at two places.
    #[error("`{name}` is already computed elsewhere; keep one")]
    Twice {
        /// The name of the stage or Func.
        name: String,
    },
    /// A Func is both inlined and placed.
    #[error("`{func}` is inlined, so it cannot also be placed; remove one")]
    InlinedAndPlaced {
        /// The name of the Func.
        func: String,
    },
    /// An output is inlined.
    #[error("`{func}` is an output, so it cannot be inlined; compute it in its own kernel")]
    InlinedOutput {
        /// The name of the output.
        func: String,
    },
    /// An inlined Func has updates.
    #[error(
        "`{func}` has {stages} stages, but only pure Funcs can be inlined; place it in registers, a block or a kernel"
    )]
    InlinedUpdates {
        /// The name of the Func.
        func: String,
        /// The number of stages of the Func.
        stages: usize,
    },
    /// An output is not stored in global memory.
    #[error("`{func}` is an output, so all its stages must be kernels' own stages, in global memory")]
    OutputPlace {
        /// The name of the output.
        func: String,
    },
    /// A stage without a definition is placed.
    #[error("`{stage}` has no definition, so there is nothing to compute; remove it")]
    Undefined {
        /// The name of the stage.
        stage: String,
    },
    /// A kernel does not end with its own stage.
    #[error("the kernel of `{stage}` must end with `{stage}`; make it the last line of the kernel")]
    OwnStage {
        /// The kernel's own stage.
        stage: String,
    },
    /// A kernel's own stage has a storage keyword.
    #[error("`{stage}` is the kernel's own stage, which is in global memory; remove the storage")]
    OwnStorage {
        /// The kernel's own stage.
        stage: String,
    },
    /// A stage inside a block has no storage keyword.
    #[error("the storage of `{item}` in the block is missing; write `shared` or `private`")]
    NoStorage {
        /// The stage or staged input.
        item: String,
    },
    /// A staged input is not in shared memory.
    #[error("`{item}` is a copy of an input, which all threads read; write `shared`")]
    PrivateInput {
        /// The name of the staged input.
        item: String,
    },
    /// An input is staged twice in a kernel.
    #[error("`{item}` is already in this kernel; keep one copy")]
    StagedTwice {
        /// The name of the staged input.
        item: String,
    },
    /// A staged input is never read.
    #[error("nothing below reads `{item}`; move it before its readers, or remove it")]
    Unread {
        /// The name of the staged input.
        item: String,
    },
    /// A producer comes after its consumer.
    #[error("`{consumer}` reads `{producer}`, which is computed later; move `{producer}` before it")]
    Order {
        /// The Func or stage that is read.
        producer: String,
        /// The stage that reads it.
        consumer: String,
    },
    /// A Func inside one kernel is read by another kernel.
    #[error(
        "`{producer}` lives in a block, but `{consumer}` reads it in the kernel of `{kernel}`; give `{producer}` a kernel of its own, or inline it"
    )]
    OutsideKernel {
        /// The Func or stage that is read.
        producer: String,
        /// The stage that reads it.
        consumer: String,
        /// The own stage of the reading kernel.
        kernel: String,
    },
    /// A Func is inside a loop that does not contain its consumer.
    #[error(
        "`{producer}` is computed inside the loop over `{variable}`, but `{consumer}` reads it outside; move `{producer}` out of the loop"
    )]
    NotEnclosing {
        /// The Func or stage that is read.
        producer: String,
        /// The stage that reads it.
        consumer: String,
        /// The variable of the loop.
        variable: String,
    },
    /// A consumer is inside a reduction loop of its producer.
    #[error(
        "`{consumer}` reads `{producer}` inside the loop over `{variable}`, before it is complete; move `{consumer}` behind the loop"
    )]
    Incomplete {
        /// The Func or stage that is read.
        producer: String,
        /// The stage that reads it.
        consumer: String,
        /// The variable of the loop.
        variable: String,
    },
    /// The stages of a Func are in the wrong order.
    #[error("`{stage}` must run after `{earlier}`; exchange them")]
    StageOrder {
        /// The stage that must come later.
        stage: String,
        /// The stage that must come first.
        earlier: String,
    },
    /// Two stages of a Func cannot share one array.
    #[error(
        "`{stage}` and `{earlier}` write one array, so both must be kernels' own stages, or in one kernel with the same storage, inside the same loops except their own"
    )]
    StagePlace {
        /// The later stage.
        stage: String,
        /// The earlier stage.
        earlier: String,
    },
    /// A Func in registers has another reader.
    #[error(
        "`{func}` is in registers of `{stage}`, but `{consumer}` reads it too; compute it in the block, or inline it"
    )]
    RegistersElsewhere {
        /// The name of the Func.
        func: String,
        /// The stage that holds it in registers.
        stage: String,
        /// The other reader.
        consumer: String,
    },
    /// Funcs in registers are in the wrong order.
    #[error("`{consumer}` reads `{producer}`, which comes later in the registers; exchange them")]
    RegistersOrder {
        /// The Func that is read.
        producer: String,
        /// The Func that reads it.
        consumer: String,
    },
    /// A Func in registers writes neither its own point nor a fixed one.
    #[error(
        "`{stage}` writes where data or reduction variables say, which registers cannot follow; compute it in the block or at root"
    )]
    RegistersShape {
        /// The stage with these writes.
        stage: String,
    },
    /// A Func is in registers of a staged input.
    #[error("`{item}` is a copy of an input and reads no Func; put `{func}` under the stage that reads it")]
    RegistersOfInput {
        /// The name of the staged input.
        item: String,
        /// The name of the Func.
        func: String,
    },
    /// A size is zero.
    #[error("`{variable}` has size 0; write a positive number or `all`")]
    ZeroSize {
        /// The variable with the size.
        variable: String,
    },
    /// A tile names a variable that has no loop.
    #[error("`{item}` has no loop over `{variable}`; use one of its own variables")]
    NoLoop {
        /// The stage or staged input.
        item: String,
        /// The variable, as written.
        variable: String,
    },
    /// Two loops divide the same variable.
    #[error("`{variable}` of `{item}` is tiled twice; keep one")]
    SplitTwice {
        /// The stage or staged input.
        item: String,
        /// The divided variable.
        variable: String,
    },
    /// A stage is outside a loop over its own variable.
    #[error(
        "`{stage}` is not inside the loop over its variable `{variable}`; move it inside, or remove the loop"
    )]
    IdleLoop {
        /// The name of the stage.
        stage: String,
        /// The variable of the loop.
        variable: String,
    },
    /// Blocks or threads share a reduction variable with dependent values.
    #[error(
        "the values of `{variable}` of `{stage}` depend on each other, so {side} cannot compute them in parallel; run them serially"
    )]
    Dependent {
        /// The name of the stage.
        stage: String,
        /// The reduction variable.
        variable: String,
        /// Whether blocks or threads share the variable.
        side: Side,
    },
    /// Reduction loops are not in definition order, and the order matters.
    #[error(
        "`{outer}` of `{stage}` runs outside `{inner}`, but the definition has it inside and the order matters; exchange them"
    )]
    Reordered {
        /// The name of the stage.
        stage: String,
        /// The variable that is too far outside.
        outer: String,
        /// The variable that should be outside it.
        inner: String,
    },
    /// A private Func has a flat loop.
    #[error(
        "`{stage}` is private, but a flat loop does not fix which thread computes which point; use `threads`"
    )]
    PrivateFlat {
        /// The name of the stage.
        stage: String,
    },
    /// A thread reads values of a private Func that another thread wrote.
    #[error(
        "`{func}` is private, but threads of `{consumer}` read values of `{func}` that other threads computed; give both the same thread tiles and read it only at the same point, or write `shared`"
    )]
    PrivateRead {
        /// The name of the Func.
        func: String,
        /// The stage that reads it.
        consumer: String,
    },
    /// A Func in a block or thread has an extent that is not bounded by the tile.
    #[error(
        "`{func}` needs {extent} points along `{variable}` here, because the range of its readers' indices is not constant; clamp the index, inline `{func}`, or compute it at root"
    )]
    Unbounded {
        /// The Func or staged input.
        func: String,
        /// The unbounded dimension.
        variable: String,
        /// The number of points along it.
        extent: i64,
    },
    /// A Func needs too many bytes per thread.
    #[error(
        "`{func}` takes {bytes} bytes in each thread, more than the {limit} allowed; make the serial tile smaller"
    )]
    ThreadBytes {
        /// The name of the Func.
        func: String,
        /// Bytes needed per thread.
        bytes: u64,
        /// Bytes allowed per thread.
        limit: u64,
    },
    /// A kernel needs too much shared memory.
    #[error(
        "the kernel of `{stage}` takes {bytes} bytes of shared memory ({parts}), more than the {limit} of {device}; make the block smaller"
    )]
    SharedBytes {
        /// The kernel's own stage.
        stage: String,
        /// Bytes of shared memory needed.
        bytes: u64,
        /// The arrays, with their extents.
        parts: String,
        /// Bytes of shared memory per block on the device.
        limit: u64,
        /// The name of the device.
        device: String,
    },
    /// A nest needs too many threads.
    #[error(
        "`{item}` takes {threads} threads, more than the {limit} of a block on {device}; use fewer and a serial tile"
    )]
    Threads {
        /// The stage or staged input.
        item: String,
        /// Threads needed per block.
        threads: u64,
        /// Threads per block on the device.
        limit: u64,
        /// The name of the device.
        device: String,
    },
    /// A kernel needs too many blocks.
    #[error(
        "the kernel of `{stage}` takes {blocks} blocks, more than the {limit} of {device}; make the block larger"
    )]
    Grid {
        /// The kernel's own stage.
        stage: String,
        /// Blocks needed along x.
        blocks: u64,
        /// Blocks allowed along x on the device.
        limit: u64,
        /// The name of the device.
        device: String,
    },
    /// The device has not what a word takes.
    #[error("`{item}` cannot be `{word}`: {device} has no {feature}; remove it")]
    NoFeature {
        /// The stage or staged input.
        item: String,
        /// The word.
        word: &'static str,
        /// What the device lacks.
        feature: &'static str,
        /// The name of the device.
        device: String,
    },
    /// A word is set where it cannot be.
    #[error(transparent)]
    Word(Refusal),
}

impl<T: Into<Refusal>> From<T> for Rule {
    fn from(refusal: T) -> Rule {
        Rule::Word(refusal.into())
    }
}

impl Problem {
    /// The refusal of a word that takes what the device does not have.
    pub(crate) fn no_feature(&self, item: String, word: &'static str, feature: &'static str) -> Rule {
        Rule::NoFeature { item, word, feature, device: self.device().name.clone() }
    }
}
