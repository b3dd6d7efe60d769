//! The examples of the notation, and the operators of the suite, compute what NumPy computes.

use std::collections::BTreeSet;

use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Tolerance, compare};
use warploom_lang::Type;

use crate::reference::{Folder, Reference};

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

fn compare_all(folder: Folder) {
    for example in folder.references() {
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

#[test]
fn examples_compute_what_numpy_computes() {
    compare_all(Folder::Examples);
}

#[test]
fn operators_compute_what_numpy_computes() {
    compare_all(Folder::Operators);
}

/// A bound that allows anything, or a result of zeros, would not be noticed above.
#[test]
fn bounds_are_a_few_roundings() {
    for example in [Folder::Examples, Folder::Operators].into_iter().flat_map(Folder::references) {
        for (expected, allowed) in &example.outputs {
            let zeros = Buffer::zeros(expected.ty(), expected.region().clone()).unwrap();
            let largest = compare(expected, &zeros, &Tolerance::default()).unwrap().max_abs;
            assert!(largest > 0.0, "{} is 0 everywhere", example.name);
            let most = if expected.ty() == Type::F64 { 1e-14 } else { 2e-5 };
            assert!(*allowed <= most * largest.max(1.0), "{}: {allowed:e} of {largest:e}", example.name);
        }
    }
}

/// The definitions in the texts of a folder, with their files.
fn defined(folder: Folder) -> BTreeSet<(String, String)> {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let files = files.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".tc"));
    let definitions = files.flat_map(|file| {
        let program = folder.program(&file);
        let names = program.definitions().into_iter();
        names.map(|name| (file.clone(), name.to_string())).collect::<Vec<_>>()
    });
    definitions.collect()
}

#[test]
fn every_definition_has_a_reference() {
    for folder in [Folder::Examples, Folder::Operators] {
        let references = folder.references().into_iter();
        let compared: BTreeSet<(String, String)> =
            references.map(|one| (one.file, one.definition.name().to_string())).collect();
        assert_eq!(compared, defined(folder));
    }
}

/// With too few taps per phase, part of the kernel would be left out.
#[test]
fn transposed_convolutions_refuse_too_few_taps() {
    let program = Folder::Operators.program("transposed.tc");
    let given = [("B", 1), ("C", 2), ("F", 3), ("D", 5), ("H", 5), ("W", 5), ("s", 3), ("p", 1)];
    for (name, sides) in [("strided2d", vec!["KH", "KW"]), ("strided3d", vec!["KD", "KH", "KW"])] {
        let definition = program.define(Some(name)).unwrap();
        for longest in &sides {
            let sides = sides.iter().map(|side| (*side, if side == longest { 7 } else { 2 }));
            let mut sizes: Vec<(&str, i64)> = given.into_iter().chain(sides).collect();
            sizes.retain(|(size, _)| definition.sizes().contains(size));
            let with_taps = |taps| definition.realise(&[sizes.clone(), vec![("k", taps)]].concat());
            assert!(with_taps(3).is_ok(), "{name}: {longest}");
            let message = with_taps(2).unwrap_err().to_string();
            assert!(message.contains(&format!("`k - 1 - ({longest} - 1) / s`")), "{message}");
        }
    }
}
