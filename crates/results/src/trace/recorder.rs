//! Records what the simulator reports as steps, and merges steps where there would be too many.

use std::collections::BTreeMap;

use warploom::codegen::ir::{KernelId, Program, Space};
use warploom::codegen::points::{Held, Points};
use warploom::lang::{Region, Value};
use warploom::sim::{Observed, Observer};
use warploom_report::{Touch, TouchKind, Trace, TraceStep};

/// The most bytes of inputs and steps that a page has room for: as text they take a third more, and the page stays
/// below 2 MB.
pub(super) const MOST_BYTES: usize = 1_400_000;

/// Points of a picture with values, by picture and kind.
type Touched = BTreeMap<(u32, TouchKind), Vec<(u32, f32)>>;

/// How much happens in one step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Grain {
    /// One statement that stores, in all threads of a block, with what is read for it.
    Statement,
    /// What a block does for one stage without a break.
    Stage,
    /// All that a block does.
    Block,
}

/// A stage of a Func or input: what a step computes.
pub(super) type StageKey = (Held, usize);

/// A picture that accesses are drawn in.
pub(super) struct Canvas {
    pub(super) held: Held,
    pub(super) region: Region,
    /// Whether it shows the requested part of an output that is computed on a larger box.
    pub(super) is_copy: bool,
}

/// Where and for which stage something happens: launch, block, stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct At {
    launch: u32,
    block: u32,
    stage: u32,
}

/// A step while it is recorded.
#[derive(Clone, Default)]
struct Open {
    at: At,
    touched: Touched,
}

/// A recorded step; values are not bytes yet, because their range is not known.
struct Recorded {
    step: TraceStep,
    /// The values of each touch.
    values: Vec<Vec<f32>>,
    bytes: usize,
}

/// An observer of the simulator that records steps.
pub(super) struct Recorder<'a> {
    program: &'a Program,
    points: &'a Points,
    canvases: &'a [Canvas],
    most: usize,
    grain: Grain,
    /// The kernel of each launch.
    launches: Vec<KernelId>,
    stages: Vec<StageKey>,
    steps: Vec<Recorded>,
    bytes: usize,
    /// The statement that runs.
    current: Open,
    /// The step that the next statement may belong to.
    open: Option<Open>,
    /// Whether even whole blocks are too much.
    is_too_large: bool,
}

/// What was recorded.
pub(super) struct Recording {
    pub(super) grain: Grain,
    pub(super) launches: Vec<KernelId>,
    pub(super) stages: Vec<StageKey>,
    pub(super) steps: Vec<(TraceStep, Vec<Vec<f32>>)>,
}

impl<'a> Recorder<'a> {
    /// A recorder of steps that take at most this many bytes.
    pub(super) fn new(
        program: &'a Program,
        points: &'a Points,
        canvases: &'a [Canvas],
        most: usize,
    ) -> Recorder<'a> {
        Recorder {
            program,
            points,
            canvases,
            most,
            grain: Grain::Statement,
            launches: Vec::new(),
            stages: Vec::new(),
            steps: Vec::new(),
            bytes: 0,
            current: Open::default(),
            open: None,
            is_too_large: false,
        }
    }

    /// The steps; `None` if they do not fit on a page.
    pub(super) fn finish(mut self) -> Option<Recording> {
        self.close();
        while self.open.is_some() {
            self.settle();
        }
        let steps = self.steps.into_iter().map(|recorded| (recorded.step, recorded.values)).collect();
        let Recorder { grain, launches, stages, .. } = self;
        (!self.is_too_large).then_some(Recording { grain, launches, stages, steps })
    }

    /// The picture of an array, and whether the array is lost with its block.
    fn canvas(&self, access: &Observed<'_>) -> Option<(usize, bool)> {
        let kernel = *self.launches.last()?;
        let held = (*self.points.kernels.get(kernel)?.arrays.get(access.array)?)?;
        let space = self.program.kernels[kernel].arrays[access.array].space;
        let shows = |canvas: &Canvas| match space {
            Space::Global(buffer) => self.program.buffers[buffer].region == canvas.region,
            Space::Shared | Space::Thread => !canvas.is_copy,
        };
        let number = self.canvases.iter().position(|canvas| canvas.held == held && shows(canvas))?;
        Some((number, !matches!(space, Space::Global(_))))
    }

    fn stage(&mut self, key: StageKey) -> u32 {
        let known = self.stages.iter().position(|stage| *stage == key);
        let number = known.unwrap_or_else(|| {
            self.stages.push(key);
            self.stages.len() - 1
        });
        number as u32
    }

    /// Ends the statement that runs.
    fn close(&mut self) {
        let at = At { stage: 0, ..self.current.at };
        let current = std::mem::replace(&mut self.current, Open { at, touched: Touched::new() });
        if current.touched.is_empty() || self.is_too_large {
            return;
        }
        // A merge can leave another step open.
        while self.open.as_ref().is_some_and(|open| !self.grain.joins(open.at, current.at)) {
            self.settle();
        }
        match &mut self.open {
            Some(open) => open.absorb(current),
            None => self.open = Some(current),
        }
    }

    /// Ends the step that the last statement belongs to. Steps become coarser if they take too many bytes.
    fn settle(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.push(open);
        while self.bytes > self.most && !self.is_too_large {
            match self.grain.coarser() {
                Some(grain) => self.merge(grain),
                None => {
                    self.steps.clear();
                    self.is_too_large = true;
                }
            }
        }
    }

    fn push(&mut self, open: Open) {
        let recorded = open.recorded();
        self.bytes += recorded.bytes;
        self.steps.push(recorded);
    }

    fn merge(&mut self, grain: Grain) {
        self.grain = grain;
        self.bytes = 0;
        let mut before: Option<Open> = None;
        for recorded in std::mem::take(&mut self.steps) {
            let next = Open::of(&recorded);
            match &mut before {
                Some(open) if grain.joins(open.at, next.at) => open.absorb(next),
                _ => before.replace(next).into_iter().for_each(|open| self.push(open)),
            }
        }
        // The last one may go on.
        self.open = before;
    }
}

