//! Changes that lead from one schedule to another, each a value that prints, parses and replays.

use thiserror::Error;
use warploom_lang::{FuncId, Pipeline};

use crate::error::ScheduleErrors;
use crate::names::Names;
use crate::tree::{RootItem, Schedule, StageRef};

/// One change of a schedule.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::{Change, Schedule};
/// let x = vars!(x);
/// let ramp = func("ramp", x, x * 3);
/// let blur = func("blur", x, ramp.at(x) + ramp.at(x + 1));
/// let pipeline = Pipeline::new("blur", [blur])?;
/// let from = Schedule::parse("blur\n  kernel ramp flat\n  kernel blur flat\n", &pipeline)?;
/// let to = Schedule::parse("blur inline ramp\n  kernel blur block x 32 threads x 32\n", &pipeline)?;
///
/// let changes = Change::between(&from, &to);
/// let texts: Vec<String> = changes.iter().map(|change| change.to_text(&pipeline)).collect();
/// assert_eq!(texts, [
///     "inline ramp",
///     "remove ramp",
///     "remove blur",
///     "put 0\n  kernel blur  block x 32  threads x 32",
/// ]);
/// let mut replayed = from.clone();
/// for text in &texts {
///     Change::parse(text, &pipeline)?.apply(&mut replayed);
/// }
/// assert_eq!(replayed, to);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// Computes a Func wherever it is used.
    Inline(FuncId),
    /// Computes a Func at a place of its own, which a later change gives.
    Place(FuncId),
    /// Removes the kernel of a stage, together with the loops around it.
    Remove(StageRef),
    /// Inserts a kernel, or loops around kernels, at a position of the root.
    Put(usize, RootItem),
}

/// A text that is not a change.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ChangeError {
    /// The first line has none of the four forms.
    #[error(
        "`{0}` is not a change; write `inline FUNC`, `place FUNC`, `remove STAGE`, or `put POSITION` with a kernel below it"
    )]
    Word(String),
    /// A name or a line of a kernel is wrong.
    #[error(transparent)]
    Rest(#[from] ScheduleErrors),
}

impl Change {
    /// The changes that lead from one schedule of a pipeline to another, in order.
    pub fn between(from: &Schedule, to: &Schedule) -> Vec<Change> {
        let mut changes: Vec<Change> =
            to.inlined.difference(&from.inlined).copied().map(Change::Inline).collect();
        changes.extend(from.inlined.difference(&to.inlined).copied().map(Change::Place));
        // The items that both schedules have, in the order of both.
        let mut next = 0;
        let mut kept: Vec<&RootItem> = Vec::new();
        for item in &from.root {
            match to.root[next..].iter().position(|other| other == item) {
                Some(position) => {
                    next += position + 1;
                    kept.push(item);
                }
                None => changes.extend(item.kernels().next().map(|kernel| Change::Remove(kernel.stage))),
            }
        }
        let mut kept = kept.into_iter().peekable();
        for (position, item) in to.root.iter().enumerate() {
            if kept.next_if(|kept| *kept == item).is_none() {
                changes.push(Change::Put(position, item.clone()));
            }
        }
        changes
    }

    /// Changes a schedule of the same pipeline.
    pub fn apply(&self, schedule: &mut Schedule) {
        match self {
            Change::Inline(func) => _ = schedule.inlined.insert(*func),
            Change::Place(func) => _ = schedule.inlined.remove(func),
            Change::Remove(stage) => {
                let own =
                    |item: &RootItem| item.kernels().next().is_some_and(|kernel| kernel.stage == *stage);
                if let Some(position) = schedule.root.iter().position(own) {
                    schedule.root.remove(position);
                }
            }
            Change::Put(position, item) => {
                schedule.root.insert((*position).min(schedule.root.len()), item.clone());
            }
        }
    }

    /// One line, or for [`Change::Put`] one line and those of the kernel.
    pub fn to_text(&self, pipeline: &Pipeline) -> String {
        let names = Names::new(pipeline);
        match self {
            Change::Inline(func) => format!("inline {}", names.of_func(*func)),
            Change::Place(func) => format!("place {}", names.of_func(*func)),
            Change::Remove(stage) => format!("remove {}", names.of_stage(*stage)),
            Change::Put(position, item) => {
                let rewrites = pipeline.rewrites().to_vec();
                let head = 1 + rewrites.len();
                let alone = Schedule { rewrites, root: vec![item.clone()], ..Schedule::default() };
                let alone = alone.to_text(pipeline);
                let lines: Vec<&str> = alone.lines().skip(head).collect();
                format!("put {position}\n{}", lines.join("\n"))
            }
        }
    }

    /// Parses the text of [`Change::to_text`].
    ///
    /// # Errors
    /// If the text is not a change, or names something that the pipeline does not have.
    pub fn parse(text: &str, pipeline: &Pipeline) -> Result<Change, ChangeError> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let wrong = || ChangeError::Word(first.to_string());
        // The text form of schedules parses names and kernels, and reports their faults.
        let schedule = |lines: String| {
            let (first, below) = lines.split_once('\n').unwrap_or((&lines, ""));
            let rewrites: String = pipeline.rewrites().iter().map(|line| format!("  {line}\n")).collect();
            let text = format!("{}{first}\n{rewrites}{below}\n", pipeline.name());
            Schedule::parse(&text, pipeline).map_err(ChangeError::Rest)
        };
        let inlined = |func: &str| -> Result<Option<FuncId>, ChangeError> {
            Ok(schedule(format!(" inline {func}"))?.inlined.pop_first())
        };
        let change = match first.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["inline", func] => inlined(func)?.map(Change::Inline),
            ["place", func] => inlined(func)?.map(Change::Place),
            ["remove", stage] => {
                let lone = schedule(format!("\n  kernel {stage} flat"))?;
                lone.kernels().next().map(|kernel| Change::Remove(kernel.stage))
            }
            ["put", position] => {
                let position = position.parse().map_err(|_| wrong())?;
                schedule(format!("\n{rest}"))?.root.pop().map(|item| Change::Put(position, item))
            }
            _ => None,
        };
        change.ok_or_else(wrong)
    }
}
