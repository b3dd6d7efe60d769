//! The paces of GPUs of one kind: each times the default schedule of a problem before anything else.

use warploom_tune::records::{ProblemId, RecordsError};
use warploom_tune::values;

use super::Queue;
use super::workers::add_note;

/// The deviation from the median beyond which a GPU's times are corrected.
pub const TOLERATED: f64 = 0.05;

impl Queue {
    /// Records the time of a GPU for the default schedule of a problem.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn set_pace(
        &mut self,
        problem: ProblemId,
        worker: i64,
        gpu: usize,
        default_us: f64,
    ) -> Result<(), RecordsError> {
        let set = "INSERT INTO paces (problem, worker, gpu, default_us) VALUES ($1, $2, $3, $4)
             ON CONFLICT (problem, worker, gpu) DO UPDATE SET default_us = excluded.default_us";
        self.change(|change| change.execute(set, values![problem.0, worker, gpu, default_us]).map(drop))
    }

    /// The times of all GPUs for the default schedule of a problem, in ascending order.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn paces(&self, problem: ProblemId) -> Result<Vec<f64>, RecordsError> {
        let query = "SELECT default_us FROM paces WHERE problem = $1 ORDER BY default_us";
        self.rows(query, values![problem.0], |row| row.get(0))
    }

    /// Notes for users that a GPU differs from the others.
    ///
    /// # Errors
    /// If the queue cannot be used.
    pub fn note_pace(&mut self, run: i64, worker: i64, gpu: usize, factor: f64) -> Result<(), RecordsError> {
        let percent = (1.0 / factor - 1.0) * 100.0;
        let than = if percent > 0.0 { "longer" } else { "less time" };
        let note = format!(
            "GPU {gpu} of worker {worker} takes {:.0} % {than} for the default schedule than most: its times are \
             multiplied by {factor:.3}",
            percent.abs()
        );
        self.change(|change| add_note(change, Some(run), Some(worker), &note))
    }
}

/// The factor that makes times of a GPU comparable, from its own time for the default schedule and those
/// of all GPUs in ascending order: 1 unless it differs from the median by more than [`TOLERATED`].
pub fn factor(times: &[f64], own: f64) -> f64 {
    let Some(&middle) = times.get(times.len() / 2) else { return 1.0 };
    // For an even number, the mean of the two in the middle.
    let median = match times.len() % 2 {
        0 => f64::midpoint(times[times.len() / 2 - 1], middle),
        _ => middle,
    };
    if (own / median - 1.0).abs() > TOLERATED { median / own } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::factor;

    #[test]
    fn only_gpus_that_differ_are_corrected() {
        let times = [99.0, 100.0, 101.0, 104.0, 120.0];
        assert_eq!(factor(&times, 100.0), 1.0);
        assert_eq!(factor(&times, 104.0), 1.0);
        assert_eq!(factor(&times, 120.0), 101.0 / 120.0);
        assert_eq!(factor(&[90.0, 110.0], 90.0), 100.0 / 90.0);
        assert_eq!(factor(&[], 90.0), 1.0);
        assert_eq!(factor(&[90.0], 90.0), 1.0);
    }
}
