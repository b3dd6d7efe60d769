//! Evaluates a definition twice, as a pipeline and naively, on made-up inputs.

use std::collections::HashMap;

use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::{Pipeline, Realisation, Region, Type, Value};
use warploom_tensor::Definition;
use warploom_tensor::ast::{Declared, Def, Dim};
use warploom_tensor::types::Scalar;

use super::{Naive, Ranges, Tensor, V, points};

/// A value that differs from point to point: a float around 0, or a small integer.
fn sample(scalar: Scalar, name: &str, point: &[i64]) -> V {
    let mut hash: u32 = name.bytes().fold(17, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    for at in point {
        hash = (hash ^ *at as u32).wrapping_mul(0x9e37_79b1).rotate_left(13);
    }
    hash ^= hash >> 15;
    match scalar.lang() {
        ty if ty.is_float() => V::F(f64::from(hash % 2000) / 1000.0 - 0.99).into_float(ty),
        Type::Bool => V::B(hash.is_multiple_of(2)),
        _ => V::I(i64::from(hash % 3)),
    }
}

/// The parameters as naive tensors; scalars have rank 0.
fn parameters(def: &Def, sizes: &HashMap<String, i64>) -> HashMap<String, Tensor> {
    let of = |dim: &Dim| match dim {
        Dim::Name(name) => sizes[&name.text],
        Dim::Number(number, _) => *number,
    };
    let one = |param: &Declared| {
        let shape: Vec<i64> = param.ty.dims.iter().map(of).collect();
        let name = param.name.text.clone();
        let fixed = sizes.get(&name).map(|number| V::I(*number));
        let tensor = Tensor::from_fn(&shape, param.ty.scalar.lang(), |point| {
            fixed.unwrap_or_else(|| sample(param.ty.scalar, &name, point))
        });
        (name, tensor)
    };
    def.params.iter().map(one).collect()
}

fn value(value: V, ty: Type) -> Value {
    match value {
        V::I(int) => Value::from_int(ty, int).unwrap(),
        V::F(float) => Value::rounded(ty, float).unwrap(),
        V::B(truth) => Value::from(truth),
    }
}

fn buffer(tensor: &Tensor, ty: Type, region: &Region) -> Buffer {
    let mut buffer = Buffer::zeros(ty, region.clone()).unwrap();
    for point in points(&tensor.shape) {
        let at: Vec<i64> = point.iter().rev().copied().collect();
        buffer.set(&at, value(tensor.at(&point), ty)).unwrap();
    }
    buffer
}

fn evaluate(pipeline: &Pipeline, request: &Realisation, tensors: &HashMap<String, Tensor>) -> Vec<Buffer> {
    let own = |name: &str| &tensors[name.strip_suffix("_in").unwrap_or(name)];
    let inputs: Vec<(String, Buffer)> = pipeline
        .inputs()
        .iter()
        .map(|(id, input)| {
            (input.name.clone(), buffer(own(&input.name), input.ty, request.inputs[id].as_ref().unwrap()))
        })
        .collect();
    let mut evaluation = Evaluation::new(pipeline);
    for (name, buffer) in &inputs {
        evaluation = evaluation.input(name, buffer);
    }
    for (id, param) in pipeline.params().iter() {
        let given = value(own(&param.name).at(&[]), param.ty);
        assert!(request.params[id].is_none_or(|value| value == given));
        evaluation = evaluation.param(&param.name, given);
    }
    for (name, region) in pipeline.output_names().iter().zip(&request.outputs) {
        evaluation = evaluation.output(name, region.clone().unwrap());
    }
    evaluation.run().unwrap_or_else(|error| panic!("{error}\n{pipeline}"))
}

/// Compares types, shapes and values of all results. Two values agree if they differ by no more than the tolerance, relative to
/// the larger of 1 and the value, or if neither is finite. A tolerance other than 0 is at least a few roundings of the type.
pub fn compare(
    definition: &Definition,
    sizes: &[(&str, i64)],
    ranges: &[Ranges],
    tolerance: f64,
) -> Result<(), String> {
    let numbers: HashMap<String, i64> = sizes.iter().map(|(name, size)| (name.to_string(), *size)).collect();
    let (pipeline, request) = definition.realise(sizes).unwrap();
    let tensors = parameters(definition.tree(), &numbers);
    let outputs = evaluate(&pipeline, &request, &tensors);
    let mut naive = Naive { tensors, sizes: numbers };
    naive.run(definition.tree(), ranges);
    for (name, output) in pipeline.output_names().iter().zip(&outputs) {
        let truth = &naive.tensors[name];
        let mut extents = truth.shape.clone();
        extents.reverse();
        assert_eq!(output.region(), &Region::of_extents(&extents), "shape of {name}");
        assert_eq!(output.ty(), truth.ty(), "type of {name} in {}", definition.to_text());
        let tolerance = match truth.ty() {
            Type::F16 if tolerance > 0.0 => tolerance.max(4e-3),
            Type::BF16 if tolerance > 0.0 => tolerance.max(3e-2),
            _ => tolerance,
        };
        for point in points(&truth.shape) {
            let at: Vec<i64> = point.iter().rev().copied().collect();
            let (got, want) = (output.get(&at).unwrap().as_f64(), truth.at(&point).number());
            let close = (got - want).abs() <= tolerance * want.abs().max(1.0);
            if !close && (got.is_finite() || want.is_finite()) {
                let text = definition.to_text();
                return Err(format!("{name}{point:?} is {got}, not {want}\n{text}\n{pipeline}"));
            }
        }
    }
    Ok(())
}
