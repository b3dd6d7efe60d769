//! Which trees are schedules: every rule, each broken one reported at its place.

mod loops;
mod order;
mod placement;
mod storage;

use std::collections::BTreeSet;

use ahash::AHashSet;
use warploom_lang::{FuncId, Pipeline, Regions};
use warploom_target::Device;

use crate::schedule::footprint::Footprints;
use crate::schedule::geometry::{FuncList, Geometry};
use crate::schedule::names::Names;
use crate::schedule::outline::{NestInfo, Outline, Path};
use crate::schedule::tree::{RootItem, Schedule, StageRef};
use crate::schedule::violation::{Rule, Violation, located};

pub use storage::{MAX_PRIVATE_BYTES, SMALL_EXTENT};

/// Checks a schedule of a pipeline at the sizes of a realisation for a device.
///
/// | what | rules |
/// | --- | --- |
/// | places | every Func is inlined or all its stages are placed once; outputs are in global memory; a kernel ends with its own stage |
/// | order | a Func is computed before its readers, in a kernel before theirs or in the same block, inside no loop that they are outside of |
/// | loops | tiles are loops of their stage, divided once; blocks and threads share a reduction variable only if its values are independent; reduction loops keep their order unless it does not matter |
/// | storage | a private Func is read only by the thread that computed it; what lives in a block or thread has a constant extent and fits |
/// | limits | threads, grid and shared memory of the device |
///
/// Sizes matter only for the last two.
///
/// # Errors
/// Every violation, in the order of the schedule's text.
///
/// # Panics
/// If the schedule is of another pipeline and names Funcs or inputs that this one has not.
pub fn check(
    schedule: &Schedule,
    pipeline: &Pipeline,
    regions: &Regions,
    device: &Device,
) -> Result<(), Vec<Violation>> {
    Geometry::new(pipeline, regions).check(schedule, device)
}

/// [`check`] of a schedule whose footprints are there already.
pub(crate) fn check_traced(
    schedule: &Schedule,
    geometry: &Geometry<'_>,
    device: &Device,
    outline: &Outline<'_>,
    footprints: &Footprints,
) -> Result<(), Vec<Violation>> {
    let mut checker = Checker::new(geometry, &schedule.inlined, outline, footprints, device);
    checker.needed_places();
    checker.rules(|_| false);
    match checker.found.is_empty() {
        true => Ok(()),
        false => Err(located(schedule, geometry.pipeline, checker.found)),
    }
}

impl Geometry<'_> {
    /// [`check`] of one of many schedules of a pipeline at the same sizes.
    ///
    /// # Errors
    /// Every violation, in the order of the schedule's text.
    ///
    /// # Panics
    /// If the schedule names Funcs or inputs that the pipeline has not.
    pub fn check(&self, schedule: &Schedule, device: &Device) -> Result<(), Vec<Violation>> {
        let outline = Outline::new(&schedule.root);
        let footprints = self.traced(&schedule.inlined, &outline);
        check_traced(schedule, self, device, &outline, &footprints)
    }

    /// The footprints of some kernels and loops around kernels, if they are legal in themselves: all of [`check`]
    /// but whether every Func has its place, and whether what other kernels compute is there in time.
    ///
    /// # Errors
    /// One of the rules that they break.
    ///
    /// # Panics
    /// If they name Funcs or inputs that the pipeline has not.
    pub fn examine<'r>(
        &self,
        inlined: &BTreeSet<FuncId>,
        root: impl IntoIterator<Item = &'r RootItem>,
        device: &Device,
    ) -> Result<Footprints, Rule> {
        let outline = Outline::new(root);
        let footprints = self.traced(inlined, &outline);
        let mut checker = Checker::new(self, inlined, &outline, &footprints, device);
        checker.present_places();
        checker.rules(|found| !found.is_empty());
        match checker.found.pop() {
            Some((_, rule)) => Err(rule),
            None => Ok(footprints),
        }
    }
}

/// What the rules read, and what they found.
struct Checker<'a> {
    geometry: &'a Geometry<'a>,
    inlined: &'a BTreeSet<FuncId>,
    names: Names<'a>,
    device: &'a Device,
    outline: &'a Outline<'a>,
    footprints: &'a Footprints,
    /// What each nest reads: its stage and all that is inlined or in registers there.
    reads: Vec<FuncList>,
    found: Vec<(Path, Rule)>,
    /// The same, to tell what was found before.
    known: AHashSet<(Path, Rule)>,
}

impl<'a> Checker<'a> {
    fn new(
        geometry: &'a Geometry<'a>,
        inlined: &'a BTreeSet<FuncId>,
        outline: &'a Outline<'a>,
        footprints: &'a Footprints,
        device: &'a Device,
    ) -> Checker<'a> {
        let reads = outline.nests.iter().map(|nest| {
            let inside = |func: FuncId| inlined.contains(&func) || nest.nest.registers.contains(&func);
            let mut reads = geometry.reads_through(nest.stage(), inside).outside;
            reads.retain(|func| !nest.computes(*func));
            reads
        });
        let (names, reads) = (Names::new(geometry.pipeline), reads.collect());
        Checker {
            geometry,
            inlined,
            names,
            device,
            outline,
            footprints,
            reads,
            found: Vec::new(),
            known: AHashSet::new(),
        }
    }

    /// The rules that hold for a schedule as for each of its kernels, until what was found is `enough`.
    fn rules(&mut self, enough: impl Fn(&[(Path, Rule)]) -> bool) {
        for rules in [Checker::storage_words, Checker::order, Checker::loops, Checker::storage] {
            if enough(&self.found) {
                return;
            }
            rules(self);
        }
    }

    fn report(&mut self, path: &Path, rule: Rule) {
        let violation = (path.clone(), rule);
        if self.known.insert(violation.clone()) {
            self.found.push(violation);
        }
    }

    fn func_name(&self, func: FuncId) -> String {
        self.names.of_func(func).to_string()
    }

    fn stage_name(&self, stage: StageRef) -> String {
        self.names.of_stage(stage)
    }

    fn is_inlined(&self, func: FuncId) -> bool {
        self.inlined.contains(&func)
    }

    /// The nests that compute stages of a Func, with their numbers.
    fn nests_of(&self, func: FuncId) -> impl Iterator<Item = (usize, &'a NestInfo<'a>)> + use<'a> {
        self.outline.computing(func)
    }

    /// The nests that a Func is in registers of, with its position there.
    fn registers_of(&self, func: FuncId) -> impl Iterator<Item = (&'a NestInfo<'a>, usize)> + use<'a> {
        self.outline.holding(func)
    }

    /// The Funcs that have a place, in order.
    fn present(&self) -> FuncList {
        let nests = self.outline.nests.iter();
        let mut present: FuncList = nests
            .flat_map(|nest| {
                nest.stage().map(|stage| stage.func).into_iter().chain(nest.nest.registers.iter().copied())
            })
            .collect();
        present.sort_unstable();
        present.dedup();
        present
    }
}
