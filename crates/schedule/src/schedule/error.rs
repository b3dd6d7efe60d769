//! What can be wrong with the text of a schedule, said in one sentence each, with the line it stands in.

use std::fmt;

use thiserror::Error;
use warploom_lang::brief::{MAX_QUOTED, shown};

/// A mistake in the text of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ScheduleFault {
    /// No text at all.
    #[error("the schedule is empty; start with the name of the pipeline, `{pipeline}`")]
    Empty {
        /// The pipeline.
        pipeline: String,
    },
    /// A schedule of another pipeline.
    #[error(
        "this is a schedule of `{found}`, but the pipeline is `{pipeline}`; load the schedule of that one, or change the first word"
    )]
    WrongPipeline {
        /// The name in the text.
        found: String,
        /// The pipeline.
        pipeline: String,
    },
    /// A tab in front of a line.
    #[error("a tab stands in front of this line; indent with two spaces for each level")]
    Tab,
    /// A line that belongs to none of those above it.
    #[error("this line is indented by {found}, which is no level of the lines above; use {expected}")]
    Indentation {
        /// Spaces there are.
        found: usize,
        /// Spaces that would do.
        expected: String,
    },
    /// A line below too many others.
    #[error("this line stands more than {limit} levels deep; write loops that follow each other in one line")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A name that the pipeline does not have.
    #[error("`{name}` is no {kind} of `{pipeline}`{}", or(.hint, "; use a name that `warploom graph` shows"))]
    Unknown {
        /// The name.
        name: String,
        /// What was wanted.
        kind: &'static str,
        /// The pipeline.
        pipeline: String,
        /// What may have been meant.
        hint: String,
    },
    /// A Func where one of its stages is needed.
    #[error("`{func}` has {stages} stages; name one of them, {}", numbered(.func, *.stages))]
    StageNumber {
        /// The Func.
        func: String,
        /// How many stages it has.
        stages: usize,
    },
    /// A stage that the Func does not have.
    #[error("there is no stage `{stage}`: `{func}` has {}", stages_of(.func, *.stages))]
    NoSuchStage {
        /// What was written.
        stage: String,
        /// The Func.
        func: String,
        /// How many stages it has.
        stages: usize,
    },
    /// A stage where a whole Func is needed.
    #[error("`{stage}` is one stage, but all stages of a Func go together here; write `{func}`")]
    WholeFunc {
        /// The stage.
        stage: String,
        /// Its Func.
        func: String,
    },
    /// A name that stands for two things.
    #[error("`{name}` stands for two things of the pipeline; rename one of its Funcs")]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// An input that is not staged.
    #[error("`{input}` is an input, which is computed nowhere; write `{input}.stage` for a copy of it")]
    InputName {
        /// The input.
        input: String,
    },
    /// A variable that is no reduction variable of the stage.
    #[error("`{variable}` is no reduction variable of `{stage}`, which has {}{hint}", list(.known))]
    NoReduction {
        /// The stage.
        stage: String,
        /// What was written.
        variable: String,
        /// The reduction variables it has.
        known: Vec<String>,
        /// What may have been meant.
        hint: String,
    },
    /// A variable that has no loop in the stage.
    #[error("`{item}` has no loop over `{variable}`; it has loops over {}{hint}", list(.known))]
    NoLoop {
        /// The stage or staged input.
        item: String,
        /// What was written.
        variable: String,
        /// The variables it has loops over.
        known: Vec<String>,
        /// What may have been meant.
        hint: String,
    },
    /// A word that cannot stand where it does.
    #[error("`{found}` cannot stand here; write {expected}{hint}")]
    Unexpected {
        /// The word.
        found: String,
        /// What can.
        expected: &'static str,
        /// What may have been meant.
        hint: String,
    },
    /// A line that ends too early.
    #[error("something is missing after `{after}`; write {expected}")]
    Missing {
        /// The last word before the gap.
        after: String,
        /// What should follow.
        expected: &'static str,
    },
    /// A size that is none.
    #[error("`{found}` is no size; write a number from 1 to {}, or `all`", u32::MAX)]
    Size {
        /// What was written.
        found: String,
    },
    /// Something said twice.
    #[error("`{word}` was there before; write it once")]
    Repeated {
        /// The word.
        word: String,
    },
    /// A flat loop with loops of its own.
    #[error(
        "`flat` spreads all points over all threads, so `{word}` has no meaning beside it; remove one of them"
    )]
    FlatWith {
        /// The other word.
        word: String,
    },
    /// A stage that no threads compute.
    #[error(
        "nothing says how threads share `{item}`; write `flat`, or `threads` with a size for each variable"
    )]
    NoMapping {
        /// The stage or staged input.
        item: String,
    },
    /// A line below one that holds nothing.
    #[error("nothing can stand below {outer}; {remedy}")]
    Nested {
        /// What the line above is.
        outer: &'static str,
        /// Where the line may stand.
        remedy: &'static str,
    },
    /// A Func in registers that stands below no stage.
    #[error(
        "`{func}` in registers belongs to the stage that reads it; write it below that stage, further indented"
    )]
    RegistersPlace {
        /// The Func.
        func: String,
    },
    /// A change of a stage before there is one; only from a builder.
    #[error("`{word}` comes before any stage; name one first, with `flat` or `threads`")]
    NoStage {
        /// What was called.
        word: &'static str,
    },
}

