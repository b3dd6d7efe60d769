//! Apps under one or more schedulers, compared with baseline times.

use crate::chart::{Bar, Bars, Base, Group};
use crate::html::{Escaped, count, figure};
use crate::page::{Fact, Listing, facts};
use crate::scale::is_positive;
use crate::table::{Column, Table};

/// Runs of the suite, side by side.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Suite {
    /// The title of the section.
    pub title: String,
    /// The runs to compare.
    pub runs: Vec<Run>,
}

/// One run of the suite.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The name that distinguishes it from other runs.
    pub name: String,
    /// Facts about the run, such as date, device and command.
    pub facts: Vec<Fact>,
    /// The apps with their times.
    pub apps: Vec<AppTime>,
    /// The detailed results, as a table.
    pub results: Table,
    /// Problems, one sentence each.
    pub notes: Vec<String>,
    /// The schedules of the apps.
    pub listings: Vec<Listing>,
}

/// The time of one app.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppTime {
    /// The name of the app.
    pub app: String,
    /// The measured time in microseconds; `None` if there is no valid measurement.
    pub us: Option<f64>,
    /// A lower bound on the time on this device, in microseconds.
    pub floor_us: Option<f64>,
    /// The baselines to compare with.
    pub baselines: Vec<Baseline>,
}

/// The time of an app in another system.
#[derive(Clone, PartialEq, Debug)]
pub struct Baseline {
    /// The name of the other system.
    pub name: String,
    /// Its time in microseconds.
    pub us: f64,
}

impl AppTime {
    fn time(&self) -> Option<f64> {
        self.us.filter(|time| is_positive(*time))
    }

    /// The speedup over a baseline, as a bar.
    fn faster(&self, than: &str, run: &str) -> Option<Bar> {
        let (time, other) = (self.time()?, self.baselines.iter().find(|baseline| baseline.name == than)?.us);
        let value = is_positive(other).then_some(other / time)?;
        let text = format!("{value:.2}x");
        let hint = format!("{}, {run}: {text}, {time:.1} us against {other:.1} us", self.app);
        Some(Bar { value, text, hint })
    }

    /// The lower bound as a fraction of the app's time, as a bar.
    fn of_the_floor(&self, run: &str) -> Option<Bar> {
        let (time, floor) = (self.time()?, self.floor_us?);
        let value = 1e2 * floor / time;
        let text = format!("{value:.0} %");
        let hint = format!("{}, {run}: {text}, {time:.1} us, at least {floor:.1} us", self.app);
        Some(Bar { value, text, hint })
    }
}

impl Suite {
    pub(crate) fn headline(&self) -> String {
        let Some(baseline) = self.baselines().into_iter().next() else {
            let apps = count(self.apps().len(), "app");
            return format!("{apps}, {}", self.names().join(", "));
        };
        let means = self.runs.iter().filter_map(|run| {
            let all: Vec<f64> =
                run.apps.iter().filter_map(|app| Some(app.faster(&baseline, "")?.value)).collect();
            Some(format!(
                "{} {:.2}x over {}",
                run.name,
                geometric_mean(all.iter().copied())?,
                count(all.len(), "app")
            ))
        });
        let means = means.collect::<Vec<_>>().join(", ");
        format!("Geometric mean against {baseline}: {means}")
    }

    pub(crate) fn to_html(&self) -> String {
        let runs: String = self.runs.iter().map(Run::to_html).collect();
        format!("{}{}{runs}", self.charts(), self.side_by_side())
    }

    /// One chart per baseline; fractions of the lower bound if there are no baselines.
    fn charts(&self) -> String {
        let baselines = self.baselines();
        let charts: String = match baselines.is_empty() {
            true => self.shares(),
            false => baselines.iter().map(|baseline| self.compared(baseline)).collect(),
        };
        format!("<div class=\"figures\">\n{charts}</div>\n")
    }

    fn compared(&self, baseline: &str) -> String {
        let groups = self.groups(|app, run| app.faster(baseline, run));
        let about = format!("Speedup over {baseline} of each app");
        let common = groups.iter().filter(|group| !group.summary && group.is_full()).count();
        let caption = match self.runs.len() > 1 && common > 1 {
            true => format!("{about}. The mean is over the {common} apps that all runs have."),
            false => format!("{about}; right of the line is faster."),
        };
        let axis = format!("speedup over {baseline}");
        figure(&Bars { about, axis, base: Base::One, series: self.names(), groups }.draw(), &caption)
    }

    fn shares(&self) -> String {
        let mut groups = self.groups(|app, run| app.of_the_floor(run));
        // A mean of fractions would be meaningless.
        groups.retain(|group| !group.summary);
        if groups.is_empty() {
            return String::new();
        }
        let about = "The floor as a share of the measured time".to_owned();
        let (axis, caption) = ("% of the floor".to_owned(), format!("{about}."));
        figure(&Bars { about, axis, base: Base::Zero, series: self.names(), groups }.draw(), &caption)
    }

