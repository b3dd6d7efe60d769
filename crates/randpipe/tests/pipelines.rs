//! Properties of random pipelines, and that they run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde_json::json;
use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::*;
use warploom_randpipe::{Options, RandomPipeline, Scale, StageKind, random_pipeline, visited_points};

fn of_scale(scale: Scale) -> Options {
    Options { scale, ..Options::default() }
}

/// The pipelines of the first seeds.
fn pipelines(seeds: u64, options: &Options) -> impl Iterator<Item = (u64, RandomPipeline)> {
    (0..seeds).map(|seed| (seed, random_pipeline(seed, options)))
}

fn output_boxes(random: &RandomPipeline) -> impl Iterator<Item = &Region> {
    random.request.outputs.iter().flatten()
}

#[test]
fn two_thousand_tiny_pipelines_fit_their_scale() {
    for (seed, random) in pipelines(2000, &Options::default()) {
        let regions = infer(&random.pipeline, &random.request).unwrap();
        let work = visited_points(&random.pipeline, &regions);
        assert!(work <= Scale::Tiny.max_work(), "seed {seed} visits {work} points");
        assert!(output_boxes(&random).all(|region| region.points().unwrap() <= 2000), "seed {seed}");
        assert_eq!(random.kinds.len(), random.pipeline.funcs().len(), "seed {seed}");
    }
}

#[test]
fn every_kind_is_common() {
    let mut found: BTreeMap<StageKind, u32> = StageKind::ALL.iter().map(|kind| (*kind, 0)).collect();
    for (_, random) in pipelines(1000, &Options::default()) {
        for kind in random.kinds.iter().map(|(_, kind)| *kind).collect::<BTreeSet<_>>() {
            *found.entry(kind).or_default() += 1;
        }
    }
    for (kind, count) in found {
        println!("{kind:15} {:5.1} %", f64::from(count) / 10.0);
        assert!(count >= 20, "{kind} is in {count} pipelines of 1000");
    }
}

#[test]
fn every_function_occurs() {
    let mut texts = String::new();
    pipelines(1000, &Options::default()).for_each(|(_, random)| texts += &random.pipeline.to_json());
    for name in [
        "atan",
        "asin",
        "acos",
        "tan",
        "rsqrt",
        "erf",
        "log1p",
        "expm1",
        "exp2",
        "log2",
        "is_nan",
        "popcount",
        "leading_zeros",
        "atan2",
    ] {
        assert!(texts.contains(&format!("\"{name}\"")), "{name} is in none of 1000 pipelines");
    }
}

#[test]
fn names_say_the_kind() {
    for (seed, random) in pipelines(100, &Options::default()) {
        for (id, kind) in &random.kinds {
            let name = &random.pipeline.funcs()[*id].name;
            assert!(name.starts_with(kind.name()), "seed {seed}: {name} is said to be {kind}");
        }
    }
}

#[test]
fn a_seed_always_gives_the_same() {
    let texts = || {
        let options = Options::default();
        pipelines(60, &options)
            .map(|(_, random)| (random.pipeline.to_json(), random.request, random.kinds))
            .collect::<Vec<_>>()
    };
    let here = texts();
    let there: Vec<_> = (0..3).map(|_| thread::spawn(texts)).map(|thread| thread.join().unwrap()).collect();
    assert!(there.iter().all(|other| *other == here));
    let different: BTreeSet<&String> = here.iter().map(|(json, ..)| json).collect();
    assert_eq!(different.len(), here.len());
}

#[test]
fn pipelines_can_be_written_and_read() {
    for (seed, random) in pipelines(200, &Options::default()) {
        let text = random.pipeline.to_json();
        let read = Pipeline::from_json(&text).unwrap();
        assert_eq!(read.to_json(), text, "seed {seed}");
        assert!(infer(&read, &random.request).is_ok(), "seed {seed}");
    }
}

