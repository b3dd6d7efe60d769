//! Traces: what a run of kernels computes and reads, and when, as a page with an animation.

mod recorder;

use thiserror::Error;
use warploom::codegen::build::{BuildError, build_with_points};
use warploom::codegen::ir::{Program, Space};
use warploom::codegen::points::{Held, Points};
use warploom::interp::buffer::Buffer;
use warploom::lang::{Id, Pipeline, Region, Value, dispatch, ir};
use warploom::plan::{Planned, Problem};
use warploom::schedule::Schedule;
use warploom::schedule::Source as Of;
use warploom::schedule_file::{ScheduleFileError, unbuilt};
use warploom::show;
use warploom::sim::SimError;
use warploom::tune::workload::Workload;
use warploom_report::{Picture, PictureKind, TouchKind, Trace, TraceKernel, TraceStep};

use recorder::{Canvas, Grain, MOST_BYTES, Recorder, Recording};

/// Why a run has no trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// There are too many points.
    #[error("the trace is too large for a page, which has room for about 1 MB of steps; give smaller sizes")]
    TooLarge,
    /// A schedule without kernels.
    #[error(transparent)]
    Build(#[from] ScheduleFileError),
    /// The simulator has found a fault.
    #[error("the simulator stopped: {0}")]
    Simulation(Box<SimError>),
}

/// Refuses what cannot fit before a schedule is found and simulated: each point of an input or output takes a byte at least.
///
/// # Errors
/// If there is no room.
pub fn check_size(problem: &Problem) -> Result<(), TraceError> {
    let inputs = problem.request().inputs.values().flatten().filter_map(Region::points);
    let outputs = problem.request().outputs.iter().flatten().filter_map(Region::points);
    match inputs.chain(outputs).sum::<u64>() > MOST_BYTES as u64 {
        true => Err(TraceError::TooLarge),
        false => Ok(()),
    }
}

/// Runs a workload in the simulator under a schedule of its problem. Returns its outputs, and a page without a title and
/// facts.
///
/// # Errors
/// If the schedule has no kernels, these are at fault, or their steps do not fit on a page.
pub fn trace(
    problem: &Problem,
    schedule: &Schedule,
    mut workload: Workload,
) -> Result<(Vec<Buffer>, Trace), TraceError> {
    let planned = problem.planned(schedule.clone()).map_err(BuildError::from);
    let built = planned.and_then(|planned| Ok((build_with_points(&planned)?, planned)));
    let ((program, points), planned) = built.map_err(|error| unbuilt(problem.pipeline(), error))?;
    let Planned { problem, schedule, .. } = planned;
    workload.pipeline = problem.pipeline().clone();

    let canvases = canvases(&problem, &program, &points);
    let inputs: usize = workload.inputs.iter().map(Buffer::len).sum();
    let room = MOST_BYTES.saturating_sub(inputs);
    let mut recorder = Recorder::new(&program, &points, &canvases, room);
    let outcome = workload.observe(&program, &points, problem.device(), &mut recorder);
    let outcome = outcome.map_err(|error| TraceError::Simulation(Box::new(error)))?;
    let recording = recorder.finish().ok_or(TraceError::TooLarge)?;

    let made = Made { problem: &problem, program: &program, points: &points, canvases: &canvases };
    let trace = made.trace(recording, &workload);
    Ok((outcome.outputs, Trace { schedule: schedule.to_text(problem.pipeline()), ..trace }))
}

/// What a page is made of, besides the steps.
struct Made<'a> {
    problem: &'a Problem,
    program: &'a Program,
    points: &'a Points,
    canvases: &'a [Canvas],
}

/// The pictures of a page: inputs, then Funcs that are stored, then outputs.
fn canvases(problem: &Problem, program: &Program, points: &Points) -> Vec<Canvas> {
    let mut canvases: Vec<Canvas> = Vec::new();
    for (kernel, own) in points.kernels.iter() {
        for (array, held) in own.arrays.iter() {
            let Some(held) = *held else { continue };
            let requested = match program.kernels[kernel].arrays[array].space {
                Space::Global(buffer) => Some(&program.buffers[buffer].region),
                Space::Shared | Space::Thread => None,
            };
            let region = whole(problem, held, requested.is_some());
            let is_copy = requested.is_some_and(|requested| *requested != region);
            let region = requested.cloned().unwrap_or(region);
            if !canvases.iter().any(|known| (known.held, known.is_copy) == (held, is_copy)) {
                canvases.push(Canvas { held, region, is_copy });
            }
        }
    }
    canvases.sort_by_key(|canvas| (kind(problem.pipeline(), canvas) as u8, canvas.held, canvas.is_copy));
    canvases
}

