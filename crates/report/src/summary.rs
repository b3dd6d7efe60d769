//! The summary at the top of the page: the speedup of each problem by tuning.

use crate::html::{Escaped, count};
use crate::page::Section;
use crate::suite::geometric_mean;
use crate::tuned::{Faster, Tuned};

/// Renders the summary: a table of the tuned problems, and the headlines of other sections.
pub(crate) fn to_html(sections: &[Section]) -> String {
    if sections.is_empty() {
        return String::new();
    }
    let numbered = || sections.iter().zip(1..);
    let tuned: Vec<(&Tuned, usize)> = numbered()
        .filter_map(|(section, number)| match section {
            Section::Tuned(tuned) => Some((&**tuned, number)),
            Section::Suite(_) | Section::Operators(_) | Section::Strategies(_) | Section::Farm(_) => None,
        })
        .collect();
    let other = |(section, number): (&Section, usize)| match section {
        Section::Tuned(_) => None,
        Section::Suite(_) | Section::Operators(_) | Section::Strategies(_) | Section::Farm(_) => {
            Some(format!(
                "<li><a href=\"#section-{number}\">{}</a> <span>{}</span></li>\n",
                Escaped(section.title()),
                Escaped(&section.headline())
            ))
        }
    };
    let others: String = numbered().filter_map(other).collect();
    let others = if others.is_empty() { others } else { format!("<ul>\n{others}</ul>\n") };
    format!(
        "<nav id=\"summary\" aria-label=\"Summary\">\n<h2 class=\"small\">Summary</h2>\n{}{}{others}</nav>\n",
        means(&tuned),
        table(&tuned)
    )
}

/// The geometric means of the speedups, in a sentence for those measured and one for those predicted.
fn means(tuned: &[(&Tuned, usize)]) -> String {
    let of = |wanted: fn(&Faster) -> Option<f64>| -> Vec<f64> {
        tuned.iter().filter_map(|(tuned, _)| wanted(&tuned.faster()?)).collect()
    };
    let measured = of(|faster| match faster {
        Faster::Measured(times) => Some(*times),
        Faster::Predicted(_) => None,
    });
    let predicted = of(|faster| match faster {
        Faster::Predicted(times) => Some(*times),
        Faster::Measured(_) => None,
    });
    let sentence = |times: &[f64], how: &str| {
        let problems = count(times.len(), "problem");
        let mean = geometric_mean(times.iter().copied());
        mean.map(|mean| {
            format!("<p>The winners are {how} {mean:.2} times as fast as the default schedules (geometric mean over {problems}).</p>\n")
        })
        .unwrap_or_default()
    };
    sentence(&measured, "measured to be") + &sentence(&predicted, "predicted to be")
}

fn table(tuned: &[(&Tuned, usize)]) -> String {
    if tuned.is_empty() {
        return String::new();
    }
    let titles = ["best us", "default us", "speedup", "of the floor", "trials"];
    let titles: String =
        titles.iter().map(|title| format!("<th scope=\"col\" class=\"number\">{title}</th>")).collect();
    let rows: String = tuned.iter().map(|(tuned, number)| row(tuned, *number)).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">problem</th>{titles}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn row(tuned: &Tuned, number: usize) -> String {
    let title = Escaped(&tuned.title);
    let link = format!("<td><a href=\"#section-{number}\">{title}</a></td>");
    if tuned.trials.is_empty() {
        return format!("<tr>{link}<td colspan=\"5\">no trials yet</td></tr>\n");
    }
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let best = tuned.best_us();
    let faster = tuned.faster().map(|faster| match faster {
        Faster::Measured(times) => format!("{times:.2}x"),
        Faster::Predicted(times) => format!("{times:.2}x predicted"),
    });
    let floor = best.zip(tuned.floor_us).map(|(best, floor)| match 1e2 * floor / best {
        small if small < 1.0 => format!("{small:.1} %"),
        share => format!("{share:.0} %"),
    });
    let cells = [
        known(best.map(|us| format!("{us:.2}"))),
        known(tuned.default_us.map(|us| format!("{us:.2}"))),
        known(faster),
        known(floor),
        tuned.trials.len().to_string(),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td class=\"number\">{cell}</td>")).collect();
    format!("<tr>{link}{cells}</tr>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuned::Trial;

    fn tuned(title: &str, us: f64, default_us: Option<f64>) -> Section {
        let trial = Trial { number: 1, measured_us: Some(us), ..Trial::default() };
        Section::Tuned(Box::new(Tuned {
            title: title.to_owned(),
            trials: vec![trial],
            winner: Some(1),
            default_us,
            predicted_speedup: Some(3.0),
            floor_us: Some(5.0),
            ..Tuned::default()
        }))
    }

    #[test]
    fn measured_and_predicted_speedups_are_kept_apart() {
        let html =
            to_html(&[tuned("a", 10.0, Some(20.0)), tuned("b", 10.0, Some(80.0)), tuned("<c>", 20.0, None)]);
        assert!(html.contains("measured to be 4.00 times as fast"), "{html}");
        assert!(html.contains("(geometric mean over 2 problems)"), "{html}");
        assert!(html.contains("predicted to be 3.00 times as fast"), "{html}");
        assert!(html.contains(">2.00x<") && html.contains(">8.00x<") && html.contains(">3.00x predicted<"));
        assert!(html.contains("<a href=\"#section-3\">&lt;c&gt;</a>") && html.contains(">25 %<"), "{html}");
    }

    #[test]
    fn problems_without_trials_are_listed() {
        let none = Section::Tuned(Box::new(Tuned { title: "none".to_owned(), ..Tuned::default() }));
        let html = to_html(&[none]);
        assert!(html.contains("<a href=\"#section-1\">none</a></td><td colspan=\"5\">no trials yet</td>"));
        assert!(!html.contains("times as fast"), "{html}");
    }
}
