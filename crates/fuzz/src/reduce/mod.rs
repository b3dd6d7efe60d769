//! The reducer: from a case that fails to a small one that fails in the same way.
//!
//! It tries one small change after the other, keeps each that leaves the failure in place and makes the case
//! smaller, and starts again until none does or time is up.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `pipelines` | changes of pipelines, down to single nodes |
//! | `boxes` | changes of boxes and Params |
//! | `schedules` | changes of schedules |
//! | `draft` | a pipeline whose tables can be changed |
//! | `adapt`, `place` | what a schedule and boxes become when the pipeline changes |
//! | `size` | which of two cases is the smaller |

mod adapt;
mod boxes;
mod draft;
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

/// How long a reduction takes at most, unless somebody says otherwise.
pub const REDUCTION_TIME: Duration = Duration::from_secs(20);

/// A case that could not be made smaller, or not in time.
#[derive(Debug)]
pub struct Reduced {
    /// The case.
    pub case: Case,
    /// What is wrong with it.
    pub failure: Failure,
    /// How many cases were tried.
    pub tried: u64,
    /// Whether time was up before all was tried.
    pub out_of_time: bool,
}

/// Makes a failing case smaller.
///
/// The result fails with the same [symptom](Failure::symptom): the same kind, and the same rule, error or place of a
/// panic. It is valid like any case, and no larger than `case`.
pub fn reduce(case: Case, failure: Failure, check: &Checker<'_>, time: Duration) -> Reduced {
    let symptom = failure.symptom();
    let deadline = Instant::now() + time;
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
    /// Whether the failure needs the schedule that it was found with.
    plain_passes: bool,
}

/// One change.
#[derive(Clone, Copy)]
enum Edit {
    Pipeline(PipelineEdit),
    Box(BoxEdit),
    Schedule(ScheduleEdit),
}

/// The changes of one sort, the sorts that make checking faster first.
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
    /// Tries every change once; whether one helped and there is time for more.
    fn round(&mut self) -> bool {
        let before = size(&self.reduced.case);
        for edits in SORTS {
            let mut position = 0;
            while let Some(edit) = edits(&self.reduced.case).get(position).copied() {
                if Instant::now() > self.deadline {
                    self.reduced.out_of_time = true;
                    return false;
                }
                // What follows moves up where a change is kept.
                if !self.attempt(edit) {
                    position += 1;
                }
            }
        }
        size(&self.reduced.case) < before
    }

    /// Keeps a change if the case is smaller and fails in the same way.
    fn attempt(&mut self, edit: Edit) -> bool {
        let case = &self.reduced.case;
        // What made the case fail may also strike here.
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

    /// Whether a changed pipeline may read what it never wrote, which is a mistake of its own: it has points without
    /// a start, and fails under the plainest schedule where the pipeline it comes from did not.
    fn reads_undefined(&self, case: &Case) -> bool {
        let undefined = |func: &FuncDecl| func.stages[0].values.is_empty();
        self.plain_passes
            && case.pipeline.funcs().values().any(undefined)
            && plain(case).is_none_or(|plain| (self.check)(&plain).is_err())
    }
}

/// The case with every Func in a kernel of its own.
fn plain(case: &Case) -> Option<Case> {
    let regions = infer(&case.pipeline, &case.request).ok()?;
    Edit::Schedule(ScheduleEdit::Plain).apply(case, &regions)
}

#[cfg(test)]
mod tests {
    use warploom_randpipe::{Options, RandomPipeline, random_pipeline};
    use warploom_schedule::schedule::{Schedule, check};
    use warploom_target::Device;

    use super::*;

    /// Every change of random cases gives a case that is well formed, and mostly one with a legal schedule.
    #[test]
    fn changes_leave_cases_whole() {
        let device = Device::preset("h200").unwrap();
        for (number, edits) in SORTS.into_iter().enumerate() {
            let (mut tried, mut legal) = (0, 0);
            for seed in 0..6 {
                let RandomPipeline { pipeline, request, .. } = random_pipeline(seed, &Options::default());
                let regions = infer(&pipeline, &request).unwrap();
                let schedule = Schedule::random(&pipeline, &regions, &device, seed);
                let case = Case { pipeline, request, schedule, seed };
                for changed in edits(&case).into_iter().filter_map(|edit| edit.apply(&case, &regions)) {
                    let Ok(regions) = infer(&changed.pipeline, &changed.request) else { continue };
                    let text = changed.schedule.to_text(&changed.pipeline);
                    assert_eq!(Schedule::parse(&text, &changed.pipeline), Ok(changed.schedule.clone()));
                    tried += 1;
                    legal +=
                        u32::from(check(&changed.schedule, &changed.pipeline, &regions, &device).is_ok());
                }
            }
            assert!(tried > 50 && 10 * legal > 8 * tried, "sort {number}: {legal} of {tried} are legal");
        }
    }
}
