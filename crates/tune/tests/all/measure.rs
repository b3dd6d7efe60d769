//! Measuring with a machine that is made up: what becomes of candidates, and what ends a run.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use warploom_interp::buffer::Buffer;
use warploom_lang::{Input, Pipeline, Region, func, vars};
use warploom_runtime::TimingOptions;
use warploom_target::{Device, Program};
use warploom_tune::measure::{
    Candidate, Check, Compile, Compiled, Contest, Failure, Feed, Machine, MeasureError, Setup, Subject,
    Timed, measure,
};
use warploom_tune::sample::{Origin, Sample, Status, Times};
use warploom_tune::workload::Workload;

/// Half a unit of what comes out of 8 samples.
const TOLERANCE: f64 = 0.5 / 21.0;

fn workload(width: i64) -> Workload {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let pipeline =
        Pipeline::new("thrice", [func("thrice", x, input.at(x) * 3.0 + 0.0)]).expect("it is right");
    let region = Region::of_extents(&[width]);
    let buffer = Buffer::from_fn::<f32>(region.clone(), |at| at[0] as f32).expect("it fits");
    Workload { pipeline, inputs: vec![buffer], params: Vec::new(), outputs: vec![region] }
}

/// As many candidates as are asked for, with something to compare them with.
fn candidates(count: usize) -> Vec<Candidate> {
    let subject = Arc::new(Subject::of(&workload(1000)).expect("it fits"));
    let check = Check::of_workload(workload(8), Some(TOLERANCE)).expect("it runs");
    let device = Device::preset("h200").expect("it is a preset");
    let schedule = subject.problem(&device).expect("it fits").default_schedule();
    let candidate = Candidate {
        subject,
        schedule,
        origin: Origin::Default,
        predicted_us: None,
        checks: vec![Arc::new(check)],
    };
    vec![candidate; count]
}

fn feed(count: usize) -> Feed<'static> {
    Box::new(candidates(count).into_iter())
}

/// Triples, and is off by something: `off[0]` with the checking build, `off[1]` with the timing build.
#[derive(Default)]
struct Fake {
    off: [f32; 2],
    runs: usize,
    failing: bool,
    fault_at: Option<usize>,
    lost_at: Option<usize>,
    timed: usize,
    restored: usize,
    rivals: Vec<Option<Duration>>,
}

impl Machine for Fake {
    fn time(
        &mut self,
        _: &Arc<Subject>,
        program: &Program,
        timing: &TimingOptions,
    ) -> Result<Timed, Failure> {
        self.timed += 1;
        self.rivals.push(timing.rival);
        if self.fault_at == Some(self.timed) {
            return Err(Failure::Fault("made up".to_owned()));
        }
        if self.lost_at == Some(self.timed) {
            return Err(Failure::Lost("made up".to_owned()));
        }
        if self.failing {
            return Err(Failure::Refused("made up".to_owned()));
        }
        assert_eq!(program.kernels.len(), 1);
        let times = Times { min: self.timed as f64, median: self.timed as f64, runs: 5 };
        Ok(Timed { times, spread: 0.1 })
    }

    fn run(&mut self, subject: &Arc<Subject>, _: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        let off = self.off[self.runs % 2];
        self.runs += 1;
        let thrice = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("it is 4 bytes")) * 3.0 + off;
        Ok(vec![subject.inputs()[0].chunks(4).flat_map(|bytes| thrice(bytes).to_le_bytes()).collect()])
    }

    fn restore(&mut self) {
        self.restored += 1;
    }
}

/// Two machines that can only time together: each waits for the other the first time.
struct Pair<'a> {
    arrived: &'a AtomicUsize,
    timed: usize,
}

