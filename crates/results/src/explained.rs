//! Explanations of schedules: as text, as pages, compared, and across ranges of sizes.

mod against;
mod page;
mod ranges;
mod words;

use warploom::cost::CostModel;
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::schedule_file::{ScheduleFileError, rewritten, unbuilt};
use warploom::show;
use warploom::target::Device;
use warploom::tune::explain::{Explanation, microseconds};

pub use against::Against;
pub use page::page;
pub use ranges::{Ranges, described};

/// A schedule with what is predicted of it.
pub struct Explained {
    /// Where the schedule comes from.
    pub source: String,
    /// The schedule.
    pub schedule: Schedule,
    /// The problem of the pipeline that the schedule describes.
    pub problem: Problem,
    /// What its kernels do.
    pub explanation: Explanation,
}

impl Explained {
    /// Explains a schedule of a problem.
    ///
    /// # Errors
    /// If the schedule is illegal.
    pub fn new(
        source: String,
        problem: &Problem,
        schedule: Schedule,
        model: &dyn CostModel,
    ) -> Result<Explained, ScheduleFileError> {
        let problem = rewritten(problem, &schedule)?;
        let explanation = explanation(&problem, &schedule, model)?;
        Ok(Explained { source, schedule, problem, explanation })
    }
}

/// The explanation of a schedule.
///
/// # Errors
/// If the schedule is illegal.
pub fn explanation(
    problem: &Problem,
    schedule: &Schedule,
    model: &dyn CostModel,
) -> Result<Explanation, ScheduleFileError> {
    let planned = problem.planned(schedule.clone());
    let planned = planned.map_err(|error| unbuilt(problem.pipeline(), error.into()))?;
    Ok(Explanation::new(&planned, model))
}

/// An explanation as text. `sizes` starts with ` at`, as in ` at W=640, H=480`.
pub fn listing(app: &str, sizes: &str, device: &Device, explanation: &Explanation) -> String {
    head(app, sizes, device, explanation) + &format!("\n{explanation}")
}

/// The first line of an explanation.
pub fn head(app: &str, sizes: &str, device: &Device, explanation: &Explanation) -> String {
    let (predicted, kernels) = (predicted(explanation), show::count(explanation.kernels.len(), "kernel"));
    format!("{app}{sizes} for {} ({}): {predicted}; {kernels}\n", device.name, device.arch())
}

/// The predicted time of a schedule, who predicts it, and how far off that may be.
pub fn predicted(explanation: &Explanation) -> String {
    let (time, range) = (microseconds(explanation.predicted_us), show::range(explanation.range()));
    format!("{time} predicted by {}; {range}", explanation.basis)
}
