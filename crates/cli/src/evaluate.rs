//! `warploom evaluate`: scores weights against the analytic model and a random choice.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use warploom::cost::{Analytic, Network};
use warploom_report::chart::{Point, Scatter, Series};
use warploom_training::data::{Data, Kind, LeftOut};
use warploom_training::evaluate::{Compared, Evaluation, large, predictions, times};
use warploom_training::score::Score;

use crate::error::Error;
use crate::model::{ANALYTIC, built_in, read};
use crate::report::{self, Format};
use crate::table::{PlainText as _, Table, dash};
use crate::writable::{self, Output, make_folder, write};

/// Score the cost model on measured samples
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom evaluate --data training/data
  warploom evaluate --data training/data --model mine.bin
  warploom evaluate --data training/data --held-out held-out --svg docs/results

The schedules of each pipeline are sorted by predicted time. Top-1 is the measured time of the first one, top-5 that of the
fastest of the first five, each divided by the measured time of the fastest schedule; 1 is perfect. rho is Spearman's rank
correlation. Bias is the mean of predicted over measured time, and error is the root mean square of its logarithm.

Weights that were trained on an app score too well on it. With --held-out, each app is scored with weights that were trained
without it. The random pipelines are those that are always held out of training.")]
pub(crate) struct Arguments {
    /// A file of samples, or a folder of them, written by `warploom collect`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The weights to score: a file, or `analytic` for the analytic model alone (default: the built-in weights)
    #[arg(long, value_name = "FILE")]
    model: Option<String>,
    /// A folder with weights per app that were trained without it, written by `warploom train --hold-out all`
    #[arg(long, alias = "hold-out", value_name = "DIR")]
    held_out: Option<PathBuf>,
    /// Write a plot of predicted against measured times per app to this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

report! {
    struct Report = "warploom.evaluate/1" {
        device: String, "the GPU that the samples were measured on";
        samples: usize, "the samples";
        groups: usize, "the pipelines";
        left_out: LeftOut, "the samples that were not used";
        #[serde(flatten)]
        evaluation: Evaluation, "how well the models rank them";
    }
}

/// The weights to score.
struct Learned {
    general: Option<Network>,
    /// One set of weights per app, trained without that app.
    held_out: BTreeMap<&'static str, Network>,
}

impl Learned {
    fn for_app(&self, app: Option<&str>) -> Option<&Network> {
        app.and_then(|name| self.held_out.get(name)).or(self.general.as_ref())
    }
}

impl Arguments {
    pub(crate) fn outputs(&self) -> Vec<Output<'_>> {
        writable::folder(&self.svg)
    }
}

pub(crate) fn evaluate(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    // A file that is no weights is an error before samples are read.
    let given = match arguments.model.as_deref() {
        None | Some(ANALYTIC) => None,
        Some(file) => Some(read(Path::new(file))?),
    };
    let data = Data::read(&arguments.data, None)?;
    let general = match &arguments.model {
        None => built_in(&data.device),
        Some(_) => given,
    };
    let network = |file: &Path| read(file).map(|weights| Network::new(&weights, &data.device));
    let mut held_out = BTreeMap::new();
    for app in arguments.held_out.iter().flat_map(|_| warploom_apps::APPS.iter()) {
        let folder = arguments.held_out.as_deref().unwrap_or(Path::new("."));
        held_out.insert(app.name.as_str(), network(&folder.join(format!("{}.bin", app.name)))?);
    }
    let general = general.map(|weights| Network::new(&weights, &data.device));
    let learned = Learned { general, held_out };
    let evaluation = Evaluation::new(&data, &|app| learned.for_app(app));
    if let Some(folder) = &arguments.svg {
        plot(&data, &learned, folder)?;
    }
    let report = Report {
        device: data.device.name.clone(),
        samples: data.times.len(),
        groups: data.groups.len(),
        left_out: data.left_out,
        evaluation,
    };
    report::print(out, arguments.format, &report, || text(&report))
}

/// Writes one scatter plot per app.
fn plot(data: &Data, learned: &Learned, folder: &Path) -> Result<(), Error> {
    make_folder(folder)?;
    let analytic = Analytic::new(&data.device);
    for app in warploom_apps::APPS.iter() {
        let groups = large(data, |group| group.kind == Kind::App && group.name == app.name);
        let measured: Vec<f64> = groups.iter().flat_map(|group| times(data, group)).collect();
        if measured.is_empty() {
            continue;
        }
        let series = |name: &str, predicted: Vec<Vec<f64>>| {
            let times = measured.iter().zip(predicted.concat());
            let points = times.map(|(&x, y)| Point { x, y, text: String::new(), link: None }).collect();
            Series { name: name.to_owned(), points }
        };
        let mut all = vec![series("analytic", predictions(data, &groups, &analytic))];
        if let Some(network) = learned.for_app(Some(&app.name)) {
            all.push(series("learned", predictions(data, &groups, network)));
        }
        let path = folder.join(format!("model-{}.svg", app.name));
        let scatter = Scatter {
            about: format!("Predicted against measured times of {}", app.name),
            title: format!("{} on {}", app.name, data.device.name),
            x: "measured us".to_owned(),
            y: "predicted us".to_owned(),
            series: all,
            marked: None,
        };
        write(&path, scatter.draw().document().as_bytes())?;
    }
    Ok(())
}

fn text(report: &Report) -> String {
    let number = |number: f64| format!("{number:.3}");
    let Report { device, samples, groups, evaluation, .. } = report;
    let all = evaluation.apps.iter().chain(&evaluation.all_apps).chain(&evaluation.random);
    let mut table = Table::of(all)
        .left("", |compared| compared.name.clone())
        .right("samples", |compared| compared.chance.samples.to_string())
        .right("chance top-1", |compared| number(compared.chance.top1))
        .right("top-5", |compared| number(compared.chance.top5));
    type Scores = fn(&Compared) -> Option<&Score>;
    let models: [(&str, Scores); 2] = [
        ("analytic", |compared| Some(&compared.analytic)),
        ("learned", |compared| compared.learned.as_ref()),
    ];
    for (name, scores) in models {
        let score =
            |of: fn(&Score) -> f64| move |compared: &Compared| dash(scores(compared).map(of).map(number));
        table = table
            .right(&format!("{name} rho"), score(|score| score.spearman))
            .right("top-1", score(|score| score.top1))
            .right("top-5", score(|score| score.top5))
            .right("bias", score(|score| score.bias))
            .right("error", score(|score| score.error));
    }
    let table = table.text();
    format!("{samples} samples of {groups} pipelines on {device}; regrets are geometric means\n\n{table}")
}
