//! Decisions that are a word on the line of a nest or kernel: one file each, and one table of all.
//!
//! A file says of its word what it means, when it is refused, where it is possible, how random schedules draw it, which
//! edits refinement tries, and what it changes of the accesses of a block. Rules, random schedules, coverage, refinement,
//! bodies and the points of spaces go through [`DECISIONS`] and name no word; kernels that the search makes as a whole do.

mod ahead;
mod atomic;
mod blocks;
mod edit;
mod interleave;
mod lanes;
mod open;
mod pitch;
mod rows;
mod slide;
mod transpose;
mod vector;

use thiserror::Error;
use warploom_schedule::{Mapping, Names, Nest, Path, Setting};

use crate::body::{Builder, Part};
use crate::legality::rule::Rule;
use crate::plan::{KernelPlan, NestPlan, Plan};
use crate::problem::Problem;
use crate::random::{Generator, Turn};

pub use atomic::atomic_shares;
pub use edit::{Edit, Tree, edits};
pub use interleave::{adjacent, interleaved};
pub use open::{Open, Row, Values, open};

/// A kernel or one of its nests, in a plan.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// What is scheduled.
    pub problem: &'a Problem,
    /// The plan of a schedule.
    pub plan: &'a Plan,
    /// A kernel of the plan.
    pub kernel: &'a KernelPlan,
    /// A nest of the kernel, or `None` if this is about the kernel itself.
    pub nest: Option<&'a NestPlan>,
}

/// What is wrong with a word, and where.
pub type Refusals = Vec<(Path, Rule)>;

/// What a decision is and offers.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The word of the text form, which a field of the numbers of a nest or kernel has.
    pub word: &'static str,
    /// What it decides, as `docs/schedules.md` lists it.
    pub about: &'static str,
    /// The words that no line has beside this one.
    pub excludes: &'static [&'static str],
    /// Whether it is about the points of a thread, so that it goes where threads get others.
    pub of_points: bool,
    /// What refinement tries, and what lists of neighbours contain.
    pub edits: &'static [Edit],
    /// How the points of a space choose the word, if they do.
    pub open: Option<&'static dyn Open>,
}

/// A decision that is one word.
pub trait Decision: Sync {
    /// What it is and offers.
    fn facts(&self) -> Facts;

    /// The rules that the word breaks, where it is set.
    fn refusals(&self, at: &Line<'_>) -> Refusals;

    /// Whether the word could be set, and would change something.
    fn is_possible(&self, at: &Line<'_>) -> bool;

    /// What the word changes of the accesses of a part of a block, beyond the plan: kinds, slices, vectors.
    fn apply(&self, _: &mut Part<'_>, _: &Builder<'_, '_>) {}

    /// Sets the word in random places, in one of the turns of a random schedule.
    fn draw(&self, generator: &mut Generator<'_>, turn: Turn);
}

impl Facts {
    const PLAIN: Facts =
        Facts { word: "", about: "", excludes: &[], of_points: false, edits: &[], open: None };
}

/// All decisions that are one word, in the order in which rules report them, random schedules draw them in each turn, and
/// refinement tries them: first how arrays lie in memory, then how threads share points, then what is copied ahead, which
/// vectors depend on, and last what the whole kernel is held to.
pub const DECISIONS: &[&dyn Decision] = &[
    &transpose::Transpose,
    &pitch::Pitch,
    &interleave::Interleave,
    &atomic::Atomic,
    &lanes::Lanes,
    &slide::Slide,
    &ahead::Ahead,
    &vector::Vector,
    &blocks::Blocks,
];

macro_rules! refusals {
    ($($variant:ident $refusal:ty,)*) => {
        /// A rule on a word that a schedule breaks, by decision.
        #[allow(missing_docs, reason = "each is that of the decision of its name")]
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Error)]
        #[non_exhaustive]
        pub enum Refusal {
            $(#[error(transparent)] $variant(#[from] $refusal),)*
        }
    };
}

refusals! {
    Rows rows::RowsRefusal,
    Interleave interleave::InterleaveRefusal,
    Atomic atomic::AtomicRefusal,
    Lanes lanes::LanesRefusal,
    Slide slide::SlideRefusal,
    Ahead ahead::AheadRefusal,
    Vector vector::VectorRefusal,
    Blocks blocks::BlocksRefusal,
}

impl Line<'_> {
    /// Whether a word is set here.
    pub fn has(&self, word: &str) -> bool {
        match self.nest {
            Some(nest) => nest.nest.numbers.given().any(|(given, _)| given == word),
            None => self.kernel.kernel.numbers.given().any(|(given, _)| given == word),
        }
    }

    /// A rule that this line breaks.
    fn refuse(&self, rule: impl Into<Rule>) -> Refusals {
        let path = self.nest.map_or(&self.kernel.path, |nest| &nest.path);
        vec![(path.clone(), rule.into())]
    }

    /// The name of what a nest computes or copies, or of the stage of a kernel.
    fn item(&self) -> String {
        let names = Names::new(self.problem.pipeline());
        self.nest
            .map_or_else(|| names.of_stage(self.kernel.kernel.stage), |nest| names.of_item(nest.nest.item))
    }
}

/// Lets threads share the points of a nest in another way, without the words that were about its points.
pub fn remap(nest: &mut Nest, mapping: Mapping) {
    nest.mapping = mapping;
    for facts in DECISIONS.iter().map(|decision| decision.facts()).filter(|facts| facts.of_points) {
        if let Some(Setting::Flag(flag)) = nest.numbers.of_word(facts.word) {
            *flag = false;
        }
    }
}