impl Grain {
    fn coarser(self) -> Option<Grain> {
        match self {
            Grain::Statement => Some(Grain::Stage),
            Grain::Stage => Some(Grain::Block),
            Grain::Block => None,
        }
    }

    /// Whether a statement belongs to the step before it.
    fn joins(self, before: At, next: At) -> bool {
        let same_block = (before.launch, before.block) == (next.launch, next.block);
        match self {
            Grain::Statement => false,
            Grain::Stage => before == next,
            Grain::Block => same_block,
        }
    }
}

impl Open {
    fn of(recorded: &Recorded) -> Open {
        let TraceStep { launch, block, stage, ref touches } = recorded.step;
        let mut touched = Touched::new();
        for (touch, values) in touches.iter().zip(&recorded.values) {
            let points = touch.runs.iter().flat_map(|&(first, length)| first..first + length);
            let values = values.iter().copied().chain(std::iter::repeat(0.0));
            touched.insert((touch.picture, touch.kind), points.zip(values).collect());
        }
        Open { at: At { launch, block, stage }, touched }
    }

    /// Adds what a later statement does.
    fn absorb(&mut self, later: Open) {
        self.at.stage = later.at.stage;
        for (key, points) in later.touched {
            let known = self.touched.entry(key).or_default();
            // Repeated points are removed before more room is taken for them.
            if known.len() + points.len() > known.capacity() {
                distinct(known);
            }
            known.extend(points);
        }
    }

    fn recorded(self) -> Recorded {
        let At { launch, block, stage } = self.at;
        let (mut touches, mut all) = (Vec::new(), Vec::new());
        for ((picture, kind), mut points) in self.touched {
            distinct(&mut points);
            let values: Vec<f32> = match kind {
                TouchKind::Read => Vec::new(),
                TouchKind::Stored | TouchKind::Held => points.iter().map(|(_, value)| *value).collect(),
            };
            touches.push(Touch { picture, kind, runs: runs(&points), values: changes(&values) });
            all.push(values);
        }
        let step = TraceStep { launch, block, stage, touches };
        Recorded { bytes: Trace::step_bytes(&step), step, values: all }
    }
}

/// Sorts points and keeps the last value of each.
fn distinct(points: &mut Vec<(u32, f32)>) {
    points.reverse();
    points.sort_by_key(|(point, _)| *point);
    points.dedup_by_key(|(point, _)| *point);
}

/// Bytes that differ wherever neighbouring values differ: they take as much room as the shades of the values will, or
/// more.
fn changes(values: &[f32]) -> Vec<u8> {
    let (mut byte, mut before) = (0_u8, None);
    let next = |value: &f32| {
        byte = byte.wrapping_add(u8::from(before.replace(*value).is_some_and(|before| before != *value)));
        byte
    };
    values.iter().map(next).collect()
}

/// Sorted points as runs: the first point and the length of each.
fn runs(points: &[(u32, f32)]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &(point, _) in points {
        match runs.last_mut() {
            Some((first, length)) if *first + *length == point => *length += 1,
            _ => runs.push((point, 1)),
        }
    }
    runs
}

