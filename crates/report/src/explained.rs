//! A page that explains the kernels of one schedule, or of two side by side.

mod graph;
mod kernel;
mod layout;

use crate::html::{Document, Escaped};
use crate::page::{Fact, facts};

pub use graph::{Graph, GraphNode, Role};
pub use kernel::{KernelView, NestLine, Part, SourceLine};

const STYLE: &str = include_str!("explained/style.css");
const SCRIPT: &str = include_str!("explained/script.js");

/// The explanation of one or two schedules of a pipeline.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Explained {
    /// The heading and the window title.
    pub title: String,
    /// Facts about the whole page: sizes, device, model.
    pub facts: Vec<Fact>,
    /// How the second schedule differs from the first.
    pub comparison: Option<Comparison>,
    /// The schedules: one, or two to compare.
    pub versions: Vec<Version>,
}

/// The difference between two schedules.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Comparison {
    /// Which one is predicted to be faster, and by how much.
    pub sentence: String,
    /// The differences of the second schedule, in words: a line for each stage.
    pub differences: Vec<String>,
    /// The effect on costs: a line for each number.
    pub costs: Vec<String>,
    /// The changes that lead from the first to the second, one or more lines each.
    pub changes: Vec<String>,
}

/// A schedule and its kernels.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Version {
    /// The origin of the schedule.
    pub name: String,
    /// The predicted time and the number of kernels.
    pub headline: String,
    /// Remarks on the whole schedule.
    pub notes: Vec<String>,
    /// The pipeline, with the kernel of each Func.
    pub graph: Graph,
    /// The kernels in launch order.
    pub kernels: Vec<KernelView>,
    /// The text of the schedule.
    pub schedule: String,
    /// The generated code outside of the kernels above.
    pub other_source: String,
}

impl Explained {
    /// Renders the page as one HTML document.
    pub fn to_html(&self) -> String {
        let title = Escaped(&self.title);
        let comparison = self.comparison.as_ref().map(Comparison::to_html).unwrap_or_default();
        let versions = ["a", "b"].into_iter().zip(&self.versions);
        let versions: String = versions.map(|(id, version)| version.to_html(id)).collect();
        let class = if self.versions.len() > 1 { "versions several" } else { "versions" };
        let body = format!(
            "<header>\n<h1>{title}</h1>\n{}</header>\n<main>\n{comparison}<div class=\"{class}\">\n{versions}</div>\n\
             </main>\n<footer>\n<p class=\"note\">Times are predictions. The parts of a time overlap, so they do not add \
             up. Point at a line of a loop nest, or move there with the tab key, to see its code, and the other way \
             round.</p>\n</footer>\n",
            facts(&self.facts)
        );
        Document { title: &self.title, style: STYLE, script: Some(SCRIPT), body: &body }.to_html()
    }
}

impl Comparison {
    fn to_html(&self) -> String {
        let change = |change: &String| format!("{}\n", Escaped(change.trim_end()));
        let changes: String = self.changes.iter().map(change).collect();
        let count = crate::html::count(self.changes.len(), "change");
        let list = match self.changes.is_empty() {
            true => String::new(),
            false => format!(
                "<details>\n<summary>{count} of the schedule</summary>\n<pre tabindex=\"0\">{changes}</pre>\n</details>\n"
            ),
        };
        let lines = |title: &str, lines: &[String]| {
            let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", Escaped(line))).collect();
            match items.is_empty() {
                true => items,
                false => format!("<p class=\"note\">{title}:</p>\n<ul>\n{items}</ul>\n"),
            }
        };
        let differences = lines("What the second does otherwise", &self.differences);
        let costs = lines("What that costs", &self.costs);
        format!(
            "<section class=\"comparison\">\n<h2>Difference</h2>\n<p class=\"headline\">{}</p>\n{differences}{costs}{list}</section>\n",
            Escaped(&self.sentence)
        )
    }
}

impl Version {
    fn to_html(&self, id: &str) -> String {
        let note = |note: &String| format!("<p class=\"note\">{}</p>\n", Escaped(note));
        let notes: String = self.notes.iter().map(note).collect();
        let most = self.kernels.iter().map(|kernel| kernel.us).fold(0.0, f64::max);
        let few = self.kernels.len() <= 4;
        let kernels = (1..).zip(&self.kernels);
        // With many kernels, those that take little time are collapsed at first.
        let kernels = kernels.map(|(number, of)| of.to_html(id, number, few || of.us >= most / 4.0));
        let kernels: String = kernels.collect();
        format!(
            "<section class=\"version\" id=\"{id}\">\n<h2>{}</h2>\n<p class=\"headline\">{}</p>\n{notes}\
             <h3>Time and memory of each kernel</h3>\n{}<h3>Pipeline</h3>\n{}<h3>Kernels</h3>\n{kernels}{}{}</section>\n",
            Escaped(&self.name),
            Escaped(&self.headline),
            kernel::meters(id, &self.kernels),
            self.graph.to_html(id),
            listing("Schedule", &self.schedule),
            listing("Code outside of these kernels", &self.other_source),
        )
    }
}

/// Collapsed text; nothing if it is empty.
fn listing(title: &str, text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    format!(
        "<details>\n<summary>{}</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
        Escaped(title),
        Escaped(text)
    )
}
