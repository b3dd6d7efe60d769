//! The reducer: shrinks a failing case to a small one that fails in the same way.
//!
//! It tries small edits one by one, and keeps each edit that preserves the failure and makes the
//! case smaller. It repeats this until no edit helps or time is up.
//!
//! | file | contents |
//! | --- | --- |
//! | `pipelines` | edits of pipelines, down to single nodes |
//! | `boxes` | edits of boxes and Params |
//! | `schedules` | edits of schedules |
//! | `adapt`, `place` | adapting schedule and boxes to a changed pipeline |
//! | `size` | a measure of the size of a case |

mod adapt;
mod boxes;
mod pipelines;
mod place;
mod schedules;
mod size;

use std::time::{Duration, Instant};

use warploom_lang::ir::FuncDecl;
use warploom_lang::{Pipeline, Regions, infer};

use crate::case::Case;
use crate::check::Failure;
use crate::driver::Checker;
use crate::panics::catch;
use crate::reduce::boxes::{BoxEdit, box_edits};
use crate::reduce::pipelines::{PipelineEdit, expression_edits, func_edits, stage_edits};
use crate::reduce::schedules::{ScheduleEdit, schedule_edits};
use crate::reduce::size::size;

/// Default time limit of a reduction.
pub const REDUCTION_TIME: Duration = Duration::from_secs(20);

/// The result of a reduction.
#[derive(Debug)]
pub struct Reduced {
    /// The smallest failing case found.
    pub case: Case,
    /// The failure of that case.
    pub failure: Failure,
    /// Number of cases tried.
    pub tried: u64,
    /// Whether the time limit ended the reduction.
    pub out_of_time: bool,
}

/// Reduces a failing case.
///
/// The result fails with the same [symptom](Failure::symptom): the same kind, and the same rule,
/// error or panic location. It is a valid case, and not larger than `case`.
pub fn reduce(case: Case, failure: Failure, check: &Checker<'_>, time: Duration) -> Reduced {
    let symptom = failure.symptom();
    let deadline = Instant::now() + time;
    let (case, failure) = match original(&case).map(|original| (check(&original), original)) {
        None => (case, failure),
        Some((Err(same), original)) if same.symptom() == symptom => (original, same),
        // The failure depends on the rewrites, whose names do not survive edits of the pipeline.
        Some(_) => return Reduced { case, failure, tried: 1, out_of_time: false },
    };
    let plain_passes = plain(&case).is_some_and(|plain| check(&plain).is_ok());
    let reduced = Reduced { case, failure, tried: 0, out_of_time: false };
    let mut reducer = Reducer { reduced, symptom, check, deadline, plain_passes };
    while reducer.round() {}
    reducer.reduced
}

struct Reducer<'a> {
    reduced: Reduced,
    symptom: String,
    check: &'a Checker<'a>,
    deadline: Instant,
    /// Whether the case passes with the plain schedule, so that the failure depends on the
    /// schedule.
    plain_passes: bool,
}

/// A single edit.
#[derive(Clone, Copy)]
enum Edit {
    Pipeline(PipelineEdit),
    Box(BoxEdit),
    Schedule(ScheduleEdit),
}

/// Edits by category. Categories that speed up checking come first.
const SORTS: [fn(&Case) -> Vec<Edit>; 5] = [
    |case| pipeline_edits(func_edits, case),
    |case| box_edits(case).into_iter().map(Edit::Box).collect(),
    |case| schedule_edits(&case.pipeline, &case.schedule).into_iter().map(Edit::Schedule).collect(),
    |case| pipeline_edits(stage_edits, case),
    |case| pipeline_edits(expression_edits, case),
];

fn pipeline_edits(edits: fn(&Pipeline) -> Vec<PipelineEdit>, case: &Case) -> Vec<Edit> {
    edits(&case.pipeline).into_iter().map(Edit::Pipeline).collect()
}

impl Edit {
    fn apply(self, case: &Case, regions: &Regions) -> Option<Case> {
        match self {
            Edit::Pipeline(edit) => edit.apply(case, regions),
            Edit::Box(edit) => Some(edit.apply(case, regions)),
            Edit::Schedule(edit) => {
                let schedule = edit.apply(&case.schedule, &case.pipeline, regions);
                Some(Case { schedule, ..case.clone() })
            }
        }
    }
}