#[test]
fn larger_scales_have_their_sizes() {
    for (scale, smallest, largest) in
        [(Scale::Small, 1, 1 << 14), (Scale::Medium, 1 << 14, 1 << 20), (Scale::Benchmark, 1 << 20, 1 << 22)]
    {
        let (mut outputs, mut small) = (0, 0);
        for (seed, random) in pipelines(100, &of_scale(scale)) {
            let start = Instant::now();
            let regions = infer(&random.pipeline, &random.request).unwrap();
            assert!(start.elapsed() < Duration::from_secs(2), "{scale:?} {seed}: bounds take too long");
            assert!(visited_points(&random.pipeline, &regions) <= scale.max_work());
            for points in output_boxes(&random).map(|region| region.points().unwrap()) {
                assert!(points <= largest, "{scale:?} {seed}: {points}");
                outputs += 1;
                small += u32::from(points < smallest);
            }
        }
        assert!(small * 5 <= outputs, "{scale:?}: {small} of {outputs} outputs are small");
    }
}

#[test]
fn pipelines_have_as_many_stages_as_asked() {
    let options = Options { stages: 30..=30, ..Options::default() };
    for (seed, random) in pipelines(30, &options) {
        let funcs = random.pipeline.funcs().len();
        assert!(funcs >= 30, "seed {seed} has only {funcs} Funcs");
    }
    let options = Options { stages: 1..=1, ..Options::default() };
    assert!(pipelines(30, &options).all(|(_, random)| random.pipeline.outputs().len() <= 3));
}

/// The features that some pipelines must have; each is counted once per pipeline.
fn features(random: &RandomPipeline) -> Vec<String> {
    let RandomPipeline { pipeline, request, .. } = random;
    let mut found = Vec::new();
    for input in pipeline.inputs().values() {
        found.push(format!("input of {}", input.ty));
        found.push(format!("input of rank {}", input.dimensions));
        if !input.storage_order.is_sorted() {
            found.push("storage order".to_string());
        }
    }
    for func in pipeline.funcs().values() {
        found.push(format!("Func of rank {}", func.dims.len()));
        found.extend(func.types.iter().map(|ty| format!("Func of {ty}")));
        found.push(format!("{} values", func.types.len().min(3)));
        found.push(format!("{} stages", func.stages.len().min(4)));
        if func.stages[0].values.is_empty() {
            found.push("undefined start".to_string());
        }
        for stage in &func.stages {
            found.push(format!("domain of rank {}", stage.domain.len()));
            found.extend(stage.predicate.map(|_| "filter".to_string()));
        }
    }
    let specialised = pipeline.specialised_params();
    found.extend(specialised.values().map(|fixed| format!("specialised: {fixed}")));
    found.push(format!("{} outputs", pipeline.outputs().len()));
    let read: BTreeSet<FuncId> = reads(pipeline);
    found.extend(pipeline.outputs().iter().map(|output| format!("output read: {}", read.contains(output))));
    for region in request.outputs.iter().flatten() {
        found.extend(region.0.iter().map(|range| format!("output starts at {}", range.min.signum())));
        found.extend((region.points() == Some(1)).then(|| "output of one point".to_string()));
    }
    found
}

/// The Funcs that are read by another Func.
fn reads(pipeline: &Pipeline) -> BTreeSet<FuncId> {
    let mut read = BTreeSet::new();
    for (id, func) in pipeline.funcs().iter() {
        for node in pipeline.exprs().reachable(func.stages.iter().flat_map(|stage| stage.roots())) {
            match pipeline.exprs()[node].kind {
                ir::NodeKind::Call(callee, _) if callee != id => read.insert(callee),
                _ => false,
            };
        }
    }
    read
}