fn or(hint: &str, otherwise: &str) -> String {
    if hint.is_empty() { otherwise.to_string() } else { hint.to_string() }
}

fn numbered(func: &str, stages: usize) -> String {
    match stages {
        2 => format!("`{func}.0` or `{func}.1`"),
        _ => format!("`{func}.0` to `{func}.{}`", stages - 1),
    }
}

fn stages_of(func: &str, stages: usize) -> String {
    match stages {
        1 => format!("one stage; write `{func}`"),
        _ => format!("{stages}; write {}", numbered(func, stages)),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_string(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Where in a text something stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// How many characters it takes.
    pub length: usize,
    /// The line; of a long one, the part around the place.
    pub text: String,
    /// How many characters of `text` are in front of the place.
    pub margin: usize,
}

/// Characters in front of a place that are shown of a long line.
const BEFORE: usize = MAX_QUOTED / 3;

impl Spot {
    /// A place from a byte of a line on.
    pub(crate) fn new(line: usize, text: &str, start: usize, column: usize, length: usize) -> Spot {
        if text.len() <= MAX_QUOTED {
            return Spot { line, column, length, text: text.replace('\t', " "), margin: column - 1 };
        }
        let before = text[..start].char_indices().rev().take(BEFORE).last();
        let from = before.map_or(start, |(at, _)| at);
        let rest = text[from..].char_indices().nth(MAX_QUOTED);
        let to = rest.map_or(text.len(), |(at, _)| from + at);
        let cut = |is_cut: bool| if is_cut { "..." } else { "" };
        let (front, back) = (cut(from > 0), cut(to < text.len()));
        let margin = front.len() + text[from..start].chars().count();
        let length = length.min(text[start..to].chars().count());
        let text = format!("{front}{}{back}", text[from..to].replace('\t', " "));
        Spot { line, column, length, text, margin }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let margin = " ".repeat(self.line.to_string().len());
        writeln!(f, "{margin}--> line {}, column {}", self.line, self.column)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{} | {}", self.line, self.text)?;
        let before = " ".repeat(self.margin);
        write!(f, "{margin} | {before}{}", "^".repeat(self.length.max(1)))
    }
}

/// A [`ScheduleFault`] and where it stands.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{fault}{}", below(.spot))]
pub struct ScheduleError {
    /// What is wrong.
    pub fault: ScheduleFault,
    /// Where; `None` for schedules that were not read from a text.
    pub spot: Option<Spot>,
}

pub(crate) fn below(spot: &Option<Spot>) -> String {
    spot.as_ref().map(|spot| format!("\n{spot}")).unwrap_or_default()
}

/// Everything that is wrong with a schedule's text, in the order of its lines; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleErrors {
    /// The mistakes.
    pub errors: Vec<ScheduleError>,
}

impl fmt::Display for ScheduleErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.errors, "\n\n"))
    }
}

impl std::error::Error for ScheduleErrors {}
