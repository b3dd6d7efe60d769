//! The graph of a pipeline as SVG, with the kernel of each Func.

use std::fmt::Write;

use crate::explained::layout::{Layout, Placed};
use crate::html::Escaped;

/// The width of a character, and the size of boxes and of the space between their layers.
const CHARACTER: f64 = 7.0;
const HEIGHT: f64 = 36.0;
const LAYER: f64 = 72.0;
const MARGIN: f64 = 12.0;

/// The angle between the hues of consecutive kernels, which keeps neighbours apart.
const HUE_STEP: f64 = 137.5;

/// Inputs and Funcs, and their edges.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// The inputs and Funcs.
    pub nodes: Vec<GraphNode>,
    /// The edges from producer to consumer, by position.
    pub edges: Vec<(usize, usize)>,
}

/// An input or Func.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
}

/// The role of an input or Func.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// An input of the pipeline.
    Input,
    /// It is inlined into its readers.
    Inline,
    /// A kernel computes it; numbered from 1 in launch order.
    Kernel(usize),
    /// Nothing computes it, because nothing reads it.
    Unused,
}

impl Graph {
    /// The graph in a box of its own, which scrolls.
    pub(super) fn to_html(&self, version: &str) -> String {
        if self.nodes.is_empty() {
            return String::new();
        }
        let widths: Vec<f64> = self.nodes.iter().map(width).collect();
        let layout = Layout::new(&widths, &self.edges);
        let (wide, high) =
            (layout.width + 2.0 * MARGIN, layout.layers as f64 * LAYER - LAYER + HEIGHT + 2.0 * MARGIN);
        let mut shapes = String::new();
        for path in &layout.paths {
            let _ = writeln!(shapes, "<path d=\"{}\"/>", curve(path));
        }
        for ((node, place), width) in self.nodes.iter().zip(&layout.places).zip(&widths) {
            shapes += &node.to_svg(version, place, *width);
        }
        let inlined = self.nodes.iter().filter(|node| node.role == Role::Inline).count();
        let about = format!(
            "The pipeline from its inputs at the top to its outputs: {} boxes, of which {inlined} inlined",
            self.nodes.len()
        );
        format!(
            "<div class=\"graph\" tabindex=\"0\" role=\"group\" aria-label=\"{about}\">\n<svg width=\"{wide:.0}\" height=\"{high:.0}\" \
             viewBox=\"0 0 {wide:.0} {high:.0}\">\n{shapes}</svg>\n</div>\n<p class=\"note\">Boxes of one colour are in one kernel, \
             whose number they have. Dashed boxes are inlined: computed where they are read.</p>\n"
        )
    }
}

impl GraphNode {
    fn to_svg(&self, version: &str, place: &Placed, width: f64) -> String {
        let (x, y) = (place.x + MARGIN, top(place.layer));
        let (class, below, hue) = match self.role {
            Role::Input => ("input", "input".to_owned(), 0.0),
            Role::Inline => ("inline", "inline".to_owned(), 0.0),
            Role::Unused => ("inline", "not computed".to_owned(), 0.0),
            Role::Kernel(number) => {
                ("placed", format!("kernel {number}"), (number as f64 * HUE_STEP) % 360.0)
            }
        };
        let name = Escaped(&self.name);
        let shape = format!(
            "<g class=\"{class}\" style=\"--hue:{hue:.0}\"><title>{name}: {below}</title><rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{HEIGHT}\" rx=\"5\"/><text x=\"{x:.1}\" y=\"{:.1}\">{name}</text><text class=\"below\" x=\"{x:.1}\" y=\"{:.1}\">{below}</text></g>",
            x - width / 2.0,
            y + 15.0,
            y + 29.0
        );
        match self.role {
            Role::Kernel(number) => format!("<a href=\"#{version}-kernel-{number}\">{shape}</a>\n"),
            _ => shape + "\n",
        }
    }
}

/// The width of a node's box.
fn width(node: &GraphNode) -> f64 {
    (node.name.chars().count() as f64 * CHARACTER + 16.0).max(70.0)
}

/// The upper edge of a layer's boxes.
fn top(layer: usize) -> f64 {
    MARGIN + layer as f64 * LAYER
}

/// A curve from the lower edge of the first place to the upper edge of the last one.
fn curve(path: &[Placed]) -> String {
    let mut text = String::new();
    for (number, pair) in path.windows(2).enumerate() {
        let (from, to) = (&pair[0], &pair[1]);
        let (x0, x1) = (from.x + MARGIN, to.x + MARGIN);
        let (last, y0) = (number + 2 == path.len(), top(from.layer) + HEIGHT);
        let y1 = top(to.layer);
        let middle = (y0 + y1) / 2.0;
        if number == 0 {
            let _ = write!(text, "M{x0:.1} {y0:.1}");
        }
        let _ = write!(text, "C{x0:.1} {middle:.1} {x1:.1} {middle:.1} {x1:.1} {y1:.1}");
        if !last {
            let _ = write!(text, "V{:.1}", y1 + HEIGHT);
        }
    }
    text
}