impl Machine for Pair<'_> {
    fn time(&mut self, _: &Arc<Subject>, _: &Program, _: &TimingOptions) -> Result<Timed, Failure> {
        self.timed += 1;
        self.arrived.fetch_add(usize::from(self.timed == 1), Ordering::SeqCst);
        let started = Instant::now();
        while self.arrived.load(Ordering::SeqCst) < 2 {
            if started.elapsed() > Duration::from_secs(60) {
                return Err(Failure::Refused("the other did not come".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Timed { times: Times { min: 1.0, median: 1.0, runs: 5 }, spread: 0.0 })
    }

    fn run(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        Fake::default().run(subject, program)
    }

    fn restore(&mut self) {}
}

fn no_compiler(program: &Program) -> Result<Compiled, Failure> {
    Ok(Compiled { program: program.clone(), kernels: Default::default(), time: Duration::ZERO })
}

/// A setup without limits, and a device to make kernels for.
fn setup<'a>(device: &'a Device, compile: Compile<'a>) -> Setup<'a> {
    Setup { versions: vec!["test".into()], ..Setup::new(device, compile, TimingOptions::quick()) }
}

fn measured(
    feeds: Vec<Feed<'_>>,
    machine: &mut Fake,
    compile: Compile<'_>,
    deadline: Option<Instant>,
) -> (Vec<Sample>, Result<(), MeasureError>) {
    let device = Device::preset("h200").expect("it is known");
    let setup = Setup { deadline, ..setup(&device, compile) };
    measured_by(&setup, feeds, machine)
}

fn measured_by(
    setup: &Setup<'_>,
    feeds: Vec<Feed<'_>>,
    machine: &mut Fake,
) -> (Vec<Sample>, Result<(), MeasureError>) {
    let mut samples = Vec::new();
    let ended = measure(setup, feeds, vec![machine], &mut |measured| {
        samples.push(measured.sample);
        ControlFlow::Continue(())
    });
    (samples, ended)
}

#[test]
fn two_machines_measure_at_a_time() {
    let device = Device::preset("h200").expect("it is known");
    let arrived = AtomicUsize::new(0);
    let [mut one, mut two] = [0, 0].map(|timed| Pair { arrived: &arrived, timed });
    let mut samples = Vec::new();
    let ended = measure(
        &setup(&device, &no_compiler),
        vec![feed(6), feed(6)],
        vec![&mut one, &mut two],
        &mut |measured| {
            samples.push(measured.sample);
            ControlFlow::Continue(())
        },
    );
    assert!(ended.is_ok());
    assert_eq!(samples.iter().filter(|sample| sample.status == Status::Measured).count(), 12);
    assert_eq!(one.timed + two.timed, 12);
}

#[test]
fn one_machine_goes_on_when_the_other_is_lost() {
    let device = Device::preset("h200").expect("it is known");
    let mut lost = Fake { lost_at: Some(1), ..Fake::default() };
    let mut well = Fake::default();
    let mut count = 0;
    let mut record = |_| {
        count += 1;
        // Long enough for the other to come.
        std::thread::sleep(Duration::from_millis(5));
        ControlFlow::Continue(())
    };
    let machines: Vec<&mut dyn Machine> = vec![&mut lost, &mut well];
    let ended = measure(&setup(&device, &no_compiler), vec![feed(40)], machines, &mut record);
    assert!(ended.is_ok());
    assert_eq!((lost.timed, well.timed, count), (1, 39, 39));
}

#[test]
fn every_candidate_becomes_a_sample() {
    let mut machine = Fake::default();
    let (samples, ended) = measured(vec![feed(7), feed(5), feed(0)], &mut machine, &no_compiler, None);
    assert!(ended.is_ok());
    assert_eq!(samples.len(), 12);
    assert!(samples.iter().all(|sample| sample.status == Status::Measured && sample.verified));
    assert_eq!(samples[3].times.map(|times| times.runs), Some(5));
    assert!(samples[0].schedule.starts_with("thrice"), "{}", samples[0].schedule);
}

#[test]
fn results_are_compared() {
    let status = |off| {
        let mut machine = Fake { off, ..Fake::default() };
        let (samples, _) = measured(vec![feed(1)], &mut machine, &no_compiler, None);
        assert!(samples[0].verified && samples[0].times.is_some());
        assert_eq!(machine.restored, usize::from(samples[0].status != Status::Measured));
        samples[0].status.clone()
    };
    assert_eq!(status([0.0, 0.25]), Status::Measured);
    assert!(matches!(status([0.0, 0.75]), Status::Numeric(_)));
    assert!(matches!(status([0.25, 0.0]), Status::Wrong(_)));
}

#[test]
fn what_cannot_be_built_or_run_is_a_sample_too() {
    let refused = |_: &Program| Err(Failure::Refused("no".into()));
    let (samples, ended) = measured(vec![feed(2)], &mut Fake::default(), &refused, None);
    assert!(ended.is_ok() && samples.len() == 2);
    assert!(samples.iter().all(|sample| matches!(sample.status, Status::NotCompiled(_))));

    let late = |_: &Program| Err(Failure::TimedOut("10 s".into()));
    let (samples, ended) = measured(vec![feed(2)], &mut Fake::default(), &late, None);
    assert!(ended.is_ok() && samples.iter().all(|sample| matches!(sample.status, Status::TimedOut(_))));

    let panics = |_: &Program| -> Result<Compiled, Failure> { panic!("made up") };
    let (samples, ended) = measured(vec![feed(2)], &mut Fake::default(), &panics, None);
    assert!(ended.is_ok() && samples.len() == 2);
    assert!(samples.iter().all(|sample| matches!(sample.status, Status::NotLowered(_))));

    let mut broken = candidates(1);
    broken[0].schedule.root.clear();
    let (samples, _) = measured(vec![Box::new(broken.into_iter())], &mut Fake::default(), &no_compiler, None);
    assert!(matches!(samples[0].status, Status::NotLowered(_)));

    let mut failing = Fake { failing: true, ..Fake::default() };
    let (samples, ended) = measured(vec![feed(3)], &mut failing, &no_compiler, None);
    assert!(ended.is_ok() && samples.iter().all(|sample| matches!(sample.status, Status::Failed(_))));
    let (samples, ended) = measured(vec![feed(300)], &mut failing, &no_compiler, None);
    assert!(matches!(ended, Err(MeasureError::Failures(_))));
    assert_eq!(samples.len(), 50);
}

#[test]
fn a_fault_ends_the_run_with_its_sample() {
    let mut machine = Fake { fault_at: Some(4), ..Fake::default() };
    let (samples, ended) = measured(vec![feed(50), feed(50)], &mut machine, &no_compiler, None);
    assert!(matches!(ended, Err(MeasureError::Fault(_))));
    assert_eq!(samples.len(), 4);
    assert!(matches!(samples[3].status, Status::Failed(_)));
}

#[test]
fn time_ends_a_run_and_a_panicking_feed_only_itself() {
    let endless = || -> Feed<'static> { Box::new(candidates(1).into_iter().cycle()) };
    let deadline = Instant::now() + Duration::from_millis(200);
    let (samples, ended) =
        measured(vec![endless(), endless()], &mut Fake::default(), &no_compiler, Some(deadline));
    assert!(ended.is_ok() && !samples.is_empty());
    let panicking: Feed<'_> = Box::new(std::iter::from_fn(|| panic!("made up")));
    let (samples, ended) = measured(vec![panicking, feed(3)], &mut Fake::default(), &no_compiler, None);
    assert!(ended.is_ok());
    assert_eq!(samples.len(), 3);
}

#[test]
fn a_machine_that_is_lost_ends_the_run_without_a_sample() {
    let mut machine = Fake { lost_at: Some(3), ..Fake::default() };
    let (samples, ended) = measured(vec![feed(50)], &mut machine, &no_compiler, None);
    assert!(matches!(ended, Err(MeasureError::Lost(_))));
    assert_eq!(samples.len(), 2);
    let lost = |_: &Program| Err(Failure::Lost("no compiler".into()));
    let (samples, ended) = measured(vec![feed(50)], &mut Fake::default(), &lost, None);
    assert!(matches!(ended, Err(MeasureError::Lost(_))) && samples.is_empty());
}

#[test]
fn what_spills_is_left_out_if_that_is_asked() {
    let spilling = |program: &Program| {
        let mut compiled = no_compiler(program)?;
        let resources = warploom_runtime::Resources { spill_stores: 8, ..Default::default() };
        compiled.kernels = program.kernels.iter().map(|kernel| (kernel.entry.clone(), resources)).collect();
        Ok(compiled)
    };
    let (samples, _) = measured(vec![feed(1)], &mut Fake::default(), &spilling, None);
    assert_eq!((&samples[0].status, samples[0].kernels[0].spill_stores), (&Status::Measured, 8));
    let device = Device::preset("h200").expect("it is known");
    let skip = Setup { skip_spilling: true, ..setup(&device, &spilling) };
    let (samples, _) = measured_by(&skip, vec![feed(1)], &mut Fake::default());
    assert!(matches!(samples[0].status, Status::Spilled(_)) && samples[0].times.is_none());
    assert_eq!(samples[0].kernels.len(), 1);
}

#[test]
fn slow_candidates_get_little_time_and_a_stop_ends_the_run() {
    let device = Device::preset("h200").expect("it is known");
    let contest = Some(Contest { best_us: Some(100.0) });
    let mut machine = Fake::default();
    let (samples, _) =
        measured_by(&Setup { contest, ..setup(&device, &no_compiler) }, vec![feed(2)], &mut machine);
    assert_eq!(samples.len(), 2);
    // The first takes a microsecond.
    assert_eq!(machine.rivals, [100, 1].map(|rival| Some(Duration::from_micros(rival))));

    let stop = std::sync::atomic::AtomicBool::new(true);
    let stopped = Setup { stop: Some(&stop), ..setup(&device, &no_compiler) };
    let (samples, ended) = measured_by(&stopped, vec![feed(9)], &mut Fake::default());
    assert!(ended.is_ok() && samples.is_empty());
}
