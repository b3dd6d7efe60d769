//! Which trees are schedules: every rule, each broken one reported at its place.

mod loops;
mod order;
mod placement;
mod storage;

use warploom_lang::{FuncId, Pipeline, Regions};
use warploom_target::Device;

use crate::schedule::footprint::Footprints;
use crate::schedule::geometry::Geometry;
use crate::schedule::names::Names;
use crate::schedule::outline::{NestInfo, Outline, Path};
use crate::schedule::tree::{Schedule, StageRef};
use crate::schedule::violation::{Rule, Violation, located};

pub use storage::{MAX_PRIVATE_BYTES, MAX_REGISTER_BYTES, SMALL_EXTENT};

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
    let geometry = Geometry::new(pipeline, regions);
    let outline = Outline::new(&schedule.root);
    let footprints = geometry.traced(&schedule.inlined, &outline);
    check_traced(schedule, &geometry, device, &outline, &footprints)
}

/// [`check`] of a schedule whose footprints are there already.
pub(crate) fn check_traced(
    schedule: &Schedule,
    geometry: &Geometry<'_>,
    device: &Device,
    outline: &Outline<'_>,
    footprints: &Footprints,
) -> Result<(), Vec<Violation>> {
    let (pipeline, regions) = (geometry.pipeline, geometry.regions);
    let names = Names::new(pipeline);
    let mut checker =
        Checker { schedule, geometry, names, regions, device, outline, footprints, found: Vec::new() };
    checker.placement();
    checker.order();
    checker.loops();
    checker.storage();
    if checker.found.is_empty() { Ok(()) } else { Err(located(schedule, pipeline, checker.found)) }
}

/// What the rules read, and what they found.
struct Checker<'a> {
    schedule: &'a Schedule,
    geometry: &'a Geometry<'a>,
    names: Names<'a>,
    regions: &'a Regions,
    device: &'a Device,
    outline: &'a Outline<'a>,
    footprints: &'a Footprints,
    found: Vec<(Path, Rule)>,
}

impl<'a> Checker<'a> {
    fn report(&mut self, path: &Path, rule: Rule) {
        let violation = (path.clone(), rule);
        if !self.found.contains(&violation) {
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
        self.schedule.inlined.contains(&func)
    }

    /// The nests that compute stages of a Func, with their numbers.
    fn nests_of(&self, func: FuncId) -> Vec<(usize, &'a NestInfo<'a>)> {
        let nests = self.outline.nests.iter().enumerate();
        nests.filter(|(_, nest)| nest.computes(func)).collect()
    }

    /// The nests that a Func is in registers of, with its position there.
    fn registers_of(&self, func: FuncId) -> Vec<(&'a NestInfo<'a>, usize)> {
        let nests = self.outline.nests.iter();
        nests
            .flat_map(|nest| {
                let registers = nest.nest.registers.iter().enumerate();
                registers.filter(move |(_, known)| **known == func).map(move |(i, _)| (nest, i))
            })
            .collect()
    }
}
