//! One pipeline at fixed sizes on one device, with all schedules that were tried.

use crate::chart::{ChartStep, Link, Mark, Point, Scatter, Series, Steps};
use crate::html::{Escaped, count, figure};
use crate::page::{Fact, Listing, facts};
use crate::scale::is_positive;
use crate::table::{Column, Table};
use crate::winner::{Kernel, RunnerUp, shares};

/// In a chart with more points than this, only the best are tab stops; the table below has all.
const MOST_STOPS: usize = 40;

/// A tuning problem and its trials.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tuned {
    /// The title of the section.
    pub title: String,
    /// Facts about the problem, such as inputs, device and number of trials.
    pub facts: Vec<Fact>,
    /// All trials, in the order they were measured.
    pub trials: Vec<Trial>,
    /// The number of the best trial; `None` if no trial is valid.
    pub winner: Option<i64>,
    /// The points at which iterations ended.
    pub iterations: Vec<Iteration>,
    /// The best trials, as a table. The first cell of a row is the number of the trial.
    pub best: Table,
    /// The measured time of the default schedule, in microseconds.
    pub default_us: Option<f64>,
    /// The predicted time of the default schedule over that of the best one, if both are known.
    pub predicted_speedup: Option<f64>,
    /// A lower bound on the time on this device, in microseconds.
    pub floor_us: Option<f64>,
    /// The kernels of the best trial; empty if they are not known.
    pub kernels: Vec<Kernel>,
    /// The second best trial.
    pub runner_up: Option<RunnerUp>,
    /// The schedule of the best trial.
    pub listing: Option<Listing>,
}

/// The speedup of the best schedule over the default one.
pub(crate) enum Faster {
    /// By measured times.
    Measured(f64),
    /// By predicted times, where the default schedule was not measured.
    Predicted(f64),
}

/// One schedule that was tried.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trial {
    /// The number of the trial in the records.
    pub number: i64,
    /// `ok`, or why the trial is invalid.
    pub status: String,
    /// Details of the status.
    pub message: String,
    /// The predicted time in microseconds.
    pub predicted_us: Option<f64>,
    /// The measured time in microseconds; `None` if the trial is invalid.
    pub measured_us: Option<f64>,
    /// The time of the final measurement, interleaved with other good trials, in microseconds.
    pub retimed_us: Option<f64>,
}

/// The end of a tuning iteration.
#[derive(Clone, PartialEq, Debug)]
pub struct Iteration {
    /// The label of the iteration.
    pub name: String,
    /// The number of trials up to then.
    pub trials: usize,
}

impl Trial {
    /// The time used for ranking, if there is one.
    fn time(&self) -> Option<f64> {
        self.retimed_us.filter(|_| self.measured_us.is_some()).or(self.measured_us)
    }

    fn measured(&self) -> Option<f64> {
        self.measured_us.filter(|time| is_positive(*time))
    }

    /// The measured and predicted times as a point, if there are both.
    fn point(&self, link: Option<Link>) -> Option<Point> {
        let point = Point { x: self.measured()?, y: self.predicted_us?, text: self.text(), link };
        point.is_drawn().then_some(point)
    }

    fn text(&self) -> String {
        let mut text = format!("trial {}:", self.number);
        let times =
            [("predicted", self.predicted_us), ("measured", self.measured_us), ("in turns", self.retimed_us)];
        let known = times.iter().filter_map(|(what, us)| us.map(|us| format!(" {what} {us:.2} us")));
        text += &known.collect::<Vec<_>>().join(",");
        text
    }
}

impl Tuned {
    pub(crate) fn headline(&self) -> String {
        let trials = count(self.trials.len(), "trial");
        match self.best_us() {
            Some(time) => format!("{time:.2} us, the best of {trials}"),
            None if self.trials.is_empty() => "no trials yet".to_owned(),
            None => format!("{trials}, none valid"),
        }
    }

    /// The time of the best trial, in microseconds.
    pub(crate) fn best_us(&self) -> Option<f64> {
        self.winner().and_then(Trial::time)
    }

    /// The speedup over the default schedule.
    pub(crate) fn faster(&self) -> Option<Faster> {
        let best = self.best_us().filter(|us| is_positive(*us))?;
        let measured = self.default_us.filter(|us| is_positive(*us)).map(|us| Faster::Measured(us / best));
        let predicted = self.predicted_speedup.filter(|times| is_positive(*times)).map(Faster::Predicted);
        measured.or(predicted)
    }

    fn winner(&self) -> Option<&Trial> {
        self.trials.iter().find(|trial| Some(trial.number) == self.winner)
    }

