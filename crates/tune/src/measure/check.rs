//! Sizes at which the expected outputs are known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use warploom_interp::expected::{Closeness, Expected};
use warploom_lang::rewrite::Rewrite;

use super::Subject;
use crate::workload::{PERTURBED_RUNS, Workload};

/// A size at which the expected outputs are known.
pub struct Check {
    /// The same pipeline as the candidate's, usually at smaller sizes.
    pub subject: Arc<Subject>,
    /// The expected outputs, with the tolerance for kernels built for speed.
    pub expected: Expected,
    /// The source of the expected outputs; `None` if they were measured.
    origin: Option<Origin>,
}

/// The check of a rewritten pipeline, or why there is none.
type Rewritten = Result<Arc<Check>, String>;

struct Origin {
    workload: Workload,
    /// The tolerance that the pipeline's author states.
    stated: Option<f64>,
    /// The expected outputs for reductions in another order, once a rewrite changes one.
    in_any_order: OnceLock<Option<Expected>>,
    /// The checks of the rewritten pipelines so far.
    rewritten: Mutex<HashMap<Vec<Rewrite>, Rewritten>>,
}

impl Check {
    /// A check with outputs that are known to be right.
    pub fn new(subject: Arc<Subject>, expected: Expected) -> Check {
        Check { subject, expected, origin: None }
    }

    /// The outputs of the reference evaluator. Kernels built for speed may differ by the stated tolerance, a fraction of
    /// an output's largest sample, or by one derived from the pipeline if none is stated. `None` if the evaluator fails.
    pub fn of_workload(workload: Workload, stated: Option<f64>) -> Option<Check> {
        let expected = workload.expected(stated, PERTURBED_RUNS).ok()?;
        let subject = Arc::new(Subject::of(&workload).ok()?);
        let origin = Origin { workload, stated, in_any_order: OnceLock::new(), rewritten: Mutex::default() };
        Some(Check { subject, expected, origin: Some(origin) })
    }

    /// The check of schedules with some rewrites: the outputs of the rewritten pipeline, which must be close to those
    /// of the original one. A check without an origin is returned unchanged.
    ///
    /// # Errors
    /// If the outputs of the rewritten pipeline differ too much, or it cannot be evaluated at this size.
    pub fn rewritten(self: &Arc<Check>, rewrites: &[Rewrite]) -> Result<Arc<Check>, String> {
        let Some(origin) = self.origin.as_ref().filter(|_| !rewrites.is_empty()) else {
            return Ok(self.clone());
        };
        // Other threads wait: most candidates of a run have the same rewrites.
        let mut known = origin.rewritten.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.entry(rewrites.to_vec());
        made.or_insert_with(|| self.rewrite(origin, rewrites).map(Arc::new)).clone()
    }

    fn rewrite(&self, origin: &Origin, rewrites: &[Rewrite]) -> Result<Check, String> {
        let pipeline = origin.workload.pipeline.rewritten(rewrites).map_err(|error| error.to_string())?;
        let workload = Workload { pipeline: pipeline.into_owned(), ..origin.workload.clone() };
        let expected = workload.expected(origin.stated, PERTURBED_RUNS).map_err(|error| error.to_string())?;
        let outputs: Vec<_> = expected.buffers().cloned().collect();
        let close = if rewrites.iter().any(Rewrite::reorders) { origin.in_any_order() } else { None };
        match close.unwrap_or(&self.expected).closeness(&outputs).iter().find_map(Closeness::sentence) {
            Some(fault) => Err(format!("the rewritten pipeline gives {fault}")),
            None => {
                let subject = Subject::of(&workload).map_err(|error| error.to_string())?;
                Ok(Check { subject: Arc::new(subject), expected, origin: None })
            }
        }
    }
}

impl Origin {
    /// The outputs, with the tolerance for reductions in another order; `None` if the evaluator fails.
    fn in_any_order(&self) -> Option<&Expected> {
        let made = || self.workload.expected_in_any_order(self.stated, PERTURBED_RUNS).ok();
        self.in_any_order.get_or_init(made).as_ref()
    }
}
