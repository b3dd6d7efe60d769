//! The backends that pipelines run on, and the flags to choose one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Arg, ValueEnum};
use warploom::Scheduled;
use warploom::check::{Builds, run_build};
use warploom::codegen::export::file_stem;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::Build;
use warploom::interp::buffer::Buffer;
use warploom::lang::files;
use warploom::plan::Problem;
use warploom::runtime::Gpu;
use warploom::schedule::Schedule;
use warploom::schedule_file::{problem, read_legal, unbuilt};
use warploom::search::Options;
use warploom::target::Device;
use warploom::tune::one_shot::OneShot;
use warploom::tune::workload::{PERTURBED_RUNS, Workload};

use crate::device::{self, Beside};
use crate::error::{Error, RunError};
use crate::model::Model;
use crate::progress::{Progress, Unit};
use crate::report::Format;
use crate::{names, search};

/// What runs a pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Backend {
    /// The reference evaluator, which computes every Func directly from its definition
    Reference,
    /// The GPU simulator, which runs the kernels of a schedule and checks every access
    Sim,
    /// A GPU, which runs the compiled kernels of a schedule
    Cuda,
}

/// Where to run, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// What to run on (default: reference)
    #[arg(long, value_enum, help_heading = "Kernels")]
    pub(crate) on: Option<Backend>,
    #[command(flatten)]
    pub(crate) kernels: Kernels,
}

/// Which kernels to make.
#[derive(Debug, clap::Args)]
pub(crate) struct Kernels {
    /// The schedule: a file, a folder with APP.schedule, `default`, `random:SEED` or `search[:SEED]`
    ///
    /// `default` is the default schedule, with one kernel per nontrivial stage;
    /// `random:SEED` is a random legal schedule drawn with this seed;
    /// `search` is the schedule that the search finds; its seed is 0 unless given.
    #[arg(long, value_name = "FILE", value_parser = Source::parse, help_heading = "Kernels", verbatim_doc_comment)]
    pub(crate) schedule: Option<Source>,
    /// The GPU to generate kernels for: a preset, a *.json file, or `auto` (default: auto)
    ///
    /// `warploom devices --presets` lists the presets.
    /// `auto` is the first GPU of this machine, or h200 if it has none.
    /// Kernels that run on a GPU are always generated for that GPU.
    #[arg(long, value_name = "NAME", help_heading = "Kernels", verbatim_doc_comment)]
    device: Option<String>,
    #[command(flatten)]
    pub(crate) model: Model,
}

/// The help of `--device` for commands that take it from the manifest beside a schedule.
pub(crate) fn of_schedule(device: Arg) -> Arg {
    device.help("The GPU to generate kernels for (default: the one in the manifest beside the schedule, or auto)").long_help(
        "The GPU to generate kernels for: a preset, a *.json file, or `auto`\n\n\
         By default it is the one that the schedule was compiled for, which APP.json beside APP.schedule names.\n\
         Without such a file it is `auto`: the first GPU of this machine, or h200 if it has none.\n\
         `warploom devices --presets` lists the presets.",
    )
}

/// Where schedules come from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Source {
    /// The default schedule, which every pipeline has.
    Default,
    /// A random legal schedule, drawn with this seed.
    Random(u64),
    /// The schedule that a search with this seed finds.
    Search(u64),
    /// A file, or a folder with one file per app.
    Path(PathBuf),
}

/// Whether, and how, kernels are compared with the reference evaluator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Check {
    /// No comparison.
    No,
    /// With the tolerance that the app states, or with the one derived from the pipeline if it is
    /// `None`.
    By(Option<f64>),
}

/// The result of a run.
pub(crate) struct Done {
    /// One buffer per output value, in the pipeline's order; a tuple has several values.
    pub(crate) outputs: Vec<Buffer>,
    /// Wall time, including compilation and checks.
    pub(crate) seconds: f64,
    /// The first difference from the reference evaluator that is not allowed, as a sentence.
    pub(crate) fault: Option<String>,
}