    /// Renders the section with this number.
    pub(crate) fn to_html(&self, section: usize) -> String {
        let facts = facts(&self.facts);
        if self.trials.is_empty() {
            return format!("{facts}<p class=\"note\">Nothing has been measured for this problem yet.</p>\n");
        }
        let best = self.best.to_html_with_ids(|number| anchor(section, number));
        let best = match best {
            none if none.is_empty() => none,
            table => format!("<h3>The best trials</h3>\n<div class=\"tall\">{table}</div>\n"),
        };
        let shares = shares(&self.title, &self.kernels);
        let runner_up =
            self.runner_up.as_ref().map(|other| other.to_html(self.best_us())).unwrap_or_default();
        let listing = self.listing.as_ref().map(Listing::to_html).unwrap_or_default();
        let statuses = self.statuses().to_html();
        format!(
            "{facts}{}{best}{shares}{runner_up}{listing}<h3>Outcomes of the trials</h3>\n{statuses}",
            self.charts(section)
        )
    }

    /// The charts; a sentence if there is too little to draw.
    fn charts(&self, section: usize) -> String {
        let valid: Vec<&Trial> = self.trials.iter().filter(|trial| trial.measured().is_some()).collect();
        match valid.as_slice() {
            [] => "<p class=\"note\">No trial is valid, so there is nothing to draw.</p>\n".to_owned(),
            [only] => format!(
                "<p class=\"note\">Only one trial is valid, so there is nothing to draw: {}.</p>\n",
                Escaped(&only.text())
            ),
            _ => {
                let (scatter, steps) = (self.scatter(section), self.best_so_far(section));
                format!("<div class=\"figures\">\n{scatter}{steps}</div>\n")
            }
        }
    }

    /// The link from a point to the row of its trial, if the trial has a row.
    fn link(&self, section: usize, trial: &Trial, stop: bool) -> Option<Link> {
        let number = trial.number.to_string();
        let has_row = self.best.rows.iter().any(|row| row.first() == Some(&number));
        has_row.then(|| Link { to: anchor(section, &number), stop })
    }

    fn scatter(&self, section: usize) -> String {
        let stops = self.trials.len() <= MOST_STOPS;
        let points: Vec<Point> =
            self.trials.iter().filter_map(|trial| trial.point(self.link(section, trial, stops))).collect();
        let drawn = points.len();
        let invalid = self.trials.iter().filter(|trial| trial.measured_us.is_none()).count();
        let unpredicted = self.trials.len() - drawn - invalid;
        let mut left_out = format!("Not drawn: {invalid} invalid");
        if unpredicted > 0 {
            left_out += &format!(", {unpredicted} without a prediction");
        }
        if drawn < 2 {
            return format!(
                "<p class=\"note\">Fewer than two trials have both a predicted and a measured time, so they are not \
                 compared. {left_out}.</p>\n"
            );
        }
        let mut caption =
            "Each dot is a tried schedule and leads to its row; on the diagonal, the prediction is exact."
                .to_owned();
        if let Some(factor) = middle_error(&points) {
            caption += &format!(" The median prediction is off by a factor of {factor:.2}.");
        }
        let marked = self.winner().and_then(|winner| winner.point(self.link(section, winner, true)));
        let scatter = Scatter {
            about: format!("Predicted against measured times of {drawn} trials of {}", self.title),
            x: "measured us".to_owned(),
            y: "predicted us".to_owned(),
            series: vec![Series { name: "trials".to_owned(), points }],
            marked: marked.map(|point| (point, "best".to_owned())),
            ..Scatter::default()
        };
        figure(&scatter.draw(), &format!("{caption} {left_out}."))
    }

    fn best_so_far(&self, section: usize) -> String {
        let mut best = f64::INFINITY;
        let mut steps = Vec::new();
        for (at, trial) in (1..).zip(&self.trials) {
            let Some(value) = trial.measured().filter(|time| *time < best) else { continue };
            best = value;
            steps.push(ChartStep { at, value, text: trial.text(), link: self.link(section, trial, true) });
        }
        let mut caption = "The shortest time so far, over the trials in the order of measurement".to_owned();
        if !self.iterations.is_empty() {
            caption += "; lines mark the ends of iterations";
        }
        caption += ".";
        if let Some(time) = self.winner().and_then(|winner| winner.retimed_us) {
            caption +=
                &format!(" At the end, the best few were timed again in turn, which decides: {time:.2} us.");
        }
        let mark = |iteration: &Iteration| Mark { at: iteration.trials, name: iteration.name.clone() };
        let steps = Steps {
            about: format!(
                "The shortest time so far over {} of {}",
                count(self.trials.len(), "trial"),
                self.title
            ),
            x: "trials".to_owned(),
            y: "best us".to_owned(),
            count: self.trials.len(),
            steps,
            marks: self.iterations.iter().map(mark).collect(),
        };
        figure(&steps.draw(), &caption)
    }

