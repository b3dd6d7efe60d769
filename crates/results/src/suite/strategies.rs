//! The results of a comparison of strategies.

use serde::Deserialize;
use warploom::show;
use warploom::target::Device;
use warploom::tune::compare::{Apart, ComparedWorkload, Comparison, Curve, Mean};
use warploom_report::{Table, geometric_mean};

use super::Outcome;
use super::timed::times;

/// The strategy that others are compared with.
const BASE: &str = "random";

report! {
    /// The results of all runs.
    #[derive(Deserialize)]
    pub struct Report = "warploom.strategies/1" {
        pub versions: Vec<String>, "the program, the compiler and the driver";
        pub command: String, "the command line of the run";
        pub date: String, "its date, as in 2026-01-31";
        #[serde(flatten)]
        pub comparison: Comparison, "the runs";
        pub relative: Vec<Relative>, "the strategies relative to `random`; empty if that is not among them";
    }

    /// The speed of what a strategy finds, relative to `random`.
    #[derive(Deserialize)]
    pub struct Relative = "relative strategy" {
        pub strategy: String, "its name";
        pub at: Vec<Speed>, "after the same numbers of trials";
    }

    /// A relative speed after a number of trials.
    #[derive(Deserialize)]
    pub struct Speed = "relative speed" {
        trials: usize, "after so many trials";
        speed: Option<f64>,
            "the mean of `random` divided by that of the strategy, as a geometric mean over subjects; above 1, the strategy is better";
        subjects: usize, "the subjects where both have valid times";
    }
}

impl Report {
    /// Results without runs yet.
    pub fn new(device: &Device, versions: &[String], command: String, date: String, trials: usize) -> Report {
        Report {
            versions: versions.to_vec(),
            command,
            date,
            comparison: Comparison { device: device.name.clone(), trials, subjects: Vec::new() },
            relative: Vec::new(),
        }
    }

    /// Adds a run that has ended.
    pub fn add(&mut self, subject: &str, strategy: &str, run: Curve) {
        self.comparison.add(subject, strategy, run);
        let comparison = &self.comparison;
        let names = comparison.strategies();
        if !names.contains(&BASE) {
            return;
        }
        let speed = |strategy: &str, trials: usize| {
            let speeds = comparison.speeds(strategy, BASE, trials);
            Speed { trials, subjects: speeds.len(), speed: geometric_mean(speeds) }
        };
        let relative = |strategy: &&str| Relative {
            strategy: (*strategy).to_owned(),
            at: comparison.steps().into_iter().map(|trials| speed(strategy, trials)).collect(),
        };
        self.relative = names.iter().map(relative).collect();
    }

    /// Says which time is the best that there is on a subject, in microseconds.
    pub fn set_optimum(&mut self, subject: &str, best_us: f64) {
        self.comparison.set_optimum(subject, best_us);
    }

    /// The number of runs so far.
    pub fn runs(&self) -> usize {
        let strategies = self.comparison.subjects.iter().flat_map(|subject| &subject.strategies);
        strategies.map(|compared| compared.runs.len()).sum()
    }

    /// What the tables show, in a sentence.
    pub fn caption(&self) -> String {
        let runs = self.comparison.subjects.iter().flat_map(|subject| &subject.strategies);
        let seeds = runs.map(|compared| compared.runs.len()).max().unwrap_or(0);
        format!(
            "The best time so far after a number of trials, in us: mean ± standard deviation over {}. In brackets: how \
             many have a valid time, if not all.",
            show::count(seeds, "seed")
        )
    }

    /// The table of a subject. What is `bold` is marked as Markdown does it.
    pub fn table(&self, subject: &ComparedWorkload, bold: impl Fn(&Mean) -> bool) -> Table {
        let mut table = Table::of(&subject.strategies).left("strategy", |compared| compared.strategy.clone());
        for (number, trials) in self.comparison.steps().into_iter().enumerate() {
            table = table.right(&format!("after {trials}"), |compared| {
                let Some(mean) = compared.at.get(number) else { return String::new() };
                let cell = cell(mean, compared.runs.len());
                if bold(mean) { format!("**{cell}**") } else { cell }
            });
        }
        table.done()
    }

