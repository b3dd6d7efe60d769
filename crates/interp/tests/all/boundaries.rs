//! Boundary conditions read at data-dependent indices give the values that the conditions define.

use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::*;

use crate::naive::Naive;

const WIDTH: i64 = 5;
const OUTSIDE: f32 = -1.0;

/// Maps any coordinate to the one inside that a condition reads.
type Inside = fn(i64) -> Option<i64>;

type Condition = (&'static str, fn(&Input) -> Func, Inside);

const CONDITIONS: [Condition; 5] = [
    ("repeat_edge", Input::repeat_edge, |x| Some(x.clamp(0, WIDTH - 1))),
    ("repeat_image", Input::repeat_image, |x| Some(x.rem_euclid(WIDTH))),
    ("mirror_image", Input::mirror_image, |x| {
        let m = x.rem_euclid(2 * WIDTH);
        Some(m.min(2 * WIDTH - 1 - m))
    }),
    ("mirror_interior", Input::mirror_interior, |x| {
        let m = x.rem_euclid(2 * WIDTH - 2);
        Some(m.min(2 * WIDTH - 2 - m))
    }),
    ("constant_exterior", |input| input.constant_exterior(OUTSIDE), |x| (0..WIDTH).contains(&x).then_some(x)),
];

#[test]
fn data_decides_where_they_are_read() {
    let x = vars!(x);
    let offsets: Vec<i32> =
        vec![0, 1, -1, 4, 5, -6, 9, -11, 1000, -1001, 1 << 20, -(1 << 20), i32::MAX - 40, 7];
    let samples = [10.0_f32, 11.0, 12.0, 13.0, 14.0];
    let list = |len: usize| Region::of_extents(&[len as i64]);
    let image = Buffer::from_vec(list(samples.len()), samples.to_vec()).unwrap();
    let flow = Buffer::from_vec(list(offsets.len()), offsets.clone()).unwrap();
    for (name, condition, inside) in CONDITIONS {
        let (input, by) = (Input::f32("image", 1), Input::new("flow", Type::I32, 1));
        let out = func("out", x, condition(&input).at(x + by.at(x)));
        let pipeline = Pipeline::new("p", [out]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let region = list(offsets.len());
        let run = Evaluation::new(&pipeline)
            .input("image", &image)
            .input("flow", &flow)
            .output("out", region.clone())
            .run()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let wanted = offsets
            .iter()
            .zip(0..)
            .map(|(by, x)| inside(x + i64::from(*by)).map_or(OUTSIDE, |at| samples[at as usize]));
        let wanted: Vec<f32> = wanted.collect();
        assert_eq!(run[0].as_slice::<f32>().unwrap(), wanted, "{name}");
        let inputs = pipeline.inputs().values().map(|decl| if decl.name == "image" { &image } else { &flow });
        let naive =
            Naive::new(&pipeline, inputs.collect(), Vec::new()).values(pipeline.outputs()[0], &region);
        let naive: Vec<Value> = naive.into_iter().map(|values| values[0]).collect();
        assert_eq!(naive, wanted.into_iter().map(Value::from).collect::<Vec<_>>(), "{name}");
    }
}

/// Indices of all kinds that have no useful bounds, or none for some values of the Params `a`, `b` and `c`,
/// which have no range.
fn endless(x: Var, flow: &Input) -> Vec<(&'static str, Expr)> {
    let params = ["a", "b", "c"].map(Param::f32);
    let [a, b, c] = &params;
    let count = Param::i32("n");
    let linear = |x: Expr| x.f32() * a + b;
    let line = func("line", x, linear(x.expr()));
    let over = func("over", x, linear(x.expr()) / (x.f32() * c + 1.0));
    let twice = func("twice", x, line.at(x * 2) * 2.0 + flow.at(x).f32());
    let pair = func("pair", x, (x * 3 - 7, linear(x.expr())));
    let noise = func("noise", x, random_f32(3, [x]));
    let steps = [i32::MIN, -9, 3, 1 << 30];
    vec![
        ("a line", linear(x.expr()).i32()),
        ("a Func with a line", line.at(x).i32()),
        ("a quotient", (linear(x.expr()) / (x.f32() * c + 1.0)).i32()),
        ("a Func with a quotient", over.at(x).i32()),
        ("a Func of a Func", twice.at(x + 1).i32()),
        ("integers of a Func", pair.get(0, x)),
        ("one of two values", pair.get(1, x).i32()),
        ("a factor without a range", (noise.at(x) * a).i32() + x),
        ("a root", (1.0 / (x.f32() - 3.0)).i32()),
        ("hashed", random_u32(1, [x]).i32()),
        ("of 16 bits", (x.f16() * a.expr().f16()).i32()),
        ("of 64 bits", x.i64() * 1_000_000_007_i64 * &count.i64()),
        ("from doubles", (x.f64() * a.expr().f64()).i32()),
        ("unsigned", (flow.at(x).u32() >> 1u32).i32() - x),
        ("of a table", table("steps", steps).at(clamp(x, 0, 3)) / 3),
        ("loaded and scaled", x + flow.at(x) * &count),
        ("a shift", x.expr() << 20),
    ]
}

#[test]
fn any_index_is_taken() {
    let x = vars!(x);
    let offsets: Vec<i32> = vec![0, 1, -1, 4, 5, -6, 9, -11, 1000, -1001, 1 << 20, -(1 << 20), i32::MAX, 7];
    let samples = [10.0_f32, 11.0, 12.0, 13.0, 14.0];
    let list = |len: usize| Region::of_extents(&[len as i64]);
    let image = Buffer::from_vec(list(samples.len()), samples.to_vec()).unwrap();
    let flow = Buffer::from_vec(list(offsets.len()), offsets.clone()).unwrap();
    let params = [[0.0, 0.0, 0.0], [1.0, -2.5, -0.25], [-0.5, 3.0, 0.125], [1e30, f32::NAN, 2.0]];
    for ((a, b, c), n) in params.map(|[a, b, c]| (a, b, c)).into_iter().zip([1, -3, 40_000, i32::MAX]) {
        let run = |pipeline: &Pipeline| {
            let mut run =
                Evaluation::new(pipeline).output(&pipeline.output_names()[0], list(offsets.len() - 1));
            for (name, buffer) in [("image", &image), ("flow", &flow)] {
                if pipeline.input_named(name).is_some() {
                    run = run.input(name, buffer);
                }
            }
            for (name, value) in [("a", a.into()), ("b", b.into()), ("c", Value::from(c)), ("n", n.into())] {
                if pipeline.param_named(name).is_some() {
                    run = run.param(name, value);
                }
            }
            run.run().map(|outputs| outputs.into_iter().next().unwrap())
        };
        let by = Input::new("flow", Type::I32, 1);
        for (kind, index) in endless(x, &by) {
            let index = index.saturating_cast(Type::I32);
            let places = run(&Pipeline::new("places", [func("place", x, &index)]).unwrap()).unwrap();
            let places = places.as_slice::<i32>().unwrap();
            for (name, condition, inside) in CONDITIONS {
                let out = func("out", x, condition(&Input::f32("image", 1)).at(&index));
                let pipeline = Pipeline::new("p", [out]).unwrap();
                let out = run(&pipeline).unwrap_or_else(|error| panic!("{kind}, {name}: {error}"));
                let wanted = places
                    .iter()
                    .map(|place| inside(i64::from(*place)).map_or(OUTSIDE, |at| samples[at as usize]));
                assert_eq!(
                    out.as_slice::<f32>().unwrap(),
                    wanted.collect::<Vec<_>>(),
                    "{kind}, {name}, a = {a}"
                );
            }
        }
    }
}

/// A boundary condition of a Func with several values has as many, near its points and far from them.
#[test]
fn funcs_with_several_values_have_boundary_conditions() {
    let x = vars!(x);
    let region = Region::of_extents(&[12]);
    let pair = func("pair", x, (x * x, x.f32() + 0.5));
    let conditions: [(Func, Inside); 5] = [
        (pair.repeat_edge_in(limits([(0, 5)])), CONDITIONS[0].2),
        (pair.repeat_image_in(limits([(0, 5)])), CONDITIONS[1].2),
        (pair.mirror_image_in(limits([(0, 5)])), CONDITIONS[2].2),
        (pair.mirror_interior_in(limits([(0, 5)])), CONDITIONS[3].2),
        (pair.constant_exterior_in(limits([(0, 5)]), (-1, -1.0)), CONDITIONS[4].2),
    ];
    for (condition, inside) in conditions {
        for factor in [1, 1 << 20] {
            let at = (x - 4) * factor;
            let whole = func("whole", x, condition.get(0, &at));
            let part = func("part", x, condition.get(1, &at));
            let pipeline = Pipeline::new("p", [whole, part]).unwrap();
            let run =
                Evaluation::new(&pipeline).output("whole", region.clone()).output("part", region.clone());
            let run = run.run().unwrap();
            let at = (0..12).map(|x| inside((x - 4) * i64::from(factor)));
            let wanted: Vec<(i32, f32)> =
                at.map(|at| at.map_or((-1, -1.0), |at| ((at * at) as i32, at as f32 + 0.5))).collect();
            let (whole, part) = (run[0].as_slice::<i32>().unwrap(), run[1].as_slice::<f32>().unwrap());
            assert_eq!(whole.iter().copied().zip(part.iter().copied()).collect::<Vec<_>>(), wanted);
        }
    }
}