/// The number of a point in its region, the first dimension fastest; `None` if it lies outside.
fn number(region: &Region, point: &[i32]) -> Option<u32> {
    let (mut number, mut stride) = (0, 1);
    for (range, at) in region.0.iter().zip(point) {
        if !range.contains(i64::from(*at)) {
            return None;
        }
        number += (i64::from(*at) - range.min) * stride;
        stride *= range.extent;
    }
    u32::try_from(number).ok()
}

impl Observer for Recorder<'_> {
    fn launch(&mut self, kernel: KernelId, _: &[u32]) {
        self.close();
        self.launches.push(kernel);
    }

    fn block(&mut self, block: [u32; 3]) {
        self.close();
        let Some(kernel) = self.launches.last() else { return };
        let [width, height, _] = self.program.kernels[*kernel].grid;
        let block = (block[2] * height + block[1]) * width + block[0];
        self.current.at = At { launch: self.launches.len() as u32 - 1, block, stage: 0 };
    }

    fn access(&mut self, access: &Observed<'_>) {
        let Some((picture, is_lost)) = self.canvas(access) else { return };
        let Canvas { held, region, .. } = &self.canvases[picture];
        if self.is_too_large || access.dimensions != region.dimensions() {
            return;
        }
        let is_read = access.values.is_empty();
        let kind = match (is_read, is_lost) {
            (true, _) => TouchKind::Read,
            (false, true) => TouchKind::Held,
            (false, false) => TouchKind::Stored,
        };
        let touched = (0..access.threads.len()).filter_map(|thread| {
            let point = &access.points[thread * access.dimensions..][..access.dimensions];
            let value =
                access.values.get(thread).map_or(0.0, |bits| Value::from_bits(access.ty, *bits).as_f64());
            Some((number(region, point)?, value as f32))
        });
        let touched: Vec<(u32, f32)> = touched.collect();
        let held = *held;
        if !touched.is_empty() {
            self.current.touched.entry((picture as u32, kind)).or_default().extend(touched);
        }
        if !is_read {
            self.current.at.stage = self.stage((held, access.stage));
            self.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(stage: u32, points: &[(u32, f32)]) -> Open {
        let touched = Touched::from([((0, TouchKind::Held), points.to_vec())]);
        Open { at: At { launch: 0, block: 3, stage }, touched }
    }

    #[test]
    fn runs_keep_the_last_value_of_each_point() {
        let recorded = open(0, &[(7, 1.0), (2, 2.0), (3, 3.0), (7, 4.0)]).recorded();
        assert_eq!(recorded.step.touches[0].runs, [(2, 2), (7, 1)]);
        assert_eq!(recorded.values, [[2.0, 3.0, 4.0]]);
        assert_eq!(Open::of(&recorded).touched[&(0, TouchKind::Held)], [(2, 2.0), (3, 3.0), (7, 4.0)]);
    }

    #[test]
    fn merged_steps_keep_every_point() {
        let (program, points) = (no_program(), Points::default());
        let mut recorder = Recorder::new(&program, &points, &[], 40);
        for number in 0..40 {
            recorder.current = open(number / 20, &[(number % 8, number as f32)]);
            recorder.close();
        }
        let recording = recorder.finish().unwrap();
        assert_eq!(recording.grain, Grain::Stage);
        let runs = |step: &TraceStep| step.touches[0].runs.clone();
        assert_eq!(
            recording.steps.iter().map(|(step, _)| runs(step)).collect::<Vec<_>>(),
            [[(0, 8)], [(0, 8)]]
        );
        assert_eq!(recording.steps[1].1[0], [32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 39.0]);
    }

    #[test]
    fn too_many_points_are_refused() {
        let (program, points) = (no_program(), Points::default());
        let mut recorder = Recorder::new(&program, &points, &[], 40);
        for number in 0..100 {
            recorder.current = open(0, &[(number * number, 0.0)]);
            recorder.close();
        }
        assert!(recorder.finish().is_none());
    }

    #[test]
    fn points_are_numbered_within_their_region() {
        let region = Region(vec![warploom::lang::Range::new(-1, 4), warploom::lang::Range::new(2, 3)]);
        assert_eq!([number(&region, &[-1, 2]), number(&region, &[2, 4])], [Some(0), Some(11)]);
        assert_eq!([number(&region, &[3, 2]), number(&region, &[0, 1])], [None, None]);
        assert_eq!(number(&Region(Vec::new()), &[]), Some(0));
    }

    fn no_program() -> Program {
        Program {
            name: String::new(),
            buffers: Default::default(),
            params: Vec::new(),
            tables: Default::default(),
            kernels: Default::default(),
            launches: Vec::new(),
            sizes: None,
        }
    }
}