    /// The table of relative speeds.
    pub fn speeds(&self) -> Table {
        let mut table = Table::of(&self.relative).left("strategy", |relative| relative.strategy.clone());
        for (number, trials) in self.comparison.steps().into_iter().enumerate() {
            let speed = |relative: &Relative| times(relative.at.get(number).and_then(|at| at.speed));
            table = table.right(&format!("after {trials}"), speed);
        }
        table.done()
    }

    fn head(&self) -> String {
        let Comparison { device, trials, .. } = &self.comparison;
        format!("strategies with {} on {device}, {}", show::count(*trials, "trial"), self.date)
    }

    /// The table relative to [`BASE`] under its heading; nothing if there is none.
    fn relative_to_base(&self, shown: impl Fn(&Table) -> String) -> String {
        match self.relative.is_empty() {
            true => String::new(),
            false => format!("\n{}\n{}", self.about_speeds(), shown(&self.speeds())),
        }
    }

    /// What the relative speeds are, in a sentence.
    pub fn about_speeds(&self) -> String {
        let subjects = show::count(self.comparison.subjects.len(), "subject");
        format!("Speed relative to `{BASE}`, geometric mean over {subjects}; higher is better.")
    }
}

/// What is known beyond the times of a subject: the best that there is, and how sure the order of the best two is.
pub fn notes(subject: &ComparedWorkload) -> Vec<String> {
    let optimum = subject
        .optimum_us
        .map(|us| format!("Known optimum: {us:.2} us, the best of all points of the landscape."));
    optimum.into_iter().chain(subject.apart.as_ref().map(apart)).collect()
}

fn apart(Apart { best, second, trials, seeds, needed }: &Apart) -> String {
    let pair = format!("`{best}` and `{second}`, the best two after {}", show::count(*trials, "trial"));
    match needed {
        None => format!("{pair}, have the same mean over {}.", show::count(*seeds, "seed")),
        Some(needed) => {
            let verdict = if needed <= seeds { "enough" } else { "too few" };
            format!(
                "To tell apart {pair}, takes about {} each (two-sample z test at 95 %, power 80 %, with the spread seen \
                 here); {} {verdict}.",
                show::count(*needed, "seed"),
                if *seeds == 1 { "1 is".to_owned() } else { format!("{seeds} are") }
            )
        }
    }
}

/// A mean with its deviation, and how many seeds have a valid time if not all of the runs have.
fn cell(mean: &Mean, runs: usize) -> String {
    let Some(mean_us) = mean.mean_us else { return "-".to_owned() };
    let deviation = mean.deviation_us.map(|deviation| format!(" ± {deviation:.2}")).unwrap_or_default();
    let some = if mean.seeds < runs { format!(" ({})", mean.seeds) } else { String::new() };
    format!("{mean_us:.2}{deviation}{some}")
}

/// Whether no strategy has a better mean after as many trials.
fn is_best(subject: &ComparedWorkload, mean: &Mean) -> bool {
    let others = subject.strategies.iter().filter_map(|other| other.after(mean.trials).mean_us);
    mean.mean_us.is_some() && mean.mean_us == others.reduce(f64::min)
}

impl Outcome for Report {
    const WHAT: &'static str = "apps";

    fn stem(&self) -> String {
        "strategies".to_owned()
    }

    fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let subject = |subject: &ComparedWorkload| {
            let notes: String = notes(subject).iter().map(|note| format!("{note}\n")).collect();
            format!("\n{}\n{}{notes}", subject.subject, shown(&self.table(subject, |_| false)))
        };
        let subjects: String = self.comparison.subjects.iter().map(subject).collect();
        let relative = self.relative_to_base(shown);
        format!("{}\n{}\n{subjects}{relative}", self.head(), self.caption())
    }

    fn markdown(&self) -> String {
        let subject = |subject: &ComparedWorkload| {
            let table = self.table(subject, |mean| is_best(subject, mean)).markdown();
            let notes: String = notes(subject).iter().map(|note| format!("\n{note}\n")).collect();
            format!("\n## {}\n\n{table}{notes}", subject.subject)
        };
        let subjects: String = self.comparison.subjects.iter().map(subject).collect();
        let relative = self.relative_to_base(|table| format!("\n{}", table.markdown()));
        let (versions, command) = (self.versions.join(", "), &self.command);
        format!(
            "# Strategies\n\n{}, {versions}.\n\nCommand: `{command}`.\n\n{} The best mean is in bold.\n{subjects}{relative}",
            self.head(),
            self.caption()
        )
    }

    fn schedules(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    /// The subjects for which no strategy found anything valid.
    fn failed(&self) -> Vec<String> {
        let found = |subject: &&ComparedWorkload| {
            let runs = subject.strategies.iter().flat_map(|compared| &compared.runs);
            !runs.into_iter().all(|run| run.best_us.is_empty())
        };
        let failed = self.comparison.subjects.iter().filter(|subject| !found(subject));
        failed.map(|subject| subject.subject.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::new(
            &Device::preset("h200").unwrap(),
            &["one".to_owned()],
            String::new(),
            "2026-11-17".into(),
            50,
        );
        let slow: Vec<Option<f64>> = (0..30).map(|_| Some(8.0)).chain([Some(6.0)]).collect();
        report.add("blur", "random", Curve::new(0, &slow));
        report.add("blur", "opevo", Curve::new(0, &[Some(4.0)]));
        report.add("blur", "random", Curve::new(1, &[Some(10.0)]));
        report.add("blur", "opevo", Curve::new(1, &[None]));
        report.add("sharpen", "random", Curve::new(0, &[Some(9.0)]));
        report.add("sharpen", "opevo", Curve::new(0, &[Some(9.0)]));
        report
    }

    #[test]
    fn means_are_cells_and_the_best_are_bold() {
        let report = report();
        let text = report.text(&Table::markdown);
        for line in [
            "| strategy | after 25 | after 50 |",
            "| random | 9.00 ± 1.41 | 8.00 ± 2.83 |",
            "| opevo | 4.00 (1) | 4.00 (1) |",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
        }
        let markdown = report.markdown();
        assert!(markdown.contains("| opevo | **4.00 (1)** | **4.00 (1)** |"), "{markdown}");
        assert!(
            markdown.contains("| random | **9.00** | **9.00** |\n| opevo | **9.00** |"),
            "equal: {markdown}"
        );
    }

    #[test]
    fn the_optimum_and_the_seeds_of_a_difference_are_said() {
        let mut report =
            Report::new(&Device::preset("h200").unwrap(), &[], String::new(), "2026-11-17".into(), 50);
        report.set_optimum("mm", 7.25);
        for (seed, (random, opevo)) in [(11.0, 10.0), (10.0, 9.0), (12.0, 11.0)].into_iter().enumerate() {
            report.add("mm", "random", Curve::new(seed as u64, &[Some(random)]));
            report.add("mm", "opevo", Curve::new(seed as u64, &[Some(opevo)]));
        }
        let optimum = "Known optimum: 7.25 us, the best of all points of the landscape.";
        let seeds = "To tell apart `opevo` and `random`, the best two after 50 trials, takes about 16 seeds each \
                     (two-sample z test at 95 %, power 80 %, with the spread seen here); 3 are too few.";
        for text in [report.text(&Table::markdown), report.markdown()] {
            assert!(
                text.lines().any(|line| line == optimum) && text.lines().any(|line| line == seeds),
                "{text}"
            );
        }
        let json = serde_json::to_string(&crate::report::object(&report)).unwrap();
        let back: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(back.comparison, report.comparison);
    }

    #[test]
    fn speeds_are_means_over_subjects() {
        let rows = report().speeds().rows;
        // 9 / 4 and 1; then 2 and 1.
        assert_eq!(rows, [["random", "1.00x", "1.00x"], ["opevo", "1.50x", "1.41x"]]);
        let mut alone =
            Report::new(&Device::preset("h200").unwrap(), &[], String::new(), "2026-11-17".into(), 50);
        alone.add("blur", "opevo", Curve::new(0, &[Some(4.0)]));
        assert!(alone.relative.is_empty() && !alone.text(&Table::markdown).contains("relative"));
    }

    #[test]
    fn a_subject_without_valid_times_fails() {
        let mut report = report();
        assert!(report.failed().is_empty());
        report.add("nothing", "random", Curve::new(0, &[None, None]));
        assert_eq!(report.failed(), ["nothing"]);
    }
}
