//! One kernel: times, loop nest and code, whose lines are linked.

use std::fmt::Write;

use crate::html::Escaped;
use crate::page::{Fact, facts};

/// A kernel and its predictions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KernelView {
    /// The stage that it computes.
    pub name: String,
    /// The predicted time in microseconds.
    pub us: f64,
    /// The predicted time as text.
    pub time: String,
    /// Grid, threads, memory, registers.
    pub facts: Vec<Fact>,
    /// Its bottleneck, as a sentence.
    pub bottleneck: String,
    /// The same in a word or two.
    pub limited_by: String,
    /// The parts of the predicted time, in microseconds.
    pub parts: Vec<Part>,
    /// The bytes of global memory that it reads and writes.
    pub memory: Vec<Part>,
    /// The loops around the blocks, outermost first.
    pub loops: Vec<String>,
    /// The lines of a block, in execution order.
    pub lines: Vec<NestLine>,
    /// Its code.
    pub source: Vec<SourceLine>,
    /// Whether the other schedule of the page has no such kernel.
    pub differs: bool,
}

/// A number with its name, drawn as a bar.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Part {
    /// The name of the number.
    pub name: String,
    /// The number.
    pub value: f64,
    /// The number as text, with its unit.
    pub text: String,
}

/// A line of a loop nest: a stage, or a loop around several.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NestLine {
    /// Nesting depth, from 0.
    pub depth: usize,
    /// The stage, input or loop.
    pub name: String,
    /// How threads share it.
    pub how: String,
    /// Its loops, outermost first.
    pub loops: Vec<String>,
    /// Remarks on memory, redundancy, traffic and times.
    pub remarks: Vec<String>,
}

/// A line of code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceLine {
    /// The line, without its end.
    pub text: String,
    /// The numbers of the nest lines that it belongs to, from 0.
    pub of: Vec<usize>,
}

impl KernelView {
    /// Renders the kernel; its number is that of the launch order.
    pub(super) fn to_html(&self, version: &str, number: usize, open: bool) -> String {
        let (open, mark) = (
            if open { " open" } else { "" },
            if self.differs { " <span class=\"differs\">differs</span>" } else { "" },
        );
        format!(
            "<details class=\"kernel\" id=\"{version}-kernel-{number}\"{open}>\n<summary>{number}. {} <span class=\"time\">{}</span>{mark}</summary>\n\
             <p class=\"bottleneck\">{}</p>\n{}<div class=\"beside\">\n<div><h4>Loop nest</h4>\n{}</div>\n\
             <div><h4>CUDA</h4>\n{}</div>\n</div>\n</details>\n",
            Escaped(&self.name),
            Escaped(&self.time),
            Escaped(&self.bottleneck),
            facts(&self.facts),
            self.nest(),
            self.code(),
        )
    }

    fn nest(&self) -> String {
        let mut html = format!(
            "<div class=\"nest box\" tabindex=\"0\" role=\"group\" aria-label=\"Loop nest of {}\">\n",
            Escaped(&self.name)
        );
        html += &loops(&self.loops);
        for (number, line) in self.lines.iter().enumerate() {
            let _ = writeln!(
                html,
                "<div class=\"line\" tabindex=\"0\" data-n=\"{number}\" style=\"--depth:{}\"><b>{}</b> <span class=\"how\">{}</span>\
                 {}<span class=\"remarks\">{}</span></div>",
                line.depth,
                Escaped(&line.name),
                Escaped(&line.how),
                loops(&line.loops),
                Escaped(&line.remarks.join("; "))
            );
        }
        html + "</div>\n"
    }

    /// The code, in runs of lines that belong to the same lines of the nest.
    fn code(&self) -> String {
        let mut html = format!(
            "<pre class=\"code box\" tabindex=\"0\" role=\"group\" aria-label=\"CUDA of {}\">",
            Escaped(&self.name)
        );
        for run in self.source.chunk_by(|a, b| a.of == b.of) {
            let lines: Vec<&str> = run.iter().map(|line| line.text.as_str()).collect();
            let text = lines.join("\n");
            let numbers: Vec<String> = run[0].of.iter().map(usize::to_string).collect();
            let _ = match numbers.is_empty() {
                true => writeln!(html, "{}", Escaped(&text)),
                false => writeln!(
                    html,
                    "<span class=\"run\" tabindex=\"0\" data-n=\"{}\">{}</span>",
                    numbers.join(" "),
                    Escaped(&text)
                ),
            };
        }
        html + "</pre>\n"
    }
}

fn loops(loops: &[String]) -> String {
    if loops.is_empty() {
        return String::new();
    }
    let items: String = loops.iter().map(|each| format!("<li>{}</li>", Escaped(each))).collect();
    format!("<ul class=\"loops\">{items}</ul>\n")
}

/// The times and bytes of all kernels, as a table of bars.
pub(super) fn meters(version: &str, kernels: &[KernelView]) -> String {
    let Some(first) = kernels.first() else { return String::new() };
    let most = |parts: fn(&KernelView) -> &[Part]| {
        kernels.iter().flat_map(parts).map(|part| part.value).fold(f64::MIN_POSITIVE, f64::max)
    };
    let (most_us, most_bytes) =
        (kernels.iter().map(|kernel| kernel.us).fold(most(|of| &of.parts), f64::max), most(|of| &of.memory));
    let mut titles = String::from("<th scope=\"col\">kernel</th><th scope=\"col\">predicted</th>");
    for part in first.parts.iter().chain(&first.memory) {
        let _ = write!(titles, "<th scope=\"col\">{}</th>", Escaped(&part.name));
    }
    titles += "<th scope=\"col\">limited by</th>";
    let mut rows = String::new();
    for (number, kernel) in (1..).zip(kernels) {
        let mut cells = meter(kernel.us / most_us, &kernel.time, "total");
        kernel.parts.iter().for_each(|part| cells += &meter(part.value / most_us, &part.text, "part"));
        kernel.memory.iter().for_each(|part| cells += &meter(part.value / most_bytes, &part.text, "bytes"));
        let (name, limit) = (Escaped(&kernel.name), Escaped(&kernel.limited_by));
        let _ = writeln!(
            rows,
            "<tr><td><a href=\"#{version}-kernel-{number}\">{number}. {name}</a></td>{cells}<td>{limit}</td></tr>"
        );
    }
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table class=\"meters\">\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n"
    )
}

fn meter(share: f64, text: &str, class: &str) -> String {
    let share = (100.0 * share).clamp(0.0, 100.0);
    format!("<td>{}<span class=\"meter {class}\" style=\"--share:{share:.1}%\"></span></td>", Escaped(text))
}
