use std::collections::BTreeSet;

use warploom::check::{SEED, small_settings};
use warploom::lang::Value;
use warploom::plan::Problem;
use warploom::target::Device;
use warploom_codegen::build::build;

use super::*;

/// A recorded row: name, shape, and operations in units of 1e9.
fn anchors() -> Vec<(String, String, f64)> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/anchors-operators-h200.json");
    let text = std::fs::read_to_string(file).expect("the repository has it");
    let field = |row: &str, name: &str| {
        let rest = row.split(&format!("\"{name}\": ")).nth(1)?;
        Some(rest.split(['\n', '}']).next()?.trim_matches([' ', ',', '"']).to_owned())
    };
    let row = |row| Some((field(row, "name")?, field(row, "shape")?, field(row, "gflop")?.parse().ok()?));
    text.split('{').filter_map(row).collect()
}

#[test]
fn every_recorded_row_is_in_the_set_with_the_same_work() {
    let (anchors, all) = (anchors(), operators());
    assert_eq!(anchors.len(), 126);
    for (name, shape, gflop) in anchors {
        let row = all.iter().find(|row| row.name == name && row.shape == shape);
        let row = row.unwrap_or_else(|| panic!("no row {name} {shape}"));
        let own = row.operations() / 1e9;
        let near = (own - gflop).abs() <= (0.01 * gflop).max(0.001);
        assert!(near, "{name} {shape}: {own} against {gflop}");
    }
}

#[test]
fn rows_are_distinct_and_families_are_together() {
    let all = operators();
    let names: BTreeSet<(&str, &str)> =
        all.iter().map(|row| (row.name.as_str(), row.shape.as_str())).collect();
    assert_eq!(names.len(), all.len());
    let mut families: Vec<&str> = all.iter().map(|row| row.family).collect();
    families.dedup();
    assert_eq!(families.iter().collect::<BTreeSet<_>>().len(), families.len(), "{families:?}");
}

#[test]
fn layers_of_networks_are_rows() {
    let all = operators();
    for network in NETWORKS {
        for (layer, _) in network.layers {
            assert_eq!(all.iter().filter(|row| row.name == *layer).count(), 1, "{}: {layer}", network.name);
        }
    }
    let yolo: u32 = NETWORKS[0].layers.iter().map(|(_, count)| count).sum();
    assert_eq!(yolo, 24);
}

/// Otherwise it would be checked with noise for indices, or not at all.
#[test]
fn every_definition_has_a_small_size() {
    let mut seen = BTreeSet::new();
    for row in operators() {
        if seen.insert(row.defined.def) {
            let app = row.app();
            let small = small_settings(&app).unwrap_or_else(|| panic!("{}", app.name));
            assert!(app.workload(&small, SEED).is_some(), "{}", app.name);
        }
    }
    assert_eq!(seen.len(), 30);
}

#[test]
fn indices_are_within_their_tables() {
    let named = |name: &str| operators().into_iter().find(|row| row.name == name).expect("a row").app();
    for (name, input, ends) in [("2LUT", "I2", "E2"), ("1LUT", "I", "E"), ("SHO", "S", "k")] {
        let app = named(name);
        let settings = small_settings(&app).expect("a small size");
        let end = settings.int(ends).pow(if name == "SHO" { 2 } else { 1 }) as i32;
        let workload = app.workload(&settings, SEED).expect("data");
        let id = workload.pipeline.input_named(input).expect("an input");
        let position = workload.pipeline.inputs().keys().position(|key| key == id).expect("its place");
        let samples = workload.inputs[position].as_slice::<i32>().expect("integers");
        assert!(samples.iter().all(|sample| (0..end).contains(sample)), "{name}");
        assert!(samples.iter().max() > samples.iter().min(), "{name}");
    }
}

#[test]
fn every_row_compiles_under_its_default_schedule() {
    let device = Device::preset("h200").expect("it is known");
    for row in operators() {
        let app = row.app();
        let settings = Settings::defaults(&app);
        let pipeline = app.pipeline(&settings).expect("it is right");
        let mut request = app.shapes_at(&settings).realisation(&pipeline);
        for (decl, value) in pipeline.params().values().zip(request.params.values_mut()) {
            *value = Value::from_number(decl.ty, settings.number(&decl.name));
        }
        let problem = Problem::new(&pipeline, &request, &device);
        let problem = problem.unwrap_or_else(|error| panic!("{}: {error}", app.name));
        let built = build(&problem, &problem.default_schedule());
        assert!(built.is_ok(), "{}: {:?}", app.name, built.err());
    }
}
