//! The page of results: what databases of records and files of results hold, as a [`Page`].

#[cfg(feature = "farm")]
mod farm;
mod nests;
mod operators;
mod source;
mod strategies;
mod suites;
mod tuned;

use std::collections::BTreeSet;

use warploom::app::App;
use warploom::date;
use warploom_report::{Fact, Page, Section, Table};

use crate::error::ResultsError;

use source::Content;

pub use nests::Nests;
pub use source::Source;

/// The page of all that the sources hold, with the command that makes it. A live page loads itself again.
///
/// # Errors
/// If records cannot be read.
pub fn page(
    apps: &[App],
    sources: &[Source],
    nests: &mut Nests,
    command: String,
    live: bool,
) -> Result<Page, ResultsError> {
    let mut sections = suites::sections(apps, sources, nests);
    sections.extend(operators::sections(sources, nests));
    sections.extend(strategies::sections(sources));
    #[cfg(feature = "farm")]
    sections.extend(farm::sections(sources));
    for source in sources {
        if let Content::Records { records, problems, .. } = &source.content {
            for problem in problems {
                let tuned = tuned::section(apps, source, records, problem, nests)?;
                sections.push(Section::Tuned(Box::new(tuned)));
            }
        }
    }
    Ok(Page {
        title: title(sources),
        facts: facts(sources, command),
        sources: table_of(sources),
        sections,
        live,
    })
}

fn title(sources: &[Source]) -> String {
    format!("Warploom on {}", distinct(sources.iter().flat_map(Source::devices)).join(", "))
}

fn facts(sources: &[Source], command: String) -> Vec<Fact> {
    let today = date::today();
    vec![
        Fact::new("device", distinct(sources.iter().flat_map(Source::devices)).join(", ")),
        Fact::new("measured with", distinct(sources.iter().flat_map(Source::versions)).join(", ")),
        Fact::new("measured", days(&distinct(sources.iter().flat_map(Source::dates)))),
        Fact::new("page made", format!("{today} by warploom {}", env!("CARGO_PKG_VERSION"))),
        Fact::new("command", command),
    ]
}

/// What is said of a file of results.
fn facts_of(file: &str, [date, device, command]: [&String; 3], versions: &[String]) -> Vec<Fact> {
    vec![
        Fact::new("measured", format!("{date} on {device}")),
        Fact::new("versions", versions.join(", ")),
        Fact::new("file", file),
        Fact::new("command", command),
    ]
}

/// The table of source files.
fn table_of(sources: &[Source]) -> Table {
    Table::of(sources)
        .left("file", |source| source.file.clone())
        .left("holds", |source| source.content.summary())
        .left("device", |source| distinct(source.devices()).join(", "))
        .left("measured", |source| days(&distinct(source.dates())))
        .done()
}

/// Sorted, without duplicates.
fn distinct(all: impl IntoIterator<Item = String>) -> Vec<String> {
    BTreeSet::from_iter(all).into_iter().collect()
}

/// The first and last date, as in `2026-01-30 to 2026-01-31`.
fn days(dates: &[String]) -> String {
    match (dates.iter().min(), dates.iter().max()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(day), _) => day.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_a_range() {
        let days_of = |dates: &[&str]| days(&dates.iter().map(|date| (*date).to_owned()).collect::<Vec<_>>());
        assert_eq!(days_of(&["2026-02-01", "2026-01-31", "2026-02-03"]), "2026-01-31 to 2026-02-03");
        assert_eq!([days_of(&["2026-02-01"]), days_of(&[])], ["2026-02-01", ""]);
    }
}
