//! What a recorded landscape is of, and its times in a few numbers.

use std::collections::BTreeMap;
use std::path::Path;

use warploom::date;
use warploom::lang::visible;
use warploom::search::points::Schedules;
use warploom::show;
use warploom::strategy::{Axis, Space, space};
use warploom::tune::landscape::{Landscape, Outcome};

/// A point is near the best if it takes at most so much more.
const NEAR: f64 = 0.05;

report! {
    /// What a landscape is of.
    pub struct Summary = "warploom.landscape/1" {
        pipeline: String, "the name of the pipeline";
        outputs: Vec<String>, "the sizes of its outputs";
        device: String, "the GPU";
        versions: Vec<String>, "the versions that built the kernels";
        from: String, "the date of the first measurement, in UTC";
        to: String, "the date of the last one";
        template: String, "the schedule whose structure all points have";
        axes: Vec<String>, "the open axes";
        limits: String, "the limits of the points";
        points: usize, "the points in the file";
        missing: usize, "legal points within the limits that were not measured yet";
        failed: BTreeMap<String, usize>, "the points without a time, by the status that a trial has";
        times: Option<Times>, "the times of all others; `null` if there are none";
    }

    /// Its times.
    pub struct Times = "landscape times" {
        best_us: f64, "the shortest";
        median_us: f64, "the median";
        worst_us: f64, "the longest";
        near_best: f64 ["share"], "the share of all points that take at most 5 % longer than the best";
        best: String, "the fastest point: the factors on each axis";
    }

    /// How many points a landscape would have.
    pub struct Count = "warploom.landscape.points/1" {
        axes: Vec<String>, "the open axes";
        points: u64, "all points of these axes";
        legal: usize, "those that are legal and within the limits";
    }
}

impl Summary {
    /// The summary of a landscape.
    pub fn new(landscape: &Landscape) -> Summary {
        let (source, definition) = (&landscape.source, &landscape.definition);
        let mut failed = BTreeMap::new();
        for (_, outcome) in landscape.points() {
            if let Outcome::Failed(why) = outcome {
                *failed.entry(why.clone()).or_default() += 1;
            }
        }
        let (from, to) = source.measured;
        Summary {
            pipeline: source.pipeline.name().to_owned(),
            outputs: source.sizes.outputs.iter().map(show::extents).collect(),
            device: source.device.name.clone(),
            versions: source.versions.clone(),
            from: date::of(from),
            to: date::of(to),
            template: definition.template.to_text(&source.pipeline),
            axes: names(landscape),
            limits: definition.limits.to_string(),
            points: landscape.points().count(),
            missing: landscape.missing,
            failed,
            times: Times::new(landscape),
        }
    }

    /// The summary of a file for a terminal.
    pub fn text(&self, file: &Path) -> String {
        let Summary { pipeline, outputs, device, from, to, axes, limits, points, missing, failed, .. } = self;
        let dates = if from == to { from.clone() } else { format!("{from} to {to}") };
        let (pipeline, device) = (visible(pipeline), visible(device));
        let mut text = format!(
            "{}: {pipeline} at {} on {device}, {dates}\n\n{}\naxes    {}\nlimits  {limits}\npoints  {points}",
            show::path(file),
            outputs.join(", "),
            self.template,
            axes.join(", "),
        );
        text += &if *missing > 0 { format!(", {missing} missing\n") } else { "\n".to_owned() };
        if !failed.is_empty() {
            let counts: Vec<String> = failed.iter().map(|(why, count)| format!("{count} {why}")).collect();
            text += &format!("failed  {}\n", counts.join(", "));
        }
        if let Some(Times { best_us, median_us, worst_us, near_best, best }) = &self.times {
            text += &format!(
                "times   best {best_us:.2} us, median {median_us:.2}, worst {worst_us:.2}; {:.2} % are within {:.0} % of the best\n\
                 best    {best}\n",
                1e2 * near_best,
                1e2 * NEAR
            );
        }
        text
    }
}

impl Times {
    fn new(landscape: &Landscape) -> Option<Times> {
        let times = landscape.times_us();
        let (best_us, worst_us) = (*times.first()?, *times.last()?);
        let near = times.iter().filter(|time| **time <= best_us * (1.0 + NEAR)).count();
        let is_best = |outcome: &Outcome| outcome.time_us() == Some(best_us);
        let best = landscape.points().find(|(_, outcome)| is_best(outcome))?.0.to_string();
        let near_best = near as f64 / landscape.points().count() as f64;
        Some(Times { best_us, median_us: times[times.len() / 2], worst_us, near_best, best })
    }
}

impl Count {
    /// How many points the space has, of which so many are legal.
    pub fn new(space: &Schedules, legal: usize) -> Count {
        let points = u64::try_from(space::size(space)).unwrap_or(u64::MAX);
        Count { axes: names(space), points, legal }
    }

    /// The counts for a terminal.
    pub fn text(&self) -> String {
        let Count { axes, points, legal } = self;
        format!("axes    {}\npoints  {legal} are legal and within the limits, of {points}\n", axes.join(", "))
    }
}

fn names(space: &dyn Space) -> Vec<String> {
    space.axes(0).iter().map(Axis::name).map(str::to_owned).collect()
}