    /// One group per app that has a bar in some run, and one for the mean over apps that have a bar
    /// in every run.
    fn groups(&self, bar: impl Fn(&AppTime, &str) -> Option<Bar>) -> Vec<Group> {
        let of = |app: &str| {
            let of_run = |run: &Run| bar(run.apps.iter().find(|found| found.app == app)?, &run.name);
            let bars = self.runs.iter().map(of_run).collect();
            Group { name: app.to_owned(), summary: false, bars, dots: Vec::new() }
        };
        let mut groups: Vec<Group> = self.apps().into_iter().map(of).collect();
        groups.retain(|group| group.bars.iter().any(Option::is_some));
        let common: Vec<&Group> = groups.iter().filter(|group| group.is_full()).collect();
        if common.len() < 2 {
            return groups;
        }
        let mean = |run: usize| {
            let values = common.iter().filter_map(|group| group.bars[run].as_ref());
            let value = geometric_mean(values.map(|bar| bar.value))?;
            let text = format!("{value:.2}x");
            let hint = format!("{}: {text} over {}", self.runs[run].name, count(common.len(), "app"));
            Some(Bar { value, text, hint })
        };
        let bars = (0..self.runs.len()).map(mean).collect();
        groups.push(Group { name: "geometric mean".to_owned(), summary: true, bars, dots: Vec::new() });
        groups
    }

    /// The times of all runs side by side, if there are several.
    fn side_by_side(&self) -> String {
        if self.runs.len() < 2 {
            return String::new();
        }
        let mut columns = vec![Column::text("app")];
        columns.extend(self.runs.iter().map(|run| Column::numbers(&format!("{} us", run.name))));
        let row = |app: &&str| {
            let time = |run: &Run| run.apps.iter().find(|found| found.app == **app).and_then(AppTime::time);
            let times = self.runs.iter().map(|run| time(run).map_or("-".to_owned(), |us| format!("{us:.1}")));
            std::iter::once((*app).to_owned()).chain(times).collect()
        };
        let rows = self.apps().iter().map(row).collect();
        format!("<h3>Side by side</h3>\n{}", Table { columns, rows }.to_html())
    }

    fn names(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.name.clone()).collect()
    }

    /// All apps, in order of first appearance.
    fn apps(&self) -> Vec<&str> {
        distinct(self.runs.iter().flat_map(|run| &run.apps).map(|app| app.app.as_str()))
    }

    /// All baselines, in order of first appearance.
    fn baselines(&self) -> Vec<String> {
        let apps = self.runs.iter().flat_map(|run| &run.apps).filter(|app| app.time().is_some());
        let names = apps.flat_map(|app| &app.baselines).filter(|baseline| is_positive(baseline.us));
        distinct(names.map(|baseline| baseline.name.clone()))
    }
}

impl Run {
    fn to_html(&self) -> String {
        let (name, facts, table) = (Escaped(&self.name), facts(&self.facts), self.results.to_html());
        let note = |note: &String| format!("<p class=\"note\">{}</p>\n", Escaped(note));
        let notes: String = self.notes.iter().map(note).collect();
        format!("<h3>{name}</h3>\n{facts}{table}{notes}{}", self.listings())
    }

    /// All schedules, collapsed together into one line.
    fn listings(&self) -> String {
        let listings: String = self.listings.iter().map(Listing::to_html).collect();
        if self.listings.len() < 2 {
            return listings;
        }
        let apps = count(self.listings.len(), "app");
        format!("<details>\n<summary>Loop nests and schedules of {apps}</summary>\n{listings}</details>\n")
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// The geometric mean; `None` if there are no numbers.
///
/// ```
/// assert_eq!(warploom_report::geometric_mean([2.0, 8.0]).map(f64::round), Some(4.0));
/// assert_eq!(warploom_report::geometric_mean([]), None);
/// ```
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = numbers.into_iter().map(f64::ln).collect();
    let count = logarithms.len() as f64;
    (count > 0.0).then(|| (logarithms.iter().sum::<f64>() / count).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(name: &str, us: f64, other: Option<f64>) -> AppTime {
        let baselines = other.map(|us| Baseline { name: "Halide".to_owned(), us }).into_iter().collect();
        AppTime { app: name.to_owned(), us: Some(us), floor_us: Some(1.0), baselines }
    }

    fn run(name: &str, apps: Vec<AppTime>) -> Run {
        Run { name: name.to_owned(), apps, ..Run::default() }
    }

    #[test]
    fn means_are_of_what_all_runs_have() {
        let first =
            run("first", vec![app("a", 1.0, Some(4.0)), app("b", 1.0, Some(1.0)), app("c", 1.0, Some(64.0))]);
        let second =
            run("second", vec![app("b", 1.0, Some(9.0)), app("a", 1.0, Some(1.0)), app("d", 1.0, None)]);
        let suite = Suite { runs: vec![first, second], ..Suite::default() };
        let groups = suite.groups(|app, run| app.faster("Halide", run));
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "geometric mean"]);
        let means: Vec<f64> = groups[3].bars.iter().flatten().map(|bar| bar.value.round()).collect();
        assert_eq!(means, [2.0, 3.0]);
        assert_eq!(
            suite.headline(),
            "Geometric mean against Halide: first 6.35x over 3 apps, second 3.00x over 2 apps"
        );
    }

    #[test]
    fn without_other_times_shares_of_the_floor_are_drawn() {
        let suite = Suite { runs: vec![run("only", vec![app("a", 4.0, None)])], ..Suite::default() };
        let html = suite.to_html();
        assert!(
            html.contains("% of the floor") && html.contains("a, only: 25 %, 4.0 us, at least 1.0 us"),
            "{html}"
        );
    }

    #[test]
    fn runs_of_nothing_are_no_harm() {
        let nothing = Suite { runs: vec![run("empty", vec![]), run("none", vec![])], ..Suite::default() };
        assert!(!nothing.to_html().contains("<svg"));
    }
}
