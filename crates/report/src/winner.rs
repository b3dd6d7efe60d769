//! The best trial of a problem: its kernels, and its differences from the second best.

use crate::chart::{Bar, Bars, Base, Group};
use crate::diff;
use crate::html::{Escaped, count, figure};

/// Kernels beyond this many are drawn as one bar.
const MOST_BARS: usize = 12;

/// A kernel of the best trial.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kernel {
    /// The name of the kernel.
    pub name: String,
    /// The predicted time of all its launches, in microseconds.
    pub predicted_us: f64,
}

/// The second best trial, and its differences from the best one.
#[derive(Clone, PartialEq, Debug)]
pub struct RunnerUp {
    /// The number of the trial in the records.
    pub number: i64,
    /// Its time in microseconds.
    pub us: f64,
    /// The decisions that lead from its schedule to the best one, or the reason why they are not known.
    pub decisions: Result<Vec<String>, String>,
    /// Its schedule as text.
    pub schedule: String,
    /// The best schedule as text.
    pub best: String,
}

/// The share of each kernel in the predicted time, as a chart; a sentence if there is only one.
pub(crate) fn shares(title: &str, kernels: &[Kernel]) -> String {
    let total: f64 = kernels.iter().map(|kernel| kernel.predicted_us).sum();
    let heading = "<h3>Where the time of the winner goes</h3>\n";
    match kernels {
        [] => return String::new(),
        [only] => {
            return format!(
                "{heading}<p class=\"note\">The winner has one kernel, {}.</p>\n",
                Escaped(&only.name)
            );
        }
        _ if total.is_nan() || total <= 0.0 => return String::new(),
        _ => {}
    }
    let mut sorted: Vec<&Kernel> = kernels.iter().collect();
    sorted.sort_by(|a, b| b.predicted_us.total_cmp(&a.predicted_us));
    // One kernel alone would not be shorter as "the others".
    let shown = if sorted.len() <= MOST_BARS + 1 { sorted.len() } else { MOST_BARS };
    let rest: f64 = sorted[shown..].iter().map(|kernel| kernel.predicted_us).sum();
    let others = (shown < sorted.len()).then(|| (format!("{} others", sorted.len() - shown), rest));
    let named = sorted[..shown].iter().map(|kernel| (kernel.name.clone(), kernel.predicted_us));
    let groups = named.chain(others).map(|(name, us)| {
        let (value, summary) = (1e2 * us / total, false);
        let text = format!("{value:.0} %");
        let hint = format!("{name}: {us:.2} us of {total:.2} us predicted");
        Group { name, summary, bars: vec![Some(Bar { value, text, hint })], dots: Vec::new() }
    });
    let bars = Bars {
        about: format!("Predicted share of each kernel in the time of the best schedule of {title}"),
        axis: "% of the predicted time".to_owned(),
        base: Base::Zero,
        series: vec!["kernels".to_owned()],
        groups: groups.collect(),
    };
    let caption = "The share of each kernel in the winner's time, as the model predicts it. Kernels are measured \
                   together, not one by one.";
    format!("{heading}<div class=\"figures\">\n{}</div>\n", figure(&bars.draw(), caption))
}

impl RunnerUp {
    /// The decisions and lines that differ; `best_us` is the time of the best trial.
    pub(crate) fn to_html(&self, best_us: Option<f64>) -> String {
        let slower = best_us.filter(|best| *best > 0.0).map(|best| 1e2 * (self.us / best - 1.0));
        let slower = slower.map(|percent| format!(", {percent:.1} % slower")).unwrap_or_default();
        let decisions = match &self.decisions {
            Ok(decisions) => {
                let item = |text: &String| format!("<li><code>{}</code></li>\n", Escaped(text));
                let items: String = decisions.iter().map(item).collect();
                let leads = count(decisions.len(), "decision");
                format!(
                    "<details>\n<summary>{leads} from it to the winner</summary>\n<ol class=\"decisions\">\n{items}</ol>\n\
                     </details>\n"
                )
            }
            Err(why) => format!("<p class=\"note\">{}</p>\n", Escaped(why)),
        };
        format!(
            "<h3>The winner against the runner-up</h3>\n<p>The second best is trial {}: {:.2} us{slower}.</p>\n\
             <details open>\n<summary>Both schedules, line by line</summary>\n\
             <p class=\"note\">Lines with - are the runner-up's, lines with + the winner's.</p>\n{}</details>\n{decisions}",
            self.number,
            self.us,
            diff::to_html(&self.schedule, &self.best)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, predicted_us: f64) -> Kernel {
        Kernel { name: name.to_owned(), predicted_us }
    }

    #[test]
    fn shares_are_of_the_sum_and_the_largest_comes_first() {
        let html = shares("it", &[kernel("small", 1.0), kernel("large", 3.0)]);
        assert!(html.contains("large: 3.00 us of 4.00 us predicted"), "{html}");
        let (large, small) = (html.find(">75 %<"), html.find(">25 %<"));
        assert!(large.is_some() && large < small, "{html}");
    }

    #[test]
    fn many_kernels_have_a_common_bar_and_one_has_none() {
        let many: Vec<Kernel> = (0..30).map(|number| kernel(&format!("k{number}"), 1.0)).collect();
        let html = shares("it", &many);
        assert!(html.contains(">18 others<") && html.contains(">60 %<"), "{html}");
        assert_eq!(html.matches("<rect ").count(), MOST_BARS + 1);
        assert!(!shares("it", &many[..13]).contains("others"));
        assert!(shares("it", &many[..1]).contains("The winner has one kernel, k0."));
        assert_eq!(shares("it", &[]), "");
        assert_eq!(shares("it", &[kernel("a", 0.0), kernel("b", 0.0)]), "");
    }

    #[test]
    fn the_runner_up_is_compared() {
        let runner_up = RunnerUp {
            number: 4,
            us: 22.0,
            decisions: Ok(vec!["inline <a>".to_owned()]),
            schedule: "blur\n  kernel a\n".to_owned(),
            best: "blur\n  kernel b\n".to_owned(),
        };
        let html = runner_up.to_html(Some(20.0));
        assert!(html.contains("trial 4: 22.00 us, 10.0 % slower."), "{html}");
        assert!(html.contains("<summary>1 decision from it to the winner</summary>"), "{html}");
        assert!(html.contains("<li><code>inline &lt;a&gt;</code></li>"), "{html}");
        assert!(html.contains("<del>-   kernel a</del>\n<ins>+   kernel b</ins>"), "{html}");
        let unknown = RunnerUp { decisions: Err("It is gone.".to_owned()), ..runner_up };
        assert!(unknown.to_html(None).contains("<p class=\"note\">It is gone.</p>"));
    }
}
