//! Evaluates a pipeline and its rewritten form on the same data.

use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::rewrite::Rewrite;
use warploom_lang::*;

/// Numbers that repeat after a long time, from -8 to 8 with fractions for floats, over the whole range for
/// integers.
pub fn noise(ty: Type, extents: &[i64]) -> Buffer {
    let mut state = 12345u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let region = Region::of_extents(extents);
    let mut buffer = Buffer::zeros(ty, region.clone()).unwrap();
    for at in points(&region) {
        let value = match ty {
            ty if ty.is_float() => Value::rounded(ty, f64::from(next()) / f64::from(1 << 20) - 8.0).unwrap(),
            Type::I64 | Type::U64 => Value::from_bits(ty, u64::from(next()) << 40 | u64::from(next())),
            ty => Value::from_bits(ty, next().into()),
        };
        buffer.set(&at, value).unwrap();
    }
    buffer
}

fn points(region: &Region) -> Vec<Vec<i64>> {
    let mut points = vec![Vec::new()];
    for range in &region.0 {
        let along = |point: Vec<i64>| {
            (range.min..range.min + range.extent).map(move |at| [point.clone(), vec![at]].concat())
        };
        points = points.into_iter().flat_map(along).collect();
    }
    points
}

/// The pipeline after some rewrites, given as text.
pub fn rewrite(pipeline: &Pipeline, lines: &[&str]) -> Pipeline {
    let mut rewrites = pipeline.rewrites().to_vec();
    for line in lines {
        let rewrite: Rewrite = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(rewrite.to_string(), *line, "the text form of a rewrite is read back");
        rewrites.push(rewrite);
    }
    pipeline.rewritten(&rewrites).unwrap_or_else(|error| panic!("{error}")).into_owned()
}

/// The reason why a rewrite is refused.
pub fn refusal(pipeline: &Pipeline, line: &str) -> String {
    let mut rewrites = pipeline.rewrites().to_vec();
    rewrites.push(line.parse().unwrap_or_else(|error| panic!("{line}: {error}")));
    pipeline.rewritten(&rewrites).map(|pipeline| pipeline.to_string()).unwrap_err().to_string()
}

/// The outputs of a pipeline, each over a box that starts at 0. Params are near the lower end of their
/// ranges.
pub fn run(pipeline: &Pipeline, inputs: &[(&str, &Buffer)], extents: &[i64]) -> Vec<Buffer> {
    let mut evaluation = Evaluation::new(pipeline);
    for (name, buffer) in inputs {
        evaluation = evaluation.input(name, buffer);
    }
    for param in pipeline.params().values() {
        let (low, high) = param.range.unwrap();
        let value = low.as_f64() * 0.75 + high.as_f64() * 0.25;
        evaluation = evaluation.param(&param.name, Value::from_number(param.ty, value).unwrap());
    }
    for output in pipeline.outputs() {
        evaluation = evaluation.output(&pipeline.funcs()[*output].name, Region::of_extents(extents));
    }
    evaluation.run().unwrap_or_else(|error| panic!("{pipeline}{error}"))
}

/// Requires that the rewritten pipeline gives the same bits.
pub fn same(pipeline: &Pipeline, lines: &[&str], inputs: &[(&str, &Buffer)], extents: &[i64]) {
    let changed = rewrite(pipeline, lines);
    assert_eq!(run(pipeline, inputs, extents), run(&changed, inputs, extents), "{lines:?}\n{changed}");
}

/// Requires that the rewritten pipeline gives the same floats, up to a share of `scale`.
pub fn near(pipeline: &Pipeline, lines: &[&str], inputs: &[(&str, &Buffer)], extents: &[i64], scale: f32) {
    let changed = rewrite(pipeline, lines);
    let (one, other) = (run(pipeline, inputs, extents), run(&changed, inputs, extents));
    for (one, other) in one.iter().zip(&other) {
        let pairs = one.as_slice::<f32>().unwrap().iter().zip(other.as_slice::<f32>().unwrap());
        for (one, other) in pairs {
            assert!((one - other).abs() <= scale * 1e-5, "{lines:?}: {one} and {other}\n{changed}");
        }
    }
}
