//! An animation of the points that a program computes and reads.

mod bytes;

use crate::html::{Escaped, count};
use crate::page::{Fact, facts};
use bytes::{base64, encoded};

const STYLE: &str = concat!(include_str!("style.css"), include_str!("trace.css"));
const SCRIPT: &str = include_str!("trace.js");

/// The steps of a program as one HTML page with an animation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Trace {
    /// The heading and the window title.
    pub title: String,
    /// Facts about the whole page.
    pub facts: Vec<Fact>,
    /// The definition of a step, and other notes on how to read the page.
    pub notes: Vec<String>,
    /// The text of the schedule.
    pub schedule: String,
    /// The inputs, Funcs and outputs that are stored, in the order of the page.
    pub pictures: Vec<Picture>,
    /// The kernels.
    pub kernels: Vec<TraceKernel>,
    /// The kernel of each launch, by its number in `kernels`.
    pub launches: Vec<usize>,
    /// The names of stages that steps refer to.
    pub stages: Vec<String>,
    /// The steps in order.
    pub steps: Vec<TraceStep>,
}

/// A Func, an input or an output, drawn as a picture of its points.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: PictureKind,
    /// Where its values are stored, in words.
    pub storage: String,
    /// The number of points along each dimension; the first varies fastest.
    pub extents: Vec<usize>,
    /// The values that black and white stand for, in words.
    pub range: String,
    /// The values before the first step, one byte per point; empty if there are none.
    pub values: Vec<u8>,
}

/// The kind of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PictureKind {
    /// An input of the pipeline.
    Input,
    /// A Func that kernels store.
    Func,
    /// An output of the pipeline.
    Output,
}

/// A kernel of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceKernel {
    /// Its name.
    pub name: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads per block.
    pub threads: u32,
}

/// One step of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceStep {
    /// The number of the launch.
    pub launch: u32,
    /// The number of the block in its grid, x fastest.
    pub block: u32,
    /// The stage that is computed, by its number in [`Trace::stages`].
    pub stage: u32,
    /// The points that are read and stored.
    pub touches: Vec<Touch>,
}

/// Points of one picture that a step reads or stores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The number of the picture.
    pub picture: u32,
    /// Whether they are read or stored.
    pub kind: TouchKind,
    /// Runs of consecutive points: the first point and the length. They are in ascending order and do not overlap.
    pub runs: Vec<(u32, u32)>,
    /// The values of the points after a store, one byte each in the order of the runs; empty for reads.
    pub values: Vec<u8>,
}

/// How points are touched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TouchKind {
    /// Read.
    Read,
    /// Stored in global memory, where the values stay.
    Stored,
    /// Stored in shared memory or registers, which a block loses when it ends.
    Held,
}

impl Picture {
    /// The number of points.
    pub fn points(&self) -> usize {
        self.extents.iter().product()
    }

    fn to_html(&self) -> String {
        let kind = match self.kind {
            PictureKind::Input => "input",
            PictureKind::Func => "Func",
            PictureKind::Output => "output",
        };
        let extents: Vec<String> = self.extents.iter().map(usize::to_string).collect();
        let size = if extents.is_empty() { "1 point".to_owned() } else { extents.join(" x ") };
        let (name, storage, range) = (Escaped(&self.name), Escaped(&self.storage), Escaped(&self.range));
        format!(
            "<figure class=\"picture\" data-extents=\"{}\" data-values=\"{}\">\n\
             <figcaption><b>{name}</b> <span>{kind}, {size}</span></figcaption>\n\
             <canvas width=\"1\" height=\"1\" role=\"img\" aria-label=\"{name}, {kind}\"></canvas>\n\
             <p><span class=\"now\"></span>{storage}. {range}</p>\n</figure>\n",
            extents.join(" "),
            base64(&self.values),
        )
    }
}

impl TraceKernel {
    fn to_html(&self) -> String {
        let [x, y, z] = self.grid;
        let blocks = match (y, z) {
            (_, 2..) => format!("{x} x {y} x {z} blocks"),
            (2.., _) => format!("{x} x {y} blocks"),
            _ => count(x as usize, "block"),
        };
        let (name, threads) = (Escaped(&self.name), count(self.threads as usize, "thread"));
        format!("<li data-grid=\"{x} {y} {z}\"><b>{name}</b> <span>{blocks} of {threads} each</span></li>\n")
    }
}

impl Trace {
    /// The bytes of the steps in the page, before they are encoded as text.
    pub fn step_bytes(step: &TraceStep) -> usize {
        encoded(std::slice::from_ref(step)).len()
    }

