//! Constant tables in printed kernels.

use std::collections::BTreeSet;

use warploom_codegen::build::build;
use warploom_codegen::ir::Program;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::{Input, Operand, Pipeline, Realisation, Region, clamp, func, rdom, table, vars};
use warploom_plan::Problem;
use warploom_runtime::cuda::nvrtc::{self, Arch};
use warploom_runtime::testing;
use warploom_target::Device;

/// A pipeline with tables of all kinds: rows, integers that index, values without a literal, bytes.
fn program() -> Program {
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 2);
    let gamma = table("gamma", [0.1f32, -0.0, 1e-42, 3.0e38]);
    let odd = table("odd", [f32::INFINITY, f32::NAN, -1.5]);
    let dither = table("dither", [[0u8, 8, 2], [12, 4, 14]]);
    let distances = table("distances", [-1i32, 0, 2]);
    let signs = table("signs", [i32::MIN, i32::MAX]);
    let flags = table("flags", [true, false, true]);
    let r = rdom([(0, 3)]);
    let edge = input.repeat_edge();
    let spread = func("spread", (x, y), 0.0).over(&r, |own| {
        let value = edge.at((x + distances.at(r.x), y)).i32();
        own.add((x, y), gamma.at(clamp(value, 0, gamma.extent(0) - 1)) * odd.at(r.x))
    });
    let sign = signs.at((x + y) % 2).f32() * flags.at(x % 3).f32();
    let out = func("out", (x, y), spread.at((x, y)) + dither.at((x % 3, y % 2)).f32() + sign + gamma.at(2));
    let pipeline = Pipeline::new("tables", [out]).unwrap();
    let request = Realisation::new(&pipeline)
        .input("input", Region::of_extents(&[64, 16]))
        .output("out", Region::of_extents(&[64, 16]));
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
    build(&problem, &problem.default_schedule()).unwrap()
}

#[test]
fn tables_are_printed_with_exact_values() {
    let text = PRINTER.print(&program(), Build::Checking);
    for expected in [
        "static const float gamma[4] = {\n        0.1f, -0.0f, 1e-42f, ",
        "static __constant__ const unsigned odd[3] = {\n        2139095040u, 2143289344u, 3217031168u,\n    };",
        "__uint_as_float(odd[",
        "static const unsigned char dither[6] = {\n        0, 8, 2, 12, 4, 14,\n    };",
        "static const int signs[2] = {\n        (-2147483647 - 1), 2147483647,\n    };",
        "static const bool flags[3] = {\n        true, false, true,\n    };",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains("gamma[2]"), "an element at a known place is a constant:\n{text}");
}

/// The tables of a kernel in constant memory, and the others.
fn memories(text: &str) -> [Vec<&str>; 2] {
    let declared = |start: &str| {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(start)?.split_once('['));
        lines.filter_map(|(declared, _)| declared.split(' ').next_back()).collect()
    };
    [declared("static __constant__ const "), declared("static const ")]
}

#[test]
fn tables_are_in_constant_memory_where_all_threads_read_one_element() {
    let text = PRINTER.print(&program(), Build::Checking);
    let expected = [vec!["distances", "odd"], vec!["gamma", "dither", "signs", "flags"]];
    assert_eq!(memories(&text).map(BTreeSet::from_iter), expected.map(BTreeSet::from_iter), "{text}");
}

/// Constant memory has 64 KB for all kernels of a translation unit.
#[test]
fn large_tables_are_in_global_memory() {
    let (x, r) = (vars!(x), rdom([(0, 9000)]));
    let (large, small) = (table("large", vec![0.5f32; 9000]), table("small", vec![0.5f32; 4000]));
    let read = |step: i32| large.at(r.x) + small.at((r.x + step) % 4000);
    let one = func("one", x, 0.0).over(&r, |own| own.add(x, read(0)));
    let two = func("two", x, one.at(x)).over(&r, |own| own.add(x, read(1)));
    let three = func("three", x, two.at(x)).over(&r, |own| own.add(x, read(2)));
    let pipeline = Pipeline::new("large", [three]).unwrap();
    let request = Realisation::new(&pipeline).output("three", Region::of_extents(&[64]));
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
    let text = PRINTER.print(&build(&problem, &problem.default_schedule()).unwrap(), Build::Checking);
    assert_eq!(memories(&text), [vec!["small", "small"], vec!["large", "large", "large", "small"]], "{text}");
}

#[test]
fn launches_take_no_tables() {
    let described = PRINTER.describe(&program(), Build::Timing);
    let names: Vec<&str> = described.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    assert!(names.contains(&"input") && names.contains(&"out") && !names.contains(&"gamma"), "{names:?}");
    assert!(described.kernels.iter().flat_map(|kernel| &kernel.buffers).all(|buffer| *buffer < names.len()));
}

#[test]
fn nvrtc_tables_compile_in_both_builds() {
    if !testing::has_nvrtc("nvrtc_tables_compile_in_both_builds") {
        return;
    }
    for build in [Build::Checking, Build::Timing] {
        let text = PRINTER.print(&program(), build);
        let image = nvrtc::compile(&text, Arch::Machine(90), &PRINTER.options(build));
        let image = image.unwrap_or_else(|error| panic!("{build:?}: {error}\n{text}"));
        assert_eq!(image.log, "", "{build:?}\n{text}");
    }
}