impl Reducer<'_> {
    /// Tries every edit once. Returns whether an edit helped and there is time for another round.
    fn round(&mut self) -> bool {
        let before = size(&self.reduced.case);
        for edits in SORTS {
            let mut position = 0;
            while let Some(edit) = edits(&self.reduced.case).get(position).copied() {
                if Instant::now() > self.deadline {
                    self.reduced.out_of_time = true;
                    return false;
                }
                // After a successful edit, the next one is at the same position.
                if !self.attempt(edit) {
                    position += 1;
                }
            }
        }
        size(&self.reduced.case) < before
    }

    /// Keeps an edit if the case is smaller and fails in the same way.
    fn attempt(&mut self, edit: Edit) -> bool {
        let case = &self.reduced.case;
        // The edit itself may hit the same bug and panic.
        let changed = catch(|| {
            let regions = infer(&case.pipeline, &case.request).ok()?;
            let changed = edit.apply(case, &regions).filter(|changed| size(changed) < size(case));
            changed.filter(|changed| infer(&changed.pipeline, &changed.request).is_ok())
        });
        let Ok(Some(changed)) = changed else { return false };
        if !matches!(edit, Edit::Schedule(_)) && self.reads_undefined(&changed) {
            return false;
        }
        self.reduced.tried += 1;
        match (self.check)(&changed) {
            Err(failure) if failure.symptom() == self.symptom => {
                self.reduced.case = changed;
                self.reduced.failure = failure;
                true
            }
            _ => false,
        }
    }

    /// Whether a changed pipeline may read uninitialised values, which would be a fault of the
    /// edit: it has a Func with an undefined initial value, and fails under the plain schedule
    /// where the original pipeline passed.
    fn reads_undefined(&self, case: &Case) -> bool {
        let undefined = |func: &FuncDecl| func.stages[0].values.is_empty();
        self.plain_passes
            && case.pipeline.funcs().values().any(undefined)
            && plain(case).is_none_or(|plain| (self.check)(&plain).is_err())
    }
}

/// For a case with rewrites, the same case with the rewritten pipeline as an original one.
fn original(case: &Case) -> Option<Case> {
    let mut case = case.rewritten().ok().filter(|case| !case.schedule.rewrites.is_empty())?;
    case.pipeline = Pipeline::from_json(&case.pipeline.to_json()).ok()?;
    case.schedule.rewrites.clear();
    Some(case)
}

/// The case with every Func in its own kernel.
fn plain(case: &Case) -> Option<Case> {
    let regions = infer(&case.pipeline, &case.request).ok()?;
    Edit::Schedule(ScheduleEdit::Plain).apply(case, &regions)
}

#[cfg(test)]
mod tests {
    use warploom_plan::Problem;
    use warploom_randpipe::{Options, RandomPipeline, random_pipeline};
    use warploom_schedule::Schedule;
    use warploom_target::Device;

    use super::*;

    /// Every edit of a random case gives a well-formed case, usually with a legal schedule.
    #[test]
    fn changes_leave_cases_whole() {
        let device = Device::preset("h200").unwrap();
        for (number, edits) in SORTS.into_iter().enumerate() {
            let (mut tried, mut legal) = (0, 0);
            for seed in 0..6 {
                let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &Options::default());
                let problem = Problem::new(&pipeline, &request, &device).unwrap();
                let schedule = problem.random_schedule(seed);
                let case = Case { pipeline, request, schedule, seed };
                for changed in
                    edits(&case).into_iter().filter_map(|edit| edit.apply(&case, problem.regions()))
                {
                    let changed_problem = Problem::new(&changed.pipeline, &changed.request, &device);
                    let Ok(changed_problem) = changed_problem else { continue };
                    let text = changed.schedule.to_text(&changed.pipeline);
                    assert_eq!(Schedule::parse(&text, &changed.pipeline), Ok(changed.schedule.clone()));
                    tried += 1;
                    legal += u32::from(changed_problem.check(&changed.schedule).is_ok());
                }
            }
            assert!(tried > 50 && 10 * legal > 8 * tried, "sort {number}: {legal} of {tried} are legal");
        }
    }
}
