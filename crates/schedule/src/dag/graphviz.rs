//! Graphviz output of a [`Dag`].

use std::fmt::Write;

use warploom_lang::Id;

use crate::dag::text::{heading, types};
use crate::dag::{Dag, Edge, Node};
use crate::ids::NodeId;

impl Dag {
    /// The graph in the `dot` language of Graphviz.
    ///
    /// Inputs are boxes, outputs have a double border, and boundary conditions have a dashed border. An edge
    /// to an update is labelled with the number of the stage. Edges with several accesses are labelled with
    /// their number.
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph {} {{\n", quoted(self.name()));
        text.push_str("  node [fontname=\"Helvetica\"];\n  edge [fontname=\"Helvetica\", fontsize=10];\n");
        for (id, node) in self.nodes().iter() {
            let _ = writeln!(text, "  n{} [{}];", id.index(), attributes(node));
        }
        for edge in self.edges().values() {
            let consumer = self.stages()[edge.consumer].node;
            let _ = writeln!(text, "  {}{};", arrow(edge.producer, consumer), self.edge_label(edge));
        }
        text.push_str("}\n");
        text
    }

    fn edge_label(&self, edge: &Edge) -> String {
        let stage = &self.stages()[edge.consumer];
        let calls = (edge.calls > 1).then(|| edge.calls.to_string());
        let number = stage.is_update().then(|| format!(".{}", stage.number));
        let label: Vec<String> = number.into_iter().chain(calls).collect();
        if label.is_empty() { String::new() } else { format!(" [label={}]", quoted(&label.join(": "))) }
    }
}

fn arrow(from: NodeId, to: NodeId) -> String {
    format!("n{} -> n{}", from.index(), to.index())
}

fn attributes(node: &Node) -> String {
    let mut label = format!("{}\n{}", heading(node), types(node));
    match node.stages.len() {
        0 | 1 => {}
        2 => label.push_str("\n1 update"),
        stages => {
            let _ = write!(label, "\n{} updates", stages - 1);
        }
    }
    let mut attributes = format!("label={}", quoted(&label));
    for (holds, attribute) in [
        (node.is_input(), "shape=box"),
        (node.is_output, "peripheries=2"),
        (node.is_boundary_condition, "style=dashed"),
    ] {
        if holds {
            let _ = write!(attributes, ", {attribute}");
        }
    }
    attributes
}

/// A quoted `dot` string. Names that come from files can contain any character.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
