//! Every operation and conversion of the types of 16 and 64 bits, against direct Rust and an oracle that
//! rounds by hand.

mod casts;
mod floats;
mod integers;
mod oracle;
mod perturbed;

use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::*;

/// The values of an expression of inputs, with one value of each input per point.
fn values(inputs: &[&[Value]], make: impl Fn(&[Expr]) -> Expr) -> Vec<Value> {
    run(inputs, make, None)
}

fn run(inputs: &[&[Value]], make: impl Fn(&[Expr]) -> Expr, perturbed: Option<u64>) -> Vec<Value> {
    let x = vars!(x);
    let region = Region::of_extents(&[inputs[0].len() as i64]);
    let buffer = |values: &[Value]| {
        let mut buffer = Buffer::zeros(values[0].ty(), region.clone()).unwrap();
        for (at, value) in values.iter().enumerate() {
            buffer.set(&[at as i64], *value).unwrap();
        }
        buffer
    };
    let buffers: Vec<Buffer> = inputs.iter().map(|values| buffer(values)).collect();
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("in{i}")).collect();
    let loads = names.iter().zip(&buffers).map(|(name, buffer)| Input::new(name, buffer.ty(), 1).at(x));
    let loads: Vec<Expr> = loads.collect();
    let pipeline = Pipeline::new("p", [func("out", x, make(&loads))]).unwrap();
    let mut evaluation = Evaluation::new(&pipeline).output("out", region.clone());
    for (name, buffer) in names.iter().zip(&buffers) {
        evaluation = match pipeline.input_named(name) {
            Some(_) => evaluation.input(name, buffer),
            None => evaluation,
        };
    }
    if let Some(seed) = perturbed {
        evaluation = evaluation.perturbed(seed);
    }
    let output = evaluation.run().unwrap().swap_remove(0);
    (0..output.len() as i64).map(|at| output.get(&[at]).unwrap()).collect()
}

/// All pairs of some values, as two lists.
fn pairs(of: &[Value]) -> [Vec<Value>; 2] {
    let all = || of.iter().flat_map(|a| of.iter().map(move |b| [*a, *b]));
    [0, 1].map(|side| all().map(|pair| pair[side]).collect())
}

/// Whether two values have the same bits, or both are NaN.
fn same(a: Value, b: Value) -> bool {
    a == b || (a.ty() == b.ty() && a.as_f64().is_nan() && b.as_f64().is_nan())
}

/// Values at the ends of a type, around powers of 2, and where conversions round.
fn edges(ty: Type) -> Vec<Value> {
    let powers = [7, 8, 11, 12, 15, 16, 24, 25, 31, 32, 53, 54, 62, 63, 64];
    let near = powers.into_iter().flat_map(|power| [-1, 0, 1, 3].map(|by| (1_i128 << power) + by));
    let near: Vec<i128> = near.flat_map(|int| [int, -int]).chain(-5..=5).collect();
    if ty.is_float() {
        let special =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 1e-3];
        let ends = [
            65504.0,
            65519.9,
            65520.0,
            3.38e38,
            3.4e38,
            f64::MAX,
            6e-8,
            2.9e-8,
            1e-40,
            1e-45,
            5e-324,
            1e-310,
        ];
        let ties = [1.0 + 2_f64.powi(-11), 1.0 + 2_f64.powi(-8), 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40)];
        let all = special.into_iter().chain(ends).chain(ties).chain(near.iter().map(|int| *int as f64));
        return all.map(|number| Value::rounded(ty, number).unwrap()).collect();
    }
    let ints = near.iter().filter_map(|int| match ty {
        Type::U64 => u64::try_from(*int).ok().map(Value::from),
        _ => i64::try_from(*int).ok().and_then(|int| Value::from_int(ty, int)),
    });
    ints.chain([Value::smallest(ty), Value::largest(ty)]).collect()
}