#[test]
fn pipelines_differ_in_every_way() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (_, random) in pipelines(1000, &Options::default()) {
        for feature in features(&random).into_iter().collect::<BTreeSet<_>>() {
            *counts.entry(feature).or_default() += 1;
        }
    }
    println!("{counts:#?}");
    let types = Type::ALL.into_iter().flat_map(|ty| [format!("input of {ty}"), format!("Func of {ty}")]);
    let ranks =
        (0..=4).flat_map(|rank| ["input", "Func", "domain"].map(|what| format!("{what} of rank {rank}")));
    let sizes =
        (1..=3).flat_map(|count| ["values", "stages", "outputs"].map(|what| format!("{count} {what}")));
    let others = [
        "storage order",
        "4 stages",
        "undefined start",
        "filter",
        "specialised: true",
        "specialised: false",
        "output read: true",
        "output starts at -1",
        "output starts at 1",
        "output of one point",
    ];
    for feature in types.chain(ranks).chain(sizes).chain(others.map(String::from)) {
        let count = counts.get(&feature).copied().unwrap_or(0);
        assert!(count >= 8, "`{feature}` is in {count} pipelines of 1000");
    }
    let several = counts["2 outputs"] + counts["3 outputs"];
    assert!((100..=200).contains(&several), "{several} of 1000 pipelines have several outputs");
}

/// What an update is for the rewrites of a pipeline.
fn update_features(pipeline: &Pipeline, at: StageRef, loops: &StageRegions) -> Vec<String> {
    let (exprs, func) = (pipeline.exprs(), &pipeline.funcs()[at.func]);
    let (stage, ty) = (&func.stages[at.stage], func.types[0]);
    let mut found = Vec::new();
    let reachable = |roots: &[ExprId]| exprs.reachable(roots.iter().copied());
    let is_own = |id: &ExprId| matches!(exprs[*id].kind, ir::NodeKind::Call(callee, _) if callee == at.func);
    let is_elsewhere = |id: &ExprId| is_own(id) && exprs[*id].args[..] != stage.indices[..];
    let is_data = |id: ExprId| matches!(exprs[id].kind, ir::NodeKind::Call(..) | ir::NodeKind::Load(_));
    let order = format!("{}marked", if stage.reassociate { "" } else { "un" });
    let longest = loops.domain.iter().map(|range| range.extent).max().unwrap_or(0);
    let op = match &exprs[stage.values[0]].kind {
        ir::NodeKind::Op(op::Op::Binary(op)) => op.name(),
        _ => "other",
    };
    let sized = stage.domain.iter().any(|var| {
        reachable(&[var.extent]).into_iter().any(|id| matches!(exprs[id].kind, ir::NodeKind::InputExtent(..)))
    });
    if reachable(&stage.values).iter().any(is_elsewhere) {
        let start = if func.stages[0].values.is_empty() { "undefined" } else { "defined" };
        let backward = stage
            .indices
            .iter()
            .any(|index| matches!(exprs[*index].kind, ir::NodeKind::Op(op::Op::Binary(op::BinaryOp::Sub))));
        found.push(format!("{order} scan of {ty}"));
        found.push(format!("scan, long: {}", longest >= 64));
        found.push(format!("scan from {start} start, backward: {backward}"));
    } else if reachable(&stage.indices).into_iter().any(is_data) {
        found.push(format!("{order} scatter of {ty}"));
        found.push(format!("scatter with {op}, filtered: {}", stage.predicate.is_some()));
    } else if exprs[stage.values[0]].args.iter().any(is_own) {
        found.push(format!("{order} {op} of {ty}"));
        found.push(format!("{op} over {} variables, long: {}", stage.domain.len().min(3), longest >= 64));
        found.push(format!("long: {}, sized by an input: {sized}", longest >= 64));
    }
    found
}

