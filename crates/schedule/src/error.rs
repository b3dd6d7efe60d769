//! Faults in the text of a schedule. Each is reported in one sentence, with the line it is in.

use std::fmt;

use thiserror::Error;
use warploom_lang::brief::{MAX_QUOTED, shown};
use warploom_lang::rewrite::RewriteError;

/// A fault in the text of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ScheduleFault {
    /// The text has no content.
    #[error("the schedule is empty; start with the name of the pipeline, `{pipeline}`")]
    Empty {
        /// The name of the expected pipeline.
        pipeline: String,
    },
    /// The schedule belongs to another pipeline.
    #[error(
        "this is a schedule of `{found}`, but the pipeline is `{pipeline}`; load that pipeline's schedule, or change the first word"
    )]
    WrongPipeline {
        /// The pipeline name in the text.
        found: String,
        /// The name of the expected pipeline.
        pipeline: String,
    },
    /// A line starts with a tab.
    #[error("this line starts with a tab; indent with two spaces per level")]
    Tab,
    /// The indentation of a line matches no level above it.
    #[error("this line is indented by {found}, which matches no level above; use {expected}")]
    Indentation {
        /// The number of leading spaces.
        found: usize,
        /// The numbers of spaces that would match.
        expected: String,
    },
    /// A line is nested too deeply.
    #[error("this line stands more than {limit} levels deep; write consecutive loops on one line")]
    TooDeep {
        /// The maximum number of levels.
        limit: usize,
    },
    /// The pipeline has no item with this name.
    #[error("`{name}` is not a {kind} of `{pipeline}`{}", or(.hint, "; use a name that `warploom graph` shows"))]
    Unknown {
        /// The unknown name, as written.
        name: String,
        /// The kind of item expected here.
        kind: &'static str,
        /// The name of the pipeline.
        pipeline: String,
        /// A suggestion; may be empty.
        hint: String,
    },
    /// A Func is named where one of its stages is needed.
    #[error("`{func}` has {stages} stages; name one of them, {}", numbered(.func, *.stages))]
    StageNumber {
        /// The name of the Func.
        func: String,
        /// The number of stages of the Func.
        stages: usize,
    },
    /// The Func has no stage with this number.
    #[error("there is no stage `{stage}`: `{func}` has {}", stages_of(.func, *.stages))]
    NoSuchStage {
        /// The stage, as written.
        stage: String,
        /// The name of the Func.
        func: String,
        /// The number of stages of the Func.
        stages: usize,
    },
    /// A stage is named where a whole Func is needed.
    #[error("`{stage}` is one stage, but all stages of a Func must be given together here; write `{func}`")]
    WholeFunc {
        /// The name of the stage.
        stage: String,
        /// The Func of the stage.
        func: String,
    },
    /// An input is named without `.stage`.
    #[error("`{input}` is an input, which is not computed; write `{input}.stage` for a copy of it")]
    InputName {
        /// The name of the input.
        input: String,
    },
    /// The stage has no reduction variable with this name.
    #[error("`{variable}` is not a reduction variable of `{stage}`, which has {}{hint}", list(.known))]
    NoReduction {
        /// The name of the stage.
        stage: String,
        /// The variable, as written.
        variable: String,
        /// The reduction variables of the stage.
        known: Vec<String>,
        /// A suggestion; may be empty.
        hint: String,
    },
    /// The stage has no loop over this variable.
    #[error("`{item}` has no loop over `{variable}`; it has loops over {}{hint}", list(.known))]
    NoLoop {
        /// The stage or staged input.
        item: String,
        /// The variable, as written.
        variable: String,
        /// The variables of its loops.
        known: Vec<String>,
        /// A suggestion; may be empty.
        hint: String,
    },
    /// A word is not allowed at this position.
    #[error("`{found}` is not allowed here; write {expected}{hint}")]
    Unexpected {
        /// The word, as written.
        found: String,
        /// What is allowed at this position.
        expected: &'static str,
        /// A suggestion; may be empty.
        hint: String,
    },
    /// A line ends too early.
    #[error("something is missing after `{after}`; write {expected}")]
    Missing {
        /// The last word before the gap.
        after: String,
        /// What should follow.
        expected: &'static str,
    },
    /// A size is not valid.
    #[error("`{found}` is not a size; write a number from 1 to {}, or `all`", u32::MAX)]
    Size {
        /// The text found in place of a size.
        found: String,
    },
    /// Something is specified twice.
    #[error("`{word}` is repeated; write it once")]
    Repeated {
        /// The repeated word.
        word: String,
    },
    /// `flat` is combined with explicit loops.
    #[error(
        "`flat` spreads all points over all threads, so `{word}` has no meaning beside it; remove one of them"
    )]
    FlatWith {
        /// The word that conflicts with `flat`.
        word: String,
    },
    /// A stage has neither `flat` nor `threads`.
    #[error(
        "the thread mapping of `{item}` is missing; write `flat`, or `threads` with one size per variable"
    )]
    NoMapping {
        /// The stage or staged input.
        item: String,
    },
    /// A line is below one that cannot have children.
    #[error("nothing can stand below {outer}; {remedy}")]
    Nested {
        /// What kind of line the parent is.
        outer: &'static str,
        /// Where the line is allowed.
        remedy: &'static str,
    },
    /// A Func in registers is not below a stage.
    #[error("`{func}` in registers belongs to the stage that reads it; write it below that stage, indented")]
    RegistersPlace {
        /// The name of the Func.
        func: String,
    },
    /// A rewrite that cannot be read or applied.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// A rewrite below a kernel.
    #[error("a rewrite comes before all kernels, because they describe the rewritten pipeline; move it up")]
    LateRewrite,
    /// A builder method modifies a stage before there is one.
    #[error("`{word}` comes before any stage; name one first, with `flat` or `threads`")]
    NoStage {
        /// The method that was called.
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

/// A position in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The line number, 1-based.
    pub line: usize,
    /// The character column in the line, 1-based.
    pub column: usize,
    /// The number of characters to underline.
    pub length: usize,
    /// The line, or the part around the position if the line is long.
    pub text: String,
    /// The number of characters of `text` before the position.
    pub margin: usize,
}

/// How many characters before the position are shown of a long line.
const BEFORE: usize = MAX_QUOTED / 3;

impl Spot {
    /// A position that starts at byte `start` of a line.
    pub fn new(line: usize, text: &str, start: usize, column: usize, length: usize) -> Spot {
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

/// A [`ScheduleFault`] and its position.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{fault}{}", below(.spot))]
pub struct ScheduleError {
    /// What is wrong, with a suggested fix.
    pub fault: ScheduleFault,
    /// Where it is; `None` if the schedule was not read from a text.
    pub spot: Option<Spot>,
}

pub(crate) fn below(spot: &Option<Spot>) -> String {
    spot.as_ref().map(|spot| format!("\n{spot}")).unwrap_or_default()
}

/// All faults in a schedule's text, in line order; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleErrors {
    /// One entry per fault.
    pub errors: Vec<ScheduleError>,
}

impl fmt::Display for ScheduleErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.errors, "\n\n"))
    }
}

impl std::error::Error for ScheduleErrors {}
