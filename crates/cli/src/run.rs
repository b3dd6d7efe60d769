//! `warploom run`: runs an app on files or on generated inputs.

mod trace;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use warploom::app::{App, Subject};
use warploom::inputs::Given;
use warploom::interp::buffer::Buffer;
use warploom::interp::files::{self, FileError};
use warploom::interp::picture;
use warploom::lang::{Region, Type, Value, dispatch, infer};
use warploom::tune::workload::Workload;

use crate::backend::{self, Backend, Check, Done};
use crate::choice::Choice;
use crate::error::{Error, RunError};
use crate::inputs;
use crate::names::{Kind, written};
use crate::report::{self, Format};
use crate::show;
use crate::table::{PlainText as _, Table, dash};
use crate::writable;

/// Run a pipeline; write or summarise its outputs
///
/// Without --on, it runs on the reference evaluator, which needs neither a schedule nor a GPU. It takes seconds per
/// image.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom run unsharp --input photo.png -o sharper.png      the image determines the sizes
  warploom run harris --generate                             a made-up input, and only a summary
  warploom run unsharp --set sigma=2 --size 640x480 --generate -o out.npy
  warploom run camera_pipe --input raw.npy --param gamma=2.2 -o out.png
  warploom run bgu --input slice_loc=large.png --input values=small.npy -o output=out.png
  warploom run mine.json --input photo.png -o out.png        a pipeline that Pipeline::to_json wrote
  warploom run unsharp --size 64x48 --generate --trace unsharp.html   watch what is computed and read, and when

Inputs are .npy files or pictures: PNG, JPEG, TIFF, WebP, BMP and PNM. Outputs are .npy, .png, .ppm or .pgm. Pictures are
converted to the input's type; for f32, 0 to 255 is scaled to 0 to 1. Grey is repeated for inputs with colours, and an opaque
alpha is dropped; photo.jpg:grey takes the luma of a picture with colours, and photo.png:rgb drops any alpha. Inputs without
a file are an error; with --generate they are made up from the seed.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// Make up the inputs that have no file, from --seed
    #[arg(long, help_heading = "Pipeline")]
    generate: bool,
    /// The file of an output; without NAME, of the next output that has no file. Can be repeated
    #[arg(short, long, alias = "out", value_name = "[NAME=]FILE")]
    output: Vec<String>,
    /// Write an HTML page that shows, step by step, which points are computed and read
    ///
    /// Implies --on sim. Without --schedule, the schedule is the one that the search finds.
    /// A page has room for small sizes only, such as --size 64x48.
    #[arg(long, value_name = "FILE", help_heading = "Kernels", verbatim_doc_comment)]
    trace: Option<PathBuf>,
    #[command(flatten)]
    target: backend::Target,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Report = "warploom.run/1" {
        app: String, "the app";
        settings: BTreeMap<String, f64>, "sizes, structure parameters and Params by name";
        seed: u64, "the seed of generated inputs";
        inputs: Vec<Input>, "the inputs";
        outputs: Vec<Output>, "the outputs; each value of a tuple is one";
        on: String, "`reference`, `sim` or `cuda`";
        seconds: f64, "how long it took";
        trace: Option<trace::Written>, "the page of `--trace`";
    }

    struct Input = "run input" {
        name: String, "its name";
        file: Option<String>, "its file; `null` if it was generated";
        region: Region, "its box";
    }

    struct Output = "run output" {
        name: String, "its name";
        #[serde(rename = "type")]
        ty: Type, "the type of its samples";
        region: Region, "its box";
        #[serde(flatten)]
        summary: Summary;
        file: Option<String>, "the file that it was written to";
    }

    /// Statistics of the samples of an output.
    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Summary = "" {
        min: Option<f64>, "the smallest finite sample";
        max: Option<f64>, "the largest finite sample";
        mean: Option<f64>, "the mean of the finite samples";
        not_finite: u64, "the samples that are NaN or infinite";
    }
}

/// What runs the pipeline.
enum Runner<'a> {
    Plain(backend::Ready<'a>),
    /// The simulator, which also writes a page.
    Traced(Box<trace::Page<'a>>),
}

impl Runner<'_> {
    fn backend(&self) -> Backend {
        match self {
            Runner::Plain(on) => on.target.backend(),
            Runner::Traced(_) => Backend::Sim,
        }
    }

    /// Runs a pipeline; `what` is the app at its sizes.
    fn run(&self, workload: Workload, what: &str) -> Result<(Done, Option<trace::Written>), RunError> {
        match self {
            Runner::Plain(on) => Ok((on.run(workload, Check::No)?, None)),
            Runner::Traced(page) => page.run(workload, what).map(|(done, written)| (done, Some(written))),
        }
    }
}

