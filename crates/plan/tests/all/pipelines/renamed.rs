//! Pipelines whose names are drawn at random from all that are accepted.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use warploom_lang::draft::Draft;
use warploom_lang::*;

/// Words with a meaning in schedules, and names that look like others.
const WORDS: [&str; 30] = [
    "inline",
    "kernel",
    "around",
    "over",
    "block",
    "threads",
    "serial",
    "unroll",
    "flat",
    "shared",
    "private",
    "registers",
    "pitch",
    "blocks",
    "async",
    "vector",
    "split",
    "tree",
    "for",
    "along",
    "all",
    "x",
    "r",
    "A",
    "stage",
    "prod",
    "output",
    "d0",
    "_",
    "names",
];

/// Names for everything in a pipeline.
#[derive(Clone, Debug)]
pub struct Names {
    pipeline: String,
    funcs: Vec<String>,
    variables: Vec<String>,
}

/// Names that a pipeline accepts, unless two of them are one.
pub fn names() -> impl Strategy<Value = Names> {
    (pipeline(), vec(func(), 16), vec(variable(), 16)).prop_map(|(pipeline, funcs, variables)| Names {
        pipeline,
        funcs,
        variables,
    })
}

fn word() -> impl Strategy<Value = String> {
    select(WORDS.to_vec()).prop_map(str::to_string)
}

/// Of Funcs and inputs.
fn func() -> impl Strategy<Value = String> {
    let parts = (word(), vec(prop_oneof![word(), "[0-2]", "[A-Za-z0-9_.]{0,3}"], 0..4));
    parts.prop_map(|(first, rest)| rest.iter().fold(first, |name, part| format!("{name}.{part}")))
}

/// Of dimensions and reduction variables.
fn variable() -> impl Strategy<Value = String> {
    let last = prop_oneof![word(), "[0-9]{1,2}", "[^\\s,#.]{1,4}", Just("\u{202e}\u{1b}`\"\\".to_string())];
    (vec(word(), 0..3), last).prop_map(|(mut parts, last)| {
        parts.push(last);
        parts.join(".")
    })
}

fn pipeline() -> impl Strategy<Value = String> {
    let spaces = select(vec![" ", "  ", "\t", "\u{3000}", ""]);
    let words = vec((prop_oneof![word(), "[^\\s,#]{1,4}"], spaces.clone()), 1..4);
    (spaces, words).prop_map(|(start, words)| {
        words.iter().fold(start.to_string(), |name, (word, space)| format!("{name}{word}{space}"))
    })
}

impl Names {
    /// A pipeline under these names; `None` if two of them are one.
    pub fn renamed(&self, pipeline: &Pipeline) -> Option<Pipeline> {
        let mut draft = Draft::of(pipeline);
        draft.name.clone_from(&self.pipeline);
        let mut funcs = self.funcs.iter().cycle().cloned();
        let mut variables = self.variables.iter().cycle().cloned();
        for input in draft.inputs.values_mut() {
            input.name = funcs.next()?;
        }
        for func in draft.funcs.values_mut() {
            func.name = funcs.next()?;
            let domains = func.stages.iter_mut().flat_map(|stage| &mut stage.domain);
            for name in func.dims.iter_mut().chain(domains.map(|var| &mut var.name)) {
                *name = variables.next()?;
            }
        }
        let error = match draft.finish() {
            Ok(renamed) => return Some(renamed),
            Err(error) => error,
        };
        let fault = &error.diagnostics[0].fault;
        let one =
            matches!(fault, Fault::Duplicate { .. } | Fault::TwoMeanings { .. } | Fault::RepeatedVar { .. });
        assert!(one, "{error}");
        None
    }
}
