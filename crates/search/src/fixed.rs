//! Decisions that are made before the search.

use std::collections::BTreeSet;

use thiserror::Error;
use warploom_lang::FuncId;
use warploom_lang::brief::shown;
use warploom_plan::{Problem, Violation};
use warploom_schedule::{Path, RootItem, Schedule, StageRef};

/// A partial schedule whose decisions a search keeps.
///
/// The search decides on the Funcs that the schedule does not name; it may compute them in the
/// kernels of the schedule too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// A complete schedule that contains the decisions.
    baseline: Schedule,
    /// The Funcs whose placement is fixed.
    funcs: BTreeSet<FuncId>,
    /// The stages whose kernels are fixed.
    kernels: BTreeSet<StageRef>,
}

/// Why a search cannot keep all decisions.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum FixedError {
    /// Together with the default schedule of the other Funcs, the decisions break a rule. The paths of the violations are
    /// those of the given schedule; outside of it, the root.
    #[error("the fixed part of the schedule cannot be completed: {}", shown(.0, "; "))]
    Conflict(Vec<Violation>),
    /// The schedule has loops around several kernels.
    #[error("a loop around several kernels cannot be fixed; give each kernel its own loop")]
    SharedLoops,
}

impl Fixed {
    /// Takes a schedule that may name only some of a pipeline's Funcs.
    ///
    /// # Errors
    /// If the decisions contradict each other, or the device cannot run them.
    pub fn new(problem: &Problem, schedule: Schedule) -> Result<Fixed, FixedError> {
        if schedule.root.iter().any(holds_several) {
            return Err(FixedError::SharedLoops);
        }
        let kernels: BTreeSet<StageRef> = schedule.root.iter().filter_map(own).collect();
        let placed: BTreeSet<FuncId> = schedule.root.iter().flat_map(computed).collect();
        let mut baseline = problem.default_schedule();
        baseline.inlined.retain(|func| !placed.contains(func));
        baseline.inlined.extend(&schedule.inlined);
        let named: BTreeSet<FuncId> = placed.union(&schedule.inlined).copied().collect();
        baseline.root.retain(|item| own(item).is_some_and(|stage| !named.contains(&stage.func)));
        baseline.root.extend(schedule.root.iter().cloned());
        // Producers come before their consumers.
        baseline.root.sort_by_key(own);
        problem.check(&baseline).map_err(|violations| {
            let given = |violation: Violation| Violation {
                path: given_path(&violation.path, &baseline, &schedule),
                ..violation
            };
            FixedError::Conflict(violations.into_iter().map(given).collect())
        })?;
        Ok(Fixed { baseline, funcs: named, kernels })
    }

    /// A complete schedule that contains the decisions.
    pub fn baseline(&self) -> &Schedule {
        &self.baseline
    }

    /// The Funcs whose placement is fixed.
    pub fn funcs(&self) -> &BTreeSet<FuncId> {
        &self.funcs
    }

    /// Whether the kernel of a stage is fixed.
    pub(crate) fn keeps(&self, stage: StageRef) -> bool {
        self.kernels.contains(&stage)
    }
}

/// The path of a node of the completed schedule in the given one; the root for nodes that only the completed one has.
fn given_path(path: &Path, completed: &Schedule, given: &Schedule) -> Path {
    let item = path.root_child().map(|number| &completed.root[number]);
    let number = item.and_then(|item| given.root.iter().position(|own| own == item));
    number.map_or(Path::ROOT, |number| path.below(number))
}

fn own(item: &RootItem) -> Option<StageRef> {
    item.kernels().next().map(|kernel| kernel.stage)
}

pub(crate) fn holds_several(item: &RootItem) -> bool {
    item.around().is_some_and(|around| around.body.len() > 1 || around.body.iter().any(holds_several))
}

/// The Funcs that an item of root computes.
fn computed(item: &RootItem) -> Vec<FuncId> {
    let mut funcs: Vec<FuncId> = own(item).iter().map(|stage| stage.func).collect();
    for nest in item.nests() {
        funcs.extend(&nest.registers);
        funcs.extend(nest.item.stage().map(|stage| stage.func));
    }
    funcs
}