/// All choices, made before the pipeline runs.
struct Plan {
    subject: Subject,
    given: Vec<Given>,
    /// One buffer per output value, and the file to write it to.
    outputs: Vec<Target>,
}

/// One value of an output; a tuple has several.
struct Target {
    name: String,
    ty: Type,
    region: Region,
    file: Option<String>,
}

pub(crate) fn run(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let on = match &arguments.trace {
        Some(file) => Runner::Traced(Box::new(trace::Page::new(file, &arguments.target, arguments.format)?)),
        None => Runner::Plain(arguments.target.ready(arguments.format)?),
    };
    let plan = Plan::new(apps, arguments)?;
    let report = plan.run(arguments.choice.seed, &on)?;
    report::print(out, arguments.format, &report, || report.text(&plan.subject))
}

impl Arguments {
    /// The files of outputs are checked once it is known what they will hold.
    pub(crate) fn outputs(&self) -> Vec<writable::Output<'_>> {
        self.trace.iter().map(|file| writable::Output::File(file)).collect()
    }
}

impl Plan {
    fn new(apps: &[App], arguments: &Arguments) -> Result<Plan, Error> {
        let (subject, given) = arguments.choice.subject(apps)?;
        let outputs = targets(&subject, &arguments.output)?;
        let plan = Plan { subject, given, outputs };
        plan.check()?;
        plan.check_inputs(arguments.generate)?;
        Ok(plan)
    }

    /// Reports errors that are known before inputs are generated and the pipeline runs.
    fn check(&self) -> Result<(), Error> {
        let subject = &self.subject;
        if let Some((name, _)) = subject.shapes().outputs.iter().find(|(_, region)| region.is_empty()) {
            let (app, output, sizes) = (subject.name.clone(), name.clone(), subject.sizes.to_string());
            return Err(Error::Empty { app, output, sizes });
        }
        subject.check_memory()?;
        infer(&subject.pipeline, &subject.request).map_err(|error| subject.failed(error.into()))?;
        self.outputs.iter().try_for_each(Target::check)
    }