    /// Renders the page as one HTML document.
    pub fn to_html(&self) -> String {
        let title = Escaped(&self.title);
        let pictures: String = self.pictures.iter().map(Picture::to_html).collect();
        let kernels: String = self.kernels.iter().map(TraceKernel::to_html).collect();
        let stages = self.stages.iter().map(|stage| format!("<li>{}</li>\n", Escaped(stage)));
        let notes = self.notes.iter().map(|note| format!("<p class=\"note\">{}</p>\n", Escaped(note)));
        let launches: Vec<String> = self.launches.iter().map(usize::to_string).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header>\n<h1>{title}</h1>\n{}</header>\n<main>\n{}\
             <div class=\"pictures\">\n{pictures}</div>\n</main>\n\
             <section>\n<h2 class=\"small\">Kernels</h2>\n\
             <ol class=\"kernels\" data-launches=\"{}\">\n{kernels}</ol>\n\
             <details>\n<summary>Schedule</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n</section>\n\
             <footer>\n<h2 class=\"small\">How to read this page</h2>\n{}</footer>\n\
             <ul id=\"stages\" hidden>\n{}</ul>\n\
             <script type=\"text/plain\" id=\"steps\" data-count=\"{}\">{}</script>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            facts(&self.facts),
            controls(self.steps.len()),
            launches.join(" "),
            Escaped(&self.schedule),
            notes.collect::<String>(),
            stages.collect::<String>(),
            self.steps.len(),
            base64(&encoded(&self.steps)),
        )
    }
}

/// The buttons, the bar and the words on the current step.
fn controls(steps: usize) -> String {
    let button = |id: &str, label: &str, key: &str, text: &str| {
        format!(
            "<button type=\"button\" id=\"{id}\" aria-label=\"{label}\" title=\"{label} ({key})\">{text}</button>\n"
        )
    };
    let buttons = [
        button("first", "To the start", "Home", "|&lsaquo;"),
        button("block-back", "Previous block", "Shift+Left", "&laquo;"),
        button("back", "Previous step", "Left", "&lsaquo;"),
        button("play", "Play", "Space", "Play"),
        button("on", "Next step", "Right", "&rsaquo;"),
        button("block-on", "Next block", "Shift+Right", "&raquo;"),
        button("last", "To the end", "End", "&rsaquo;|"),
    ];
    format!(
        "<div class=\"controls\">\n<div class=\"buttons\">\n{}\
         <label>Speed <select id=\"speed\"></select></label>\n</div>\n\
         <input type=\"range\" id=\"scrub\" min=\"0\" max=\"{steps}\" value=\"0\" step=\"1\" aria-label=\"TraceStep\">\n\
         <p id=\"where\"></p>\n<p id=\"what\"></p>\n\
         <p class=\"legend\"><span><i class=\"stored\"></i>stored</span> <span><i class=\"read\"></i>read</span> \
         <span><i class=\"unset\"></i>not computed</span> <span><i class=\"gone\"></i>lost with its block</span> \
         <span><i class=\"tile\"></i>held by this block</span></p>\n</div>\n",
        buttons.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Trace {
        let touch =
            |kind, values: &[u8]| Touch { picture: 0, kind, runs: vec![(1, 2)], values: values.to_vec() };
        let picture = Picture {
            name: "a<b".to_owned(),
            kind: PictureKind::Output,
            storage: "global memory".to_owned(),
            extents: vec![4],
            range: String::new(),
            values: Vec::new(),
        };
        Trace {
            title: "t & u".to_owned(),
            pictures: vec![picture],
            kernels: vec![TraceKernel { name: "k".to_owned(), grid: [2, 1, 1], threads: 1 }],
            launches: vec![0],
            stages: vec!["a<b".to_owned()],
            steps: vec![TraceStep {
                touches: vec![touch(TouchKind::Stored, &[7, 9])],
                ..TraceStep::default()
            }],
            ..Trace::default()
        }
    }

    #[test]
    fn a_page_contains_everything_and_escapes_it() {
        let html = small().to_html();
        for part in [
            "<title>t &amp; u</title>",
            "<b>a&lt;b</b> <span>output, 4</span>",
            "<li data-grid=\"2 1 1\"><b>k</b> <span>2 blocks of 1 thread each</span></li>",
            "data-count=\"1\"",
            "max=\"1\"",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("a<b") && !html.contains("http:") && !html.contains("https:"));
    }

    #[test]
    fn a_step_knows_its_bytes() {
        let trace = small();
        assert_eq!(Trace::step_bytes(&trace.steps[0]), encoded(&trace.steps).len());
    }
}
