//! The page: title, facts, sources and sections.

use crate::farm::Farm;
use crate::html::{Document, Escaped};
use crate::operators::Operators;
use crate::strategies::Strategies;
use crate::suite::Suite;
use crate::summary;
use crate::table::Table;
use crate::tuned::Tuned;

/// Reloads the page and restores its position.
const RELOAD: &str = include_str!("reload.js");

/// A complete report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Page {
    /// The heading and the window title.
    pub title: String,
    /// Facts about the whole page: devices, versions, date, command.
    pub facts: Vec<Fact>,
    /// The files that the numbers come from.
    pub sources: Table,
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// Whether the file is rewritten while measurements go on; the page then reloads itself.
    pub live: bool,
}

/// A name and a value, for lists of facts.
#[derive(Clone, PartialEq, Debug)]
pub struct Fact {
    /// What the value describes.
    pub name: String,
    /// The value, as text.
    pub value: String,
}

/// A titled part of the page.
#[derive(Clone, PartialEq, Debug)]
pub enum Section {
    /// Apps under one or more schedulers.
    Suite(Suite),
    /// Operators, compared with libraries.
    Operators(Box<Operators>),
    /// Strategies, compared with each other.
    Strategies(Box<Strategies>),
    /// Many machines, and their measurements.
    Farm(Box<Farm>),
    /// One pipeline, with all schedules that were tried.
    Tuned(Box<Tuned>),
}

/// A schedule as text.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    /// The app or trial that the schedule belongs to.
    pub title: String,
    /// The kernels as loop nests, or why they are not shown.
    pub nest: Result<String, String>,
    /// The text of the schedule.
    pub schedule: String,
}

impl Fact {
    /// A fact with this name and value.
    pub fn new(name: &str, value: impl Into<String>) -> Fact {
        Fact { name: name.to_owned(), value: value.into() }
    }
}

impl Section {
    /// The title of the section.
    pub fn title(&self) -> &str {
        match self {
            Section::Suite(suite) => &suite.title,
            Section::Operators(operators) => &operators.title,
            Section::Strategies(strategies) => &strategies.title,
            Section::Farm(farm) => &farm.title,
            Section::Tuned(tuned) => &tuned.title,
        }
    }

    /// The kind of section, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Section::Suite(_) => "suite",
            Section::Operators(_) => "operators",
            Section::Strategies(_) => "strategies",
            Section::Farm(_) => "farm",
            Section::Tuned(_) => "tuned",
        }
    }

    /// The main result of the section, in a few words.
    pub(crate) fn headline(&self) -> String {
        match self {
            Section::Suite(suite) => suite.headline(),
            Section::Operators(operators) => operators.headline(),
            Section::Strategies(strategies) => strategies.headline(),
            Section::Farm(farm) => farm.headline.clone(),
            Section::Tuned(tuned) => tuned.headline(),
        }
    }

    /// How the section's numbers were measured.
    fn method(&self) -> &'static str {
        match self {
            Section::Suite(_) => {
                "The suite: the outputs of an app are compared with those of its default schedule at the full size, \
                 and the default schedule's with the reference at a small size. The app is then timed back to back \
                 on a stream and as a CUDA graph; the faster of the two counts. Times are those of the kernels \
                 only, with inputs in device memory. The floor is the time that the device needs at its peak rates \
                 to move the inputs and outputs, or to do the necessary arithmetic, whichever is longer."
            }
            Section::Operators(_) => {
                "Operators: each is checked and timed as an app of the suite is. The ratio is the better time of a \
                 library without tensor cores, plain or through a compiler, divided by the time measured here; \
                 above 1, Warploom is faster. TF32 is the library's time with tensor cores, which round their inputs, \
                 and is not compared with."
            }
            Section::Strategies(_) => {
                "Strategies: every strategy tunes every subject with every seed, in the same space. A trial is a \
                 schedule that was measured as in tuning; what one run has measured is known to the next, and counts \
                 as a trial of it. Schedules that fail or spill registers are trials without a time; points that the \
                 rules refuse are none. A line begins where every seed has found a valid schedule."
            }
            Section::Farm(_) => {
                "Farms: a trial counts for the worker that recorded it, at the time by the server's clock. The rate of \
                 a worker is measured from its first trial to its last."
            }
            Section::Tuned(_) => {
                "Tuning: each trial is a schedule that was compiled and, unless its kernels spill registers, compared \
                 with the reference and timed. A prediction is that of the model at the time of the trial; with \
                 retraining, later predictions come from a better model. Loop nests and shares of kernels show the \
                 times that this program's model predicts, and so do speedups that are said to be predicted."
            }
        }
    }

    fn to_html(&self, number: usize) -> String {
        let content = match self {
            Section::Suite(suite) => suite.to_html(),
            Section::Operators(operators) => operators.to_html(),
            Section::Strategies(strategies) => strategies.to_html(),
            Section::Farm(farm) => farm.to_html(),
            Section::Tuned(tuned) => tuned.to_html(number),
        };
        let (title, headline) = (Escaped(self.title()), self.headline());
        let headline = Escaped(&headline);
        format!(
            "<section id=\"section-{number}\" class=\"{}\">\n<h2>{title}</h2>\n<p class=\"headline\">{headline}</p>\n\
             {content}</section>\n",
            self.kind()
        )
    }
}

impl Page {
    /// Renders the page as one HTML document.
    pub fn to_html(&self) -> String {
        let title = Escaped(&self.title);
        let sections = self.sections.iter().zip(1..);
        let sections: String = sections.map(|(section, number)| section.to_html(number)).collect();
        let (facts, summary) = (facts(&self.facts), summary::to_html(&self.sections));
        let body = format!(
            "<header>\n<h1>{title}</h1>\n{facts}</header>\n{summary}<main>\n{sections}</main>\n\
             <footer>\n{}</footer>\n",
            self.sources()
        );
        let script = self.live.then_some(RELOAD);
        Document { title: &self.title, style: "", script, body: &body }.to_html()
    }

    /// The measurement methods and the source files.
    fn sources(&self) -> String {
        let mut methods: Vec<&str> = self.sections.iter().map(Section::method).collect();
        methods.sort_unstable();
        methods.dedup();
        let method = |method: &&str| format!("<p class=\"note\">{}</p>\n", Escaped(method));
        let methods: String = methods.iter().map(method).collect();
        format!("<h2 class=\"small\">Where the numbers come from</h2>\n{methods}{}", self.sources.to_html())
    }
}

/// Renders names and values as a list.
pub(crate) fn facts(facts: &[Fact]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let fact = |Fact { name, value }: &Fact| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", Escaped(name), Escaped(value))
    };
    format!("<dl>\n{}</dl>\n", facts.iter().map(fact).collect::<String>())
}

impl Listing {
    /// Renders the listing, collapsed under its title.
    pub(crate) fn to_html(&self) -> String {
        let nest = match &self.nest {
            Ok(nest) => format!("<pre tabindex=\"0\">{}</pre>\n", Escaped(nest)),
            Err(why) => format!("<p class=\"note\">{}</p>\n", Escaped(why)),
        };
        format!(
            "<details>\n<summary>{}</summary>\n{nest}<h4>Schedule</h4>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
            Escaped(&self.title),
            Escaped(&self.schedule)
        )
    }
}