#[test]
fn pipelines_have_what_rewrites_work_on() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (_, random) in pipelines(2000, &Options::default()) {
        let regions = infer(&random.pipeline, &random.request).unwrap();
        for (id, func) in random.pipeline.funcs().iter() {
            for stage in 1..func.stages.len() {
                let at = StageRef { func: id, stage };
                let loops = &regions.funcs[id].stages[stage];
                for feature in update_features(&random.pipeline, at, loops) {
                    *counts.entry(feature).or_default() += 1;
                }
            }
        }
    }
    println!("{counts:#?}");
    let count = |feature: &str| counts.get(feature).copied().unwrap_or(0);
    let ints = Type::ALL.into_iter().filter(|ty| ty.is_int());
    let exact = ints.flat_map(|ty| ["+", "*", "min", "max", "&", "|", "^"].map(|op| (op, ty)));
    let bools = ["&", "|", "^"].map(|op| (op, Type::Bool));
    let floats = Type::ALL.into_iter().filter(|ty| ty.is_float());
    let floats = floats.flat_map(|ty| ["min", "max"].map(|op| (op, ty)));
    for (op, ty) in exact.chain(bools).chain(floats) {
        assert!(count(&format!("unmarked {op} of {ty}")) > 0, "no {op} of {ty}");
    }
    for what in ["+ of f32", "* of f32", "scan of f32", "scatter of f32"] {
        let [marked, unmarked] = ["marked", "unmarked"].map(|order| count(&format!("{order} {what}")));
        assert!(marked.min(unmarked) >= 20, "{what}: {marked} marked, {unmarked} not");
        // Some scans are no recurrences of the first order and never marked.
        let share = f64::from(marked) / f64::from(marked + unmarked);
        assert!(what.starts_with("scan") || (0.4..0.6).contains(&share), "{what}: {share} marked");
    }
    let variables = (1..=2).flat_map(|rank| {
        ["+", "*", "min", "max", "&", "|", "^"].map(|op| format!("{op} over {rank} variables, long: true"))
    });
    let others = [
        "long: true, sized by an input: true",
        "long: true, sized by an input: false",
        "scan, long: true",
        "unmarked scatter of u32",
        "unmarked scatter of i32",
        "scatter with +, filtered: true",
        "scan from undefined start, backward: true",
        "scan from undefined start, backward: false",
        "scan from defined start, backward: true",
        "scan from defined start, backward: false",
    ];
    for feature in variables.chain(others.map(String::from)) {
        assert!(count(&feature) >= 8, "`{feature}` occurs {} times in 2000 pipelines", count(&feature));
    }
}

/// Every type in the tables of a pipeline.
fn types(pipeline: &Pipeline) -> BTreeSet<Type> {
    pipeline.exprs().nodes().values().map(|node| node.ty).collect()
}

#[test]
fn a_third_of_pipelines_have_types_of_16_or_64_bits() {
    let new = [Type::F16, Type::BF16, Type::F64, Type::I64, Type::U64];
    let mut counts: BTreeMap<Type, u32> = BTreeMap::new();
    let (mut all, mut with_new) = (0, 0);
    for (_, random) in pipelines(1000, &Options::default()) {
        let found = types(&random.pipeline);
        all += 1;
        with_new += u32::from(found.iter().any(|ty| new.contains(ty)));
        for ty in found {
            *counts.entry(ty).or_default() += 1;
        }
    }
    println!("{with_new} of {all}: {counts:?}");
    assert!((0.28..0.42).contains(&(f64::from(with_new) / f64::from(all))), "{with_new} of {all}");
    assert!(Type::ALL.iter().all(|ty| counts.get(ty).is_some_and(|count| *count >= 80)), "{counts:?}");
}

/// Input data as the crate's documentation specifies: floats from 0 to 1, integers of any value.
fn sample(decl: &ir::InputDecl, region: &Region, random: &mut Xoshiro256PlusPlus) -> Buffer {
    let mut value = || match decl.ty {
        ty if ty.is_float() => Value::rounded(ty, f64::from(random.next_u32() >> 8) / 16_777_216.0).unwrap(),
        ty => Value::from_bits(ty, random.next_u64()),
    };
    let buffer = dispatch!(decl.ty, T => Buffer::from_fn(region.clone(), |_| value().get::<T>().unwrap()));
    buffer.unwrap().reordered(&decl.storage_order).unwrap()
}

