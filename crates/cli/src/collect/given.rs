//! Measures given schedules one after another and writes them to one file.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use warploom::app::App;
use warploom::lang::files;
use warploom::runtime::TimingOptions;
use warploom::schedule::Schedule;
use warploom::schedule_file::ScheduleFileError;
use warploom::tune::measure::{Candidate, Feed, GpuMachine, Measured, Setup, Subject, compile_here, measure};
use warploom::tune::sample::{Origin, ShardWriter, Status};

use super::Arguments;
use crate::backend::open_gpu;
use crate::error::Error;
use crate::names::find_app;
use crate::pipeline::Purpose;
use crate::report::{self, Declared as _};

report! {
    struct Report = "warploom.collect.given/1" {
        file: String, "the file with the samples";
        measured: usize, "the schedules with a time";
        failed: usize, "the others";
    }
}

pub(super) fn collect(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let gpu = open_gpu()?;
    gpu.arch().map_err(|error| Error::Gpu(error.to_string()))?;
    let (names, candidates) = candidates(apps, arguments)?;
    let mut shard = ShardWriter::create(&arguments.output)?;
    let mut names = names.into_iter();
    let mut report = Report { file: arguments.output.display().to_string(), measured: 0, failed: 0 };
    let compile = |program: &_| compile_here(program, gpu.device());
    let setup = Setup::new(gpu.device(), &compile, TimingOptions::quick());
    let mut machine = GpuMachine::new(&gpu);
    let mut kept = Ok(());
    // A single feed keeps the order of the files.
    let feeds: Vec<Feed<'_>> = vec![Box::new(candidates.into_iter())];
    let measured = measure(&setup, feeds, vec![&mut machine], &mut |measured| {
        let name = names.next().unwrap_or_default();
        kept = keep(&name, measured, &mut shard, &mut report, (!arguments.format.json).then_some(&mut *out));
        if kept.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    kept?;
    measured.map_err(|error| Error::Gpu(error.to_string()))?;
    if report.measured == 0 {
        let Report { file, failed, .. } = report;
        return Err(Error::NothingMeasured(format!("{failed} samples failed; see {file}")));
    }
    match arguments.format.json {
        true => report::json(out, Report::NAME, &report),
        false => Ok(()),
    }
}

/// The schedules in all files, with their names for the report.
fn candidates(apps: &[App], arguments: &Arguments) -> Result<(Vec<String>, Vec<Candidate>), Error> {
    let mut subjects: Vec<(String, Arc<Subject>)> = Vec::new();
    let (mut names, mut candidates) = (Vec::new(), Vec::new());
    for file in &arguments.schedules {
        let name = file.display().to_string();
        let text = files::read_text(file)?;
        let app = find_app(apps, text.split_whitespace().next().unwrap_or_default())?;
        let known = subjects.iter().find(|(known, _)| *known == app.name).map(|(_, subject)| subject.clone());
        let subject = match known {
            Some(subject) => subject,
            None => {
                let (asked, _) = arguments.values.of_app(app, &[], Purpose::Run)?;
                let subject = Arc::new(Subject::of(&asked.workload(|_| None, arguments.amount.seed)?)?);
                subjects.push((app.name.clone(), subject.clone()));
                subject
            }
        };
        let schedule = Schedule::parse(&text, subject.pipeline()).map_err(|errors| {
            ScheduleFileError::Schedule { file: name.clone(), errors: errors.to_string() }
        })?;
        names.push(name);
        let (origin, predicted_us, checks) = (Origin::Given, None, Vec::new());
        candidates.push(Candidate { subject, schedule, origin, predicted_us, checks });
    }
    Ok((names, candidates))
}

/// Writes a sample to the file and reports its result.
fn keep(
    name: &str,
    measured: Measured,
    shard: &mut ShardWriter,
    report: &mut Report,
    out: Option<&mut (dyn Write + '_)>,
) -> Result<(), Error> {
    let Measured { candidate, sample, .. } = measured;
    let line = match (&sample.status, &sample.times) {
        (Status::Measured, Some(times)) => {
            report.measured += 1;
            format!("{name}: {:.2} us\n", times.min)
        }
        (status, _) => {
            report.failed += 1;
            format!("{name}: {status:?}\n")
        }
    };
    shard.add(candidate.subject.pipeline(), sample)?;
    out.map_or(Ok(()), |out| report::text(out, &line))
}