    /// Inputs are made up only where that is asked for.
    fn check_inputs(&self, generate: bool) -> Result<(), Error> {
        let all = self.subject.pipeline.inputs();
        let has_file = |name: &str| self.given.iter().any(|given| given.name == name);
        let names = all.values().map(|input| input.name.as_str()).filter(|name| !has_file(name));
        let missing: Vec<&str> = names.filter(|name| !self.subject.app.owns_input(name)).collect();
        match (missing.as_slice(), generate) {
            ([], true) if !all.is_empty() => {
                let why = "every input has a file; remove it";
                Err(Error::Ignored { flag: "generate".to_owned(), why })
            }
            (&[first, ..], false) => Err(Error::NoInput {
                app: self.subject.name.clone(),
                inputs: show::count(missing.len(), "input"),
                names: missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
                first: first.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn run(&self, seed: u64, on: &Runner<'_>) -> Result<Report, Error> {
        let (subject, shapes) = (&self.subject, self.subject.shapes());
        let workload = subject.workload(|name| inputs::given(&self.given, name), seed)?;
        let what = format!("{}{}", subject.name, subject.sizes);
        let (done, trace) = on.run(workload, &what).map_err(|error| match error {
            RunError::Evaluation(error) => subject.failed(*error).into(),
            RunError::Kernels(error) => error,
        })?;

        let mut outputs = Vec::new();
        for (target, buffer) in self.outputs.iter().zip(&done.outputs) {
            outputs.push(target.finish(buffer)?);
        }
        let file_of = |name: &str| self.given.iter().find(|given| given.name == name);
        let inputs = shapes.inputs.iter().map(|(name, region)| Input {
            name: name.clone(),
            file: file_of(name).map(|given| given.file.clone()),
            region: region.clone(),
        });
        Ok(Report {
            app: subject.name.clone(),
            settings: subject.settings.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            seed,
            inputs: inputs.collect(),
            outputs,
            on: written(&on.backend()),
            seconds: done.seconds,
            trace,
        })
    }
}

/// One buffer per output value in the pipeline's order, with the files given for them.
fn targets(subject: &Subject, given: &[String]) -> Result<Vec<Target>, Error> {
    let mut targets = Vec::new();
    let funcs = subject.pipeline.outputs().iter().map(|id| &subject.pipeline.funcs()[*id]);
    for (func, region) in funcs.zip(&subject.request.outputs) {
        let region = region.clone().unwrap_or_else(|| Region::empty(func.dims.len()));
        for (name, &ty) in func.value_names().into_iter().zip(&func.types) {
            targets.push(Target { name, ty, region: region.clone(), file: None });
        }
    }
    let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (name, file) in inputs::assign(&subject.app, Kind::Output, &names, given)? {
        if let Some(target) = targets.iter_mut().find(|target| target.name == name) {
            target.file = Some(file.to_owned());
        }
    }
    Ok(targets)
}

impl Target {
    /// Checks that the file can hold the output, by encoding an image of one pixel.
    fn check(&self) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = Path::new(file);
        writable::check_file(path)?;
        let Some(format) = picture::Format::of(path) else {
            let is_array = file.to_lowercase().ends_with(".npy");
            let unknown = FileError::Extension { name: file.clone() };
            return if is_array { Ok(()) } else { Err(unknown.into()) };
        };
        let mut pixel = self.region.extents();
        pixel.iter_mut().take(2).for_each(|extent| *extent = 1);
        let tried = match pixel.len() {
            2 | 3 => Buffer::zeros(self.ty, Region::of_extents(&pixel)).map_err(picture::PictureError::from),
            _ => Err(picture::PictureError::Extents { extents: self.region.extents() }),
        };
        let tried = tried.and_then(|pixel| picture::write_to(&pixel, format));
        tried.map_err(|problem| FileError::WritePicture { name: file.clone(), problem })?;
        Ok(())
    }

    /// Writes the output to its file and summarises it.
    fn finish(&self, buffer: &Buffer) -> Result<Output, Error> {
        if let Some(file) = &self.file {
            files::write_any(file, buffer)?;
        }
        Ok(Output {
            name: self.name.clone(),
            ty: buffer.ty(),
            region: buffer.region().clone(),
            summary: Summary::of(buffer),
            file: self.file.clone(),
        })
    }
}

impl Summary {
    fn of(buffer: &Buffer) -> Summary {
        let (mut min, mut max, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0u64);
        dispatch!(buffer.ty(), T => {
            for &sample in buffer.as_slice::<T>().unwrap_or_default() {
                let sample = Value::from(sample).as_f64();
                if sample.is_finite() {
                    (min, max) = (min.min(sample), max.max(sample));
                    sum += sample;
                    count += 1;
                }
            }
        });
        let known = |value: f64| (count > 0).then_some(value);
        let not_finite = buffer.len() as u64 - count;
        Summary { min: known(min), max: known(max), mean: known(sum / count as f64), not_finite }
    }
}

impl Report {
    fn where_it_ran(&self) -> &'static str {
        match self.on.as_str() {
            "sim" => "the simulator",
            "cuda" => "the GPU, including compilation",
            _ => "the reference evaluator",
        }
    }

    fn text(&self, subject: &Subject) -> String {
        let number = |value: Option<f64>| dash(value.map(show::number));
        let sizes = &subject.sizes;
        let head = format!("{}{sizes}: {:.3} s on {}\n\n", self.app, self.seconds, self.where_it_ran());
        let page = self.trace.as_ref().map_or_else(String::new, |trace| {
            let (steps, bytes) = (show::count(trace.steps, "step"), show::bytes(trace.bytes as u64));
            format!("\n{}: {steps}, {bytes}\n", show::path(&trace.file))
        });
        head + &Table::of(&self.outputs)
            .left("output", |output| output.name.clone())
            .right("size", |output| show::extents(&output.region))
            .left("type", |output| output.ty.to_string())
            .right("min", move |output| number(output.summary.min))
            .right("max", move |output| number(output.summary.max))
            .right("mean", move |output| number(output.summary.mean))
            .right("not finite", |output| output.summary.not_finite.to_string())
            .left("file", |output| dash(output.file.as_ref().map(show::path)))
            .text()
            + &page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_leaves_out_what_is_not_finite() {
        let samples = vec![1.0_f32, f32::NAN, 3.0, f32::INFINITY];
        let buffer = Buffer::from_vec(Region::of_extents(&[4]), samples).unwrap();
        let expected = Summary { min: Some(1.0), max: Some(3.0), mean: Some(2.0), not_finite: 2 };
        assert_eq!(Summary::of(&buffer), expected);

        let nothing = Buffer::from_vec(Region::of_extents(&[1]), vec![f32::NAN]).unwrap();
        assert_eq!(Summary::of(&nothing), Summary { min: None, max: None, mean: None, not_finite: 1 });
    }
}
