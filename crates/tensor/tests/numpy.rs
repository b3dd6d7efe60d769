//! The examples of the notation compute what NumPy computes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod reference;

use std::collections::BTreeSet;
use std::path::Path;

use reference::Reference;
use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Tolerance, compare};
use warploom_lang::Type;

fn evaluated(example: &Reference) -> Vec<Buffer> {
    let Reference { pipeline, request, .. } = example;
    let mut evaluation = Evaluation::new(pipeline);
    for ((id, input), buffer) in pipeline.inputs().iter().zip(&example.inputs) {
        assert_eq!(request.inputs[id].as_ref(), Some(buffer.region()), "{}: {}", example.name, input.name);
        evaluation = evaluation.input(&input.name, buffer);
    }
    for (param, value) in pipeline.params().values().zip(&example.params) {
        evaluation = evaluation.param(&param.name, *value);
    }
    for (name, region) in pipeline.output_names().iter().zip(&request.outputs) {
        evaluation = evaluation.output(name, region.clone().unwrap());
    }
    evaluation.run().unwrap_or_else(|error| panic!("{}: {error}", example.name))
}

#[test]
fn examples_compute_what_numpy_computes() {
    for example in reference::all() {
        let names = example.pipeline.output_names();
        let found = evaluated(&example);
        for ((got, (expected, allowed)), name) in found.iter().zip(&example.outputs).zip(names) {
            let tolerance = Tolerance { abs: *allowed, ..Tolerance::default() };
            let found = compare(got, expected, &tolerance).unwrap();
            let is_right = if *allowed == 0.0 { found.identical } else { found.passed };
            let (example, worst) = (&example.name, found.max_abs);
            assert!(is_right, "{name} of {example} differs by {worst:e}, at {:?}", found.first);
        }
    }
}

/// A bound that allows anything, or a result of zeros, would not be noticed above.
#[test]
fn bounds_are_a_few_roundings() {
    for example in reference::all() {
        for (expected, allowed) in &example.outputs {
            let zeros = Buffer::zeros(expected.ty(), expected.region().clone()).unwrap();
            let largest = compare(expected, &zeros, &Tolerance::default()).unwrap().max_abs;
            assert!(largest > 0.0, "{} is 0 everywhere", example.name);
            let most = if expected.ty() == Type::F64 { 1e-14 } else { 2e-5 };
            assert!(*allowed <= most * largest.max(1.0), "{}: {allowed:e} of {largest:e}", example.name);
        }
    }
}

#[test]
fn every_example_has_a_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    let references: BTreeSet<String> = reference::all().into_iter().map(|example| example.name).collect();
    assert_eq!(texts, references);
    for example in reference::all() {
        assert_eq!(example.definition.name(), example.name);
    }
}
