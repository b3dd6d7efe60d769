//! `warploom train`: trains the weights of the cost model on measured samples.

use std::io::Write;
use std::path::{Path, PathBuf};

use warploom::cost::Weights;
use warploom_training::data::{Data, LeftOut};
use warploom_training::model::Backend;
use warploom_training::score::Score;
use warploom_training::train::{Epoch, Options, Trained, train as train_model};

use crate::error::Error;
use crate::model::read;
use crate::names::find_app;
use crate::progress::{Progress, Unit};
use crate::report::{self, Declared as _, Format};
use crate::show;
use crate::writable::{Output, make_folder, write};

/// Train the cost model on measured samples
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom train --data training/data -o models/h200.bin
  warploom train --data training/data --hold-out harris -o harris.bin
  warploom train --data training/data --hold-out all -o held-out
  warploom train --data more-samples --init models/h200.bin --epochs 10 -o better.bin

One in eight random pipelines is held out of training; the scores are computed on these. On a CPU, the same samples,
options and seed give the same weights.")]
pub(crate) struct Arguments {
    /// A file of samples, or a folder of them, written by `warploom collect`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The file for the weights; a folder with `--hold-out all`
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
    /// An app to hold out of training; `all` trains one set of weights per app, each without that app
    #[arg(long, value_name = "APP")]
    hold_out: Option<String>,
    /// Number of passes over all samples
    #[arg(long, value_name = "N", default_value_t = Options::default().epochs)]
    epochs: usize,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The training backend
    #[arg(long, value_enum, default_value_t = Where::Flex)]
    backend: Where,
    /// Weights to start from
    #[arg(long, value_name = "FILE")]
    init: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Where {
    /// The CPU
    Flex,
    /// The CPU, with the ndarray backend that flex replaces
    Ndarray,
    /// A GPU
    Wgpu,
}

impl From<Where> for Backend {
    fn from(place: Where) -> Backend {
        match place {
            Where::Flex => Backend::Flex,
            Where::Ndarray => Backend::Ndarray,
            Where::Wgpu => Backend::Wgpu,
        }
    }
}

report! {
    struct Report = "warploom.train/1" {
        device: String, "the GPU that the samples were measured on";
        samples: usize, "the samples";
        groups: usize, "the pipelines";
        left_out: LeftOut, "the samples that were not used";
        weights: Vec<Written>, "the files of weights";
    }

    /// One file of weights.
    struct Written = "trained weights" {
        file: String, "the file";
        held_out: Option<String>, "the app that it was trained without";
        samples: usize, "the samples that it was trained on";
        groups: usize, "their pipelines";
        epoch: usize, "the epoch that was kept";
        losses: Vec<f64>, "the training loss of each epoch";
        validation: Option<Score>, "the scores on random pipelines that are never used for training";
    }
}

pub(crate) fn train(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let apps = warploom_apps::APPS.as_slice();
    let held_out: Vec<Option<&str>> = match arguments.hold_out.as_deref() {
        None => vec![None],
        Some("all") => apps.iter().map(|app| Some(app.name.as_str())).collect(),
        Some(name) => vec![Some(find_app(apps, name)?.name.as_str())],
    };
    let initial = arguments.init.as_deref().map(read).transpose()?;
    let many = arguments.trains_many();
    let data = Data::read(&arguments.data, None)?;
    if many {
        make_folder(&arguments.output)?;
    }
    let mut report = Report {
        device: data.device.name.clone(),
        samples: data.times.len(),
        groups: data.groups.len(),
        left_out: data.left_out,
        weights: Vec::new(),
    };
    let progress = Progress::new("training", Unit::Things("epochs"));
    progress.set_length((held_out.len() * arguments.epochs) as u64);
    for (number, held_out) in held_out.into_iter().enumerate() {
        progress.set_position((number * arguments.epochs) as u64);
        let file = match held_out {
            Some(name) if many => arguments.output.join(format!("{name}.bin")),
            _ => arguments.output.clone(),
        };
        let written = arguments.one(&data, held_out, initial.as_ref(), &file, &progress)?;
        if !arguments.format.json {
            progress.aside(|| report::text(out, &line(&written)))?;
        }
        report.weights.push(written);
    }
    drop(progress);
    if arguments.format.json {
        return report::json(out, Report::NAME, &report);
    }
    Ok(())
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        match self.trains_many() {
            true => vec![Output::Folder(&self.output)],
            false => vec![Output::File(&self.output)],
        }
    }

    /// Whether it writes weights for each app.
    fn trains_many(&self) -> bool {
        self.hold_out.as_deref() == Some("all")
    }

    /// Trains and writes one file of weights.
    fn one(
        &self,
        data: &Data,
        held_out: Option<&str>,
        initial: Option<&Weights>,
        file: &Path,
        progress: &Progress,
    ) -> Result<Written, Error> {
        let options = Options {
            epochs: self.epochs.max(1),
            seed: self.seed,
            backend: self.backend.into(),
            ..Options::default()
        };
        let name = file.file_stem().map_or("weights".into(), |name| name.to_string_lossy().into_owned());
        let keep = |name: &str| held_out != Some(name);
        let trained = train_model(data, |group| keep(&group.name), initial, &name, &options, &mut |epoch| {
            progress.advance(1);
            progress.set_message(message(epoch));
        })?;
        let Trained { weights, groups, samples, epoch, losses, validation } = trained;
        let (file, held_out) = (write(file, &weights.to_bytes())?, held_out.map(str::to_owned));
        Ok(Written { file, held_out, samples, groups, epoch, losses, validation })
    }
}

/// The progress message after an epoch.
fn message(epoch: &Epoch) -> String {
    let scores = epoch.scores.map_or(String::new(), |score| {
        format!(", top-1 regret {:.3}, rank correlation {:.3}", score.top1, score.spearman)
    });
    match epoch.validation {
        Some(validation) => format!("loss {:.4}, validation {validation:.4}{scores}", epoch.loss),
        None => format!("loss {:.4}", epoch.loss),
    }
}

fn line(written: &Written) -> String {
    let Written { file, held_out, samples, groups, epoch, validation, .. } = written;
    let without = held_out.as_ref().map_or(String::new(), |name| format!(" without {name}"));
    let scores = validation.as_ref().map_or(String::new(), |score| {
        format!(
            "; on {}: top-1 regret {:.3}, rank correlation {:.3}",
            show::count(score.groups, "other pipeline"),
            score.top1,
            score.spearman
        )
    });
    format!(
        "{}: {samples} samples of {}{without}, {}{scores}\n",
        show::path(file),
        show::count(*groups, "pipeline"),
        show::count(*epoch, "epoch")
    )
}