    /// The number of trials per status, the most frequent first.
    fn statuses(&self) -> Table {
        let mut counted: Vec<(&str, usize, &str)> = Vec::new();
        for trial in &self.trials {
            match counted.iter_mut().find(|(status, ..)| *status == trial.status) {
                Some((_, count, _)) => *count += 1,
                None => counted.push((&trial.status, 1, &trial.message)),
            }
        }
        counted.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        let row = |(status, count, message): &(&str, usize, &str)| {
            let first = message.lines().next().unwrap_or_default();
            vec![(*status).to_owned(), count.to_string(), first.to_owned()]
        };
        let columns = vec![Column::text("status"), Column::numbers("trials"), Column::text("for example")];
        Table { columns, rows: counted.iter().map(row).collect() }
    }
}

/// The id of a trial's row.
fn anchor(section: usize, number: &str) -> String {
    format!("trial-{section}-{number}")
}

/// The median factor between predictions and measurements.
fn middle_error(points: &[Point]) -> Option<f64> {
    let mut errors: Vec<f64> =
        points.iter().map(|point| (point.x / point.y).max(point.y / point.x)).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(number: i64, predicted: f64, measured: Option<f64>) -> Trial {
        let status = if measured.is_some() { "ok" } else { "spilled" };
        let (predicted_us, measured_us) = (Some(predicted), measured);
        Trial { number, status: status.to_owned(), predicted_us, measured_us, ..Trial::default() }
    }

    #[test]
    fn trials_are_counted_and_the_best_is_marked() {
        let mut trials = vec![trial(3, 10.0, Some(20.0)), trial(4, 11.0, None), trial(7, 9.0, Some(18.0))];
        trials.extend([trial(8, 9.5, Some(19.0)), trial(9, 0.0, Some(17.0))]);
        trials[2].retimed_us = Some(16.5);
        let tuned = Tuned { title: "<it>".to_owned(), trials, winner: Some(7), ..Tuned::default() };
        assert_eq!(tuned.headline(), "16.50 us, the best of 5 trials");
        let html = tuned.to_html(1);
        assert!(html.contains("Not drawn: 1 invalid, 1 without a prediction."), "{html}");
        assert!(
            html.contains("off by a factor of 2.00") && html.contains("which decides: 16.50 us"),
            "{html}"
        );
        assert!(
            html.contains("<title>trial 7: predicted 9.00 us, measured 18.00 us, in turns 16.50 us</title>")
        );
        assert_eq!(html.matches("class=\"marked\"").count(), 1);
        assert_eq!(html.matches("class=\"step\"").count(), 3, "20, 18 and 17 us");
        assert!(!html.contains("<it>"));
        let statuses: Vec<Vec<String>> = tuned.statuses().rows;
        assert_eq!(statuses, [["ok", "4", ""], ["spilled", "1", ""]]);
    }

    #[test]
    fn nothing_valid_is_said_so() {
        let tuned = Tuned { trials: vec![trial(1, 1.0, None)], ..Tuned::default() };
        assert_eq!(tuned.headline(), "1 trial, none valid");
        assert!(tuned.to_html(1).contains("No trial is valid, so there is nothing to draw."));
        assert_eq!(middle_error(&[]), None);
    }

    #[test]
    fn one_valid_trial_is_a_sentence_and_no_chart() {
        let trials = vec![trial(1, 10.0, None), trial(2, 10.0, Some(20.0))];
        let html = Tuned { trials, winner: Some(2), ..Tuned::default() }.to_html(1);
        assert!(html.contains("Only one trial is valid") && !html.contains("<svg"), "{html}");
        assert!(html.contains("trial 2: predicted 10.00 us, measured 20.00 us."), "{html}");
    }

    #[test]
    fn points_lead_to_the_rows_of_their_trials() {
        let trials = vec![trial(3, 10.0, Some(20.0)), trial(7, 9.0, Some(18.0)), trial(8, 9.5, Some(30.0))];
        let row = |number: &str| vec![number.to_owned()];
        let best = Table { columns: vec![Column::numbers("trial")], rows: vec![row("7"), row("3")] };
        let html = Tuned { trials, winner: Some(7), best, ..Tuned::default() }.to_html(4);
        assert!(html.contains("<tr id=\"trial-4-7\">") && html.contains("<tr id=\"trial-4-3\">"), "{html}");
        // A dot, a step, and for the best a mark as well.
        assert_eq!(html.matches("<a href=\"#trial-4-7\"").count(), 3);
        assert_eq!(html.matches("<a href=\"#trial-4-3\"").count(), 2);
        assert!(!html.contains("#trial-4-8"), "it has no row: {html}");
    }

    #[test]
    fn nothing_tried_is_a_sentence() {
        let nothing = Tuned::default();
        assert_eq!(nothing.headline(), "no trials yet");
        assert!(nothing.to_html(1).contains("Nothing has been measured for this problem yet."));
    }
}