/// All points of a Func or input that are stored, in global memory or by blocks.
fn whole(problem: &Problem, held: Held, is_global: bool) -> Region {
    match held.source {
        Of::Func(func) if is_global => problem.stored(func).clone(),
        Of::Func(func) => problem.regions().funcs[func].region.clone(),
        Of::Input(input) => problem.request().inputs[input].clone().unwrap_or_else(|| Region(Vec::new())),
    }
}

fn kind(pipeline: &Pipeline, canvas: &Canvas) -> PictureKind {
    match canvas.held.source {
        Of::Input(_) => PictureKind::Input,
        Of::Func(func) if pipeline.outputs().contains(&func) => PictureKind::Output,
        Of::Func(_) => PictureKind::Func,
    }
}

impl Made<'_> {
    fn pipeline(&self) -> &Pipeline {
        self.problem.pipeline()
    }

    /// The page without its title and facts.
    fn trace(&self, recording: Recording, workload: &Workload) -> Trace {
        let Recording { grain, launches, stages, mut steps } = recording;
        let mut stages: Vec<String> =
            stages.iter().map(|(held, stage)| self.stage_name(*held, *stage)).collect();
        if grain == Grain::Block {
            stages = vec!["all stages of its block".to_owned()];
            steps.iter_mut().for_each(|(step, _)| step.stage = 0);
        }
        let shades: Vec<Shade> =
            (0..self.canvases.len()).map(|number| self.shade(number, workload, &steps)).collect();
        let kernels = self.program.kernels.values().map(|kernel| TraceKernel {
            name: kernel.name.clone(),
            grid: kernel.grid,
            threads: kernel.threads,
        });
        Trace {
            notes: self.notes(grain),
            pictures: self
                .canvases
                .iter()
                .zip(&shades)
                .map(|(canvas, shade)| self.picture(canvas, shade, workload))
                .collect(),
            kernels: kernels.collect(),
            launches: launches.iter().map(|kernel| kernel.index()).collect(),
            stages,
            steps: steps.into_iter().map(|(step, values)| shaded(step, &values, &shades)).collect(),
            ..Trace::default()
        }
    }

    fn name(&self, held: Held) -> String {
        match held.source {
            Of::Input(input) => self.pipeline().inputs()[input].name.clone(),
            Of::Func(func) => self.pipeline().funcs()[func].value_names()[held.value].clone(),
        }
    }

    fn stage_name(&self, held: Held, stage: usize) -> String {
        match held.source {
            Of::Input(_) => format!("a copy of {}", self.name(held)),
            Of::Func(func) => ir::stage_name(&self.pipeline().funcs()[func], stage),
        }
    }

    /// The range of values of a picture.
    fn shade(&self, number: usize, workload: &Workload, steps: &[(TraceStep, Vec<Vec<f32>>)]) -> Shade {
        let mut shade = Shade::default();
        if let Of::Input(input) = self.canvases[number].held.source {
            samples(workload, input.index()).into_iter().for_each(|value| shade.add(value));
        }
        for (step, values) in steps {
            for (touch, values) in step.touches.iter().zip(values) {
                if touch.picture as usize == number {
                    values.iter().for_each(|value| shade.add(*value));
                }
            }
        }
        shade
    }

    fn picture(&self, canvas: &Canvas, shade: &Shade, workload: &Workload) -> Picture {
        let values = match canvas.held.source {
            Of::Input(input) => {
                samples(workload, input.index()).into_iter().map(|value| shade.byte(value)).collect()
            }
            Of::Func(_) => Vec::new(),
        };
        let part = if canvas.is_copy { " (requested part)" } else { "" };
        Picture {
            name: self.name(canvas.held) + part,
            kind: kind(self.pipeline(), canvas),
            storage: self.storage(canvas),
            extents: canvas.region.extents().into_iter().map(|extent| extent.max(0) as usize).collect(),
            range: shade.words(),
            values,
        }
    }

    /// Where a Func or input is stored, in words.
    fn storage(&self, canvas: &Canvas) -> String {
        let mut places: Vec<String> = Vec::new();
        for (kernel, own) in self.points.kernels.iter() {
            for (id, _) in own.arrays.iter().filter(|(_, held)| **held == Some(canvas.held)) {
                let array = &self.program.kernels[kernel].arrays[id];
                let bytes = array.elements * array.ty.bytes();
                let bytes = if bytes < 1000 { format!("{bytes} B") } else { show::bytes(bytes as u64) };
                let place = match array.space {
                    Space::Global(buffer) if self.program.buffers[buffer].region == canvas.region => {
                        format!("global memory, {bytes}")
                    }
                    Space::Shared if !canvas.is_copy => format!("shared memory, {bytes} per block"),
                    Space::Thread if !canvas.is_copy => {
                        format!("registers, {} per thread", show::count(array.elements, "value"))
                    }
                    _ => continue,
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        let mut words = places.join("; ");
        words.get_mut(..1).unwrap_or_default().make_ascii_uppercase();
        words
    }

    fn notes(&self, grain: Grain) -> Vec<String> {
        let step = match grain {
            Grain::Statement => {
                "One step is one statement that stores, run once by all threads of one block, with everything that is read \
                 for it."
            }
            Grain::Stage => {
                "One step is all that a block does for one stage before it turns to another: many statements at once, \
                 because the page would be too large with one step for each. A point that is stored several times in a step \
                 shows its last value."
            }
            Grain::Block => {
                "One step is all that one block does, because the page would be too large with finer steps. A point that is \
                 stored several times in a step shows its last value."
            }
        };
        let mut notes = vec![
            step.to_owned(),
            "The simulator runs the blocks of a launch one after another, in the order of their indices, and the threads of a \
             block together. On a GPU, many blocks run at the same time, in no fixed order."
                .to_owned(),
            "Values in global memory stay. Shared memory and registers belong to a block or thread, and are lost when their \
             block ends; a frame shows what the current block holds. Points lie where their coordinates are in the Func, \
             wherever the kernel stores them. Grey is the value, in 256 shades."
                .to_owned(),
            "Planes beyond the first two dimensions lie side by side.".to_owned(),
            "Keys: space plays and pauses, the arrows go step by step, with shift block by block, Home and End go to either \
             end."
                .to_owned(),
        ];
        let stored = |func| self.canvases.iter().any(|canvas| canvas.held.source == Of::Func(func));
        let inlined = self.pipeline().funcs().iter().filter(|(func, _)| !stored(*func));
        let inlined: Vec<&str> = inlined.map(|(_, decl)| decl.name.as_str()).collect();
        if !inlined.is_empty() {
            notes.push(format!(
                "Without a picture, because they are inlined into what reads them, or not needed at these sizes: {}.",
                inlined.join(", ")
            ));
        }
        notes
    }
}

/// The samples of an input, the first dimension fastest.
fn samples(workload: &Workload, input: usize) -> Vec<f32> {
    let Some(buffer) = workload.inputs.get(input) else { return Vec::new() };
    dispatch!(buffer.ty(), T => {
        let samples = buffer.as_slice::<T>().unwrap_or_default();
        buffer.offsets().map(|offset| Value::from(samples[offset]).as_f64() as f32).collect()
    })
}

/// The step with its values as bytes.
fn shaded(mut step: TraceStep, values: &[Vec<f32>], shades: &[Shade]) -> TraceStep {
    for (touch, values) in step.touches.iter_mut().zip(values) {
        if touch.kind != TouchKind::Read {
            let shade = &shades[touch.picture as usize];
            touch.values = values.iter().map(|value| shade.byte(*value)).collect();
        }
    }
    step
}

/// The finite values of a picture: the smallest is black, the largest white.
#[derive(Clone, Copy, Debug, Default)]
struct Shade {
    ends: Option<(f32, f32)>,
}

impl Shade {
    fn add(&mut self, value: f32) {
        if value.is_finite() {
            let (low, high) = self.ends.unwrap_or((value, value));
            self.ends = Some((low.min(value), high.max(value)));
        }
    }

    fn byte(&self, value: f32) -> u8 {
        match self.ends {
            Some((low, high)) if low < high => {
                let share = (f64::from(value) - f64::from(low)) / (f64::from(high) - f64::from(low));
                // Conversion saturates, and makes NaN 0.
                (share * 255.0).round() as u8
            }
            _ => 128,
        }
    }

    fn words(&self) -> String {
        let shown = |value: f32| show::number(f64::from(value));
        match self.ends {
            Some((low, high)) if low < high => format!("Black is {}, white is {}.", shown(low), shown(high)),
            Some((value, _)) => format!("All values are {}.", shown(value)),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_reach_from_black_to_white() {
        let mut shade = Shade::default();
        [-1.0, f32::NAN, 3.0, f32::INFINITY].into_iter().for_each(|value| shade.add(value));
        let bytes = [-1.0, 1.0, 3.0, f32::NAN, f32::INFINITY].map(|value| shade.byte(value));
        assert_eq!(bytes, [0, 128, 255, 0, 255]);
        assert_eq!(shade.words(), "Black is -1, white is 3.");
    }
}