impl Source {
    pub(crate) fn parse(text: &str) -> Result<Source, String> {
        let seed = |kind: &str, seed: &str| {
            seed.parse().map_err(|_| {
                format!("`{seed}` is not a seed; write a whole number from 0 to {}, as in {kind}:7", u64::MAX)
            })
        };
        match text.split_once(':') {
            Some(("random", of)) => seed("random", of).map(Source::Random),
            Some(("search", of)) => seed("search", of).map(Source::Search),
            _ if text == "default" => Ok(Source::Default),
            _ if text == "search" => Ok(Source::Search(0)),
            _ => {
                let near = names::nearest(text, &["default", "random", "search"]);
                match near.filter(|_| !Path::new(text).exists()) {
                    Some("random") => Err("there is no such file; did you mean `random:SEED`?".to_owned()),
                    Some(near) => Err(format!("there is no such file; did you mean `{near}`?")),
                    None => Ok(Source::Path(PathBuf::from(text))),
                }
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Random(seed) => write!(f, "random:{seed}"),
            Source::Search(0) => f.write_str("search"),
            Source::Search(seed) => write!(f, "search:{seed}"),
            Source::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Kernels {
    /// Loads, draws or searches for the schedule of a problem, or for one at ranges of sizes if these are given.
    pub(crate) fn obtain(&self, problem: &Problem, any_size: Option<&Problem>) -> Result<Obtained, Error> {
        let source = self.schedule.as_ref().ok_or_else(|| no_schedule("this command"))?;
        self.obtain_from(source, problem, any_size)
    }

    /// The schedule from one source.
    pub(crate) fn obtain_from(
        &self,
        source: &Source,
        problem: &Problem,
        any_size: Option<&Problem>,
    ) -> Result<Obtained, Error> {
        let schedule = match source {
            Source::Default => problem.default_schedule(),
            Source::Random(seed) => problem.random_schedule(*seed),
            Source::Search(seed) => {
                let options = Options { seed: *seed, any_size: any_size.cloned(), ..Options::default() };
                let model = self.model.load(problem.device())?;
                return Ok(Obtained::Found(Box::new(search::run(problem, &*model, &options)?)));
            }
            Source::Path(given) => {
                let file = schedule_file(given, problem.pipeline().name());
                read_legal(&file, any_size.unwrap_or(problem))?
            }
        };
        Ok(Obtained::Given(schedule))
    }

    /// The options of the search; `None` if the schedule comes from elsewhere. `search:SEED`
    /// replaces the seed of `usual`.
    pub(crate) fn search_options(&self, usual: Options) -> Option<Options> {
        match self.schedule {
            None => Some(usual),
            Some(Source::Search(seed)) => Some(Options { seed, ..usual }),
            Some(_) => None,
        }
    }

    /// Whether there is a schedule for an app. The first word of a schedule file is its pipeline's
    /// name.
    pub(crate) fn covers(&self, app: &str) -> bool {
        let Some(Source::Path(given)) = &self.schedule else { return true };
        if given.is_dir() {
            return schedule_file(given, app).is_file();
        }
        let text = files::read_text(given).unwrap_or_default();
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        // An unreadable file is reported by the first app that needs it.
        let mut headers = lines.filter(|line| !line.trim().is_empty());
        let own: Vec<&str> = app.split_whitespace().collect();
        headers.next().is_none_or(|header| header.split_whitespace().take(own.len()).eq(own))
    }

    /// The device to build kernels for; it need not be present.
    pub(crate) fn device(&self, format: Format) -> Result<Device, Error> {
        match self.named_device() {
            several if several.contains(',') => Err(Error::SeveralDevices { devices: several.to_owned() }),
            one => device::find(one, format),
        }
    }

    fn named_device(&self) -> &str {
        self.device.as_deref().unwrap_or(device::AUTO)
    }

    /// The device to build kernels of an existing schedule for: unless one is given, the one that the manifest beside the
    /// schedule names.
    pub(crate) fn device_of_schedule(&self, app: &str, format: Format) -> Result<Device, Error> {
        let beside = match &self.schedule {
            Some(Source::Path(given)) => Beside::of(&schedule_file(given, app)),
            _ => None,
        };
        match beside {
            Some(beside) => beside.device(self.device.as_deref(), format),
            None => self.device(format),
        }
    }

    /// The devices to build kernels for, separated by commas: at least one.
    pub(crate) fn devices(&self, format: Format) -> Result<Vec<Device>, Error> {
        let mut devices: Vec<Device> = Vec::new();
        for name in self.named_device().split(',') {
            let device = device::find(name, format)?;
            if devices.iter().any(|listed| listed.name == device.name) {
                return Err(Error::RepeatedDevice { device: device.name });
            }
            devices.push(device);
        }
        Ok(devices)
    }

    /// Builds the kernels of a workload for a device. The workload's pipeline becomes the rewritten one, whose outputs
    /// the kernels compute.
    pub(crate) fn build(&self, workload: &mut Workload, device: &Device) -> Result<Program, Error> {
        let problem = problem(&workload.pipeline, &workload.realisation(), device)?;
        let scheduled = self.obtain(&problem, None)?.build(problem, None, false)?;
        workload.pipeline = scheduled.problem().pipeline().clone();
        Ok(scheduled.program().clone())
    }
}

/// A schedule that was given, or what a search found.
pub(crate) enum Obtained {
    Given(Schedule),
    Found(Box<OneShot>),
}

impl Obtained {
    pub(crate) fn schedule(&self) -> &Schedule {
        match self {
            Obtained::Given(schedule) => schedule,
            Obtained::Found(found) => &found.planned.schedule,
        }
    }

    /// The kernels: at all sizes of `any_size` if that is given.
    pub(crate) fn build(
        self,
        problem: Problem,
        any_size: Option<Problem>,
        pitched: bool,
    ) -> Result<Scheduled, Error> {
        let pipeline = problem.pipeline().clone();
        let built = match self {
            Obtained::Given(schedule) => Scheduled::new(problem, any_size, schedule, pitched),
            Obtained::Found(found) => Scheduled::found(problem, any_size, &found, pitched),
        };
        Ok(built.map_err(|error| unbuilt(&pipeline, error))?)
    }
}

/// The error of a command that runs kernels, without a schedule.
pub(crate) fn no_schedule(what: &str) -> Error {
    Error::NoSchedule { what: what.to_owned() }
}

fn schedule_file(given: &Path, app: &str) -> PathBuf {
    if given.is_dir() { given.join(format!("{}.schedule", file_stem(app))) } else { given.to_path_buf() }
}

/// A [`Target`] on which pipelines can run.
pub(crate) struct Ready<'a> {
    pub(crate) target: &'a Target,
    on: On,
}

/// A backend with what it needs.
enum On {
    Reference,
    Sim(Box<Device>),
    Cuda,
}

impl Target {
    /// The backend that is asked for, or the reference evaluator.
    pub(crate) fn backend(&self) -> Backend {
        self.on.unwrap_or(Backend::Reference)
    }

    /// Checks the flags before anything runs.
    pub(crate) fn ready(&self, format: Format) -> Result<Ready<'_>, Error> {
        let backend = self.backend();
        if backend != Backend::Reference && self.kernels.schedule.is_none() {
            return Err(no_schedule(&format!("--on {}", names::written(&backend))));
        }
        let on = match backend {
            Backend::Reference => On::Reference,
            Backend::Sim => On::Sim(Box::new(self.kernels.device(format)?)),
            Backend::Cuda => open_gpu().map(|_| On::Cuda)?,
        };
        Ok(Ready { target: self, on })
    }
}

impl Ready<'_> {
    /// Runs a pipeline, shows its progress, and compares kernels on a GPU with the reference evaluator if asked to.
    pub(crate) fn run(&self, workload: Workload, check: Check) -> Result<Done, RunError> {
        let start = Instant::now();
        let (outputs, fault) = match &self.on {
            On::Reference => (evaluate(&workload)?, None),
            On::Sim(device) => (self.simulate(workload, device)?, None),
            On::Cuda => self.on_gpu(workload, check)?,
        };
        Ok(Done { outputs, seconds: start.elapsed().as_secs_f64(), fault })
    }

    fn simulate(&self, mut workload: Workload, device: &Device) -> Result<Vec<Buffer>, RunError> {
        let program = self.target.kernels.build(&mut workload, device)?;
        let _progress = Progress::new(format!("simulating {}", workload.pipeline.name()), Unit::Time);
        let outcome = workload.simulate(&program, device, 0);
        Ok(outcome.map_err(|error| Error::Simulation(Box::new(error)))?.outputs)
    }

    /// Runs the timing build on the GPU and returns its outputs. If asked to, also checks them
    /// against the reference evaluator, and the checking build bit for bit.
    fn on_gpu(
        &self,
        mut workload: Workload,
        check: Check,
    ) -> Result<(Vec<Buffer>, Option<String>), RunError> {
        let gpu = open_gpu()?;
        let program = self.target.kernels.build(&mut workload, gpu.device())?;
        let _progress = Progress::new(format!("running {}", workload.pipeline.name()), Unit::Time);
        let Check::By(tolerance) = check else {
            return Ok((run_build(&gpu, &workload, &program, Build::Timing).map_err(Error::from)?, None));
        };
        let expected = workload.expected(tolerance, PERTURBED_RUNS);
        let expected = expected.map_err(|error| RunError::Evaluation(Box::new(error)))?;
        let builds =
            Builds::run(&expected, |build| workload.load(&gpu, &program, build)).map_err(Error::from)?;
        let fault = builds.fault();
        Ok((builds.outputs, fault))
    }
}

/// Opens the first GPU.
pub(crate) fn open_gpu() -> Result<Gpu, Error> {
    Gpu::new(0).map_err(|error| Error::NoGpu(error.to_string()))
}

fn evaluate(workload: &Workload) -> Result<Vec<Buffer>, RunError> {
    let progress = Progress::new(format!("evaluating {}", workload.pipeline.name()), Unit::Share);
    let evaluation = workload.evaluation().on_progress(|step| {
        progress.set_length(step.total);
        progress.set_position(step.done);
        progress.set_message(step.func.to_owned());
    });
    evaluation.run().map_err(|error| RunError::Evaluation(Box::new(error)))
}