fn evaluate(seed: u64, pipeline: &Pipeline, request: &Realisation) -> Vec<Buffer> {
    let mut noise = Xoshiro256PlusPlus::seed_from_u64(seed);
    let inputs = pipeline.inputs().iter().map(|(id, decl)| {
        let region = request.inputs[id].as_ref().unwrap();
        (decl.name.as_str(), sample(decl, region, &mut noise))
    });
    let inputs: Vec<(&str, Buffer)> = inputs.collect();
    let mut evaluation = Evaluation::new(pipeline);
    for (name, buffer) in &inputs {
        evaluation = evaluation.input(name, buffer);
    }
    for (id, param) in pipeline.params().iter() {
        evaluation = evaluation.param(&param.name, request.params[id].unwrap());
    }
    for (id, region) in pipeline.outputs().iter().zip(&request.outputs) {
        evaluation = evaluation.output(&pipeline.funcs()[*id].name, region.clone().unwrap());
    }
    evaluation.run().unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

/// Every sample of a buffer.
fn values(buffer: &Buffer) -> Vec<f64> {
    let mut points = vec![Vec::new()];
    for range in &buffer.region().0 {
        let extended = |point: Vec<i64>| range.iter().map(move |i| [point.as_slice(), &[i]].concat());
        points = points.into_iter().flat_map(extended).collect();
    }
    points.iter().map(|point| buffer.get(point).unwrap().as_f64()).collect()
}

#[test]
fn outputs_are_neither_flat_nor_infinite() {
    let (mut outputs, mut varied, mut finite) = (0, 0, 0);
    for (seed, random) in pipelines(300, &Options::default()) {
        for buffer in
            evaluate(seed, &random.pipeline, &random.request).iter().filter(|buffer| buffer.len() > 1)
        {
            let values = values(buffer);
            outputs += 1;
            varied += u32::from(values.iter().any(|value| *value != values[0]));
            finite += u32::from(values.iter().all(|value| value.is_finite()));
        }
    }
    println!("{outputs} outputs, {varied} varied, {finite} finite");
    assert!(f64::from(varied) >= 0.75 * f64::from(outputs), "only {varied} of {outputs} outputs vary");
    assert!(f64::from(finite) >= 0.95 * f64::from(outputs), "only {finite} of {outputs} outputs are finite");
}

/// The pipeline with a constant in place of undefined starts: 1 or `true` if `one` is set,
/// otherwise 0 or `false`.
fn with_starts(pipeline: &Pipeline, one: bool) -> Pipeline {
    let mut file: serde_json::Value = serde_json::from_str(&pipeline.to_json()).unwrap();
    let mut nodes = file["exprs"].as_array().unwrap().clone();
    for func in file["funcs"].as_array_mut().unwrap() {
        let types: Vec<Type> = serde_json::from_value(func["types"].clone()).unwrap();
        let values = func["stages"][0]["values"].as_array_mut().unwrap();
        if !values.is_empty() {
            continue;
        }
        for ty in types {
            let value = if one { Value::one(ty) } else { Value::zero(ty) };
            let node = json!({"kind": {"op": {"const": value}}, "type": ty});
            let known = nodes.iter().position(|other| *other == node);
            values.push(known.unwrap_or(nodes.len()).into());
            if known.is_none() {
                nodes.push(node);
            }
        }
    }
    file["exprs"] = nodes.into();
    Pipeline::from_json(&file.to_string()).unwrap()
}

#[test]
fn nothing_is_read_before_it_has_a_value() {
    let mut undefined = 0;
    for (seed, random) in pipelines(1000, &Options::default()) {
        let starts = random.pipeline.funcs().values().map(|func| &func.stages[0]);
        if starts.into_iter().all(|start| !start.values.is_empty()) {
            continue;
        }
        undefined += 1;
        let outputs = [false, true].map(|one| {
            let outputs = evaluate(seed, &with_starts(&random.pipeline, one), &random.request);
            outputs.iter().map(|buffer| format!("{:?}", buffer.data())).collect::<Vec<_>>()
        });
        assert_eq!(outputs[0], outputs[1], "seed {seed}");
    }
    assert!(undefined > 100, "only {undefined} pipelines have undefined starts");
}
