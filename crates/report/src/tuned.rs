//! One pipeline at fixed sizes on one device, with all schedules that were tried.

use crate::chart::{Mark, Point, Scatter, Series, Step, Steps};
use crate::html::{count, figure};
use crate::page::{Fact, Listing, facts};
use crate::scale::is_positive;
use crate::table::{Column, Table};

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
    /// The best trials, as a table.
    pub best: Table,
    /// The schedule of the best trial.
    pub listing: Option<Listing>,
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
    fn point(&self) -> Option<Point> {
        let point = Point { x: self.measured()?, y: self.predicted_us?, text: self.text() };
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
        match self.winner().and_then(Trial::time) {
            Some(time) => format!("{time:.2} us, the best of {trials}"),
            None => format!("{trials}, none valid"),
        }
    }

    fn winner(&self) -> Option<&Trial> {
        self.trials.iter().find(|trial| Some(trial.number) == self.winner)
    }

    pub(crate) fn to_html(&self) -> String {
        let (scatter, steps) = (self.scatter(), self.best_so_far());
        let best = match self.best.to_html() {
            none if none.is_empty() => none,
            table => format!("<h3>The best trials</h3>\n{table}"),
        };
        let listing = self.listing.as_ref().map(Listing::to_html).unwrap_or_default();
        let (facts, statuses) = (facts(&self.facts), self.statuses().to_html());
        format!(
            "{facts}<div class=\"figures\">\n{scatter}{steps}</div>\n<h3>Outcomes of the trials</h3>\n{statuses}\
             {best}{listing}"
        )
    }

    fn scatter(&self) -> String {
        let points: Vec<Point> = self.trials.iter().filter_map(Trial::point).collect();
        let drawn = points.len();
        let invalid = self.trials.iter().filter(|trial| trial.measured_us.is_none()).count();
        let unpredicted = self.trials.len() - drawn - invalid;
        let mut caption =
            "Each dot is a tried schedule; on the diagonal, the prediction is exact.".to_owned();
        if let Some(factor) = middle_error(&points) {
            caption += &format!(" The median prediction is off by a factor of {factor:.2}.");
        }
        caption += &format!(" Not drawn: {invalid} invalid");
        if unpredicted > 0 {
            caption += &format!(", {unpredicted} without a prediction");
        }
        let marked = self.winner().and_then(Trial::point).map(|point| (point, "best".to_owned()));
        let scatter = Scatter {
            about: format!("Predicted against measured times of {drawn} trials of {}", self.title),
            x: "measured us".to_owned(),
            y: "predicted us".to_owned(),
            series: vec![Series { name: "trials".to_owned(), points }],
            marked,
            ..Scatter::default()
        };
        figure(&scatter.draw(), &format!("{caption}."))
    }

    fn best_so_far(&self) -> String {
        let mut best = f64::INFINITY;
        let mut steps = Vec::new();
        for (at, trial) in (1..).zip(&self.trials) {
            let Some(value) = trial.measured().filter(|time| *time < best) else { continue };
            best = value;
            steps.push(Step { at, value, text: trial.text() });
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

    /// How many trials ended with each status, the most frequent first.
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
        let html = tuned.to_html();
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
        assert!(tuned.to_html().contains("Not drawn: 1 invalid."));
        assert_eq!(middle_error(&[]), None);
    }
}
