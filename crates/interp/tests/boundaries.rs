//! Boundary conditions read at data-dependent indices give the values that the conditions define.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod naive;

use naive::Naive;
use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::*;

const WIDTH: i64 = 5;
const OUTSIDE: f32 = -1.0;

/// A condition, and the function that maps any coordinate to the one inside that it reads.
type Condition = (&'static str, fn(&Input) -> Func, fn(i64) -> Option<i64>);

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
