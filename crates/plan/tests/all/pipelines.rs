//! Small pipelines with every kind of stage.

pub mod at_size;
pub mod names;
pub mod renamed;

use warploom_lang::*;
use warploom_plan::Problem;
use warploom_schedule::Schedule;

/// A pipeline at a size on a device.
pub struct Case {
    pub problem: Problem,
}

impl Case {
    fn new(name: &str, outputs: impl IntoIterator<Item = Func>, sizes: &[(&str, &[i64])]) -> Case {
        Case { problem: at_size::problem(name, outputs, sizes) }
    }

    /// Parses the lines below the pipeline's name.
    pub fn read(&self, lines: &str) -> Schedule {
        let pipeline = self.problem.pipeline();
        let text = format!("{} {lines}", pipeline.name());
        Schedule::parse(&text, pipeline).unwrap_or_else(|errors| panic!("{errors}"))
    }
}

pub fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.problem.pipeline().name() == name).unwrap()
}

pub fn cases() -> Vec<Case> {
    vec![
        stencils(),
        diamond(),
        pyramid(),
        histogram(),
        extremes(),
        scans(),
        product(),
        doubling(),
        nearest(),
        outputs(),
        lookup(),
        colours(),
        table(),
        flips(),
        sparse(),
    ]
}

/// A chain of stencils behind a boundary condition.
fn stencils() -> Case {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let gray = func("gray", (x, y), edge.at((x, y)) * 0.5 + 0.25);
    let rows = func("rows", (x, y), gray.at((x - 1, y)) + gray.at((x, y)) + gray.at((x + 1, y)));
    let columns = func("columns", (x, y), rows.at((x, y - 1)) + rows.at((x, y)) + rows.at((x, y + 1)));
    let out = func("out", (x, y), columns.at((x, y)) - gray.at((x, y)));
    Case::new("stencils", [out], &[("input", &[70, 45]), ("out", &[70, 45])])
}

/// Products of gradients, summed in windows.
fn diamond() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let dx = func("dx", (x, y), input.at((x + 2, y + 1)) - input.at((x, y + 1)));
    let dy = func("dy", (x, y), input.at((x + 1, y + 2)) - input.at((x + 1, y)));
    let window = |name: &str, f: &dyn Fn(Expr, Expr) -> Expr| {
        let terms = (0..9).map(|i| f(x + i % 3, y + i / 3));
        func(name, (x, y), terms.reduce(|a, b| a + b).unwrap())
    };
    let xx = window("xx", &|x, y| dx.at((&x, &y)) * dx.at((&x, &y)));
    let yy = window("yy", &|x, y| dy.at((&x, &y)) * dy.at((&x, &y)));
    let xy = window("xy", &|x, y| dx.at((&x, &y)) * dy.at((&x, &y)));
    let det = func("det", (x, y), xx.at((x, y)) * yy.at((x, y)) - xy.at((x, y)) * xy.at((x, y)));
    let out = func("out", (x, y), det.at((x, y)) - xx.at((x, y)) - yy.at((x, y)));
    Case::new("diamond", [out], &[("input", &[52, 40]), ("out", &[48, 36])])
}

/// A pyramid: downsampling, then upsampling.
fn pyramid() -> Case {
    let (x, y) = vars!(x, y);
    let edge = Input::u16("input", 2).mirror_image();
    let base = func("base", (x, y), edge.at((x, y)).f32());
    let mut level = base.clone();
    for name in ["down1", "down2"] {
        let at = |dx: i32, dy: i32| level.at((2 * x + dx, 2 * y + dy));
        level = func(name, (x, y), (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) * 0.25);
    }
    for name in ["up1", "up0"] {
        level = func(name, (x, y), level.at((x / 2, y / 2)) + level.at(((x + 1) / 2, (y + 1) / 2)));
    }
    let out = func("out", (x, y), base.at((x, y)) - level.at((x, y)) * 0.5);
    Case::new("pyramid", [out], &[("input", &[64, 48]), ("out", &[64, 48])])
}

/// Equalisation by a histogram and its running sum.
fn histogram() -> Case {
    let (x, y, i) = vars!(x, y, i);
    let input = Input::u8("input", 2);
    let r = rdom!(rx: (0, 60), ry: (0, 40));
    let counts = func("counts", i, 0).over(&r, |f| f.add(input.at((r.x, r.y)).i32(), 1));
    let s = rdom!(s: (1, 255));
    let running = func("running", i, counts.at(i)).over(&s, |f| f.set(s.x, f.at(s.x - 1) + counts.at(s.x)));
    let out = func("out", (x, y), running.at(input.at((x, y)).i32()) / 10);
    Case::new("histogram", [out], &[("input", &[60, 40]), ("out", &[60, 40])])
}

/// Sums down the columns, with an undefined initial value, then along the rows of the result.
fn scans() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let bright = func("bright", (x, y), input.at((x, y)) * 3.0);
    let r = rdom!(ry: (1, 31));
    let down = func("down", (x, y), undef(Type::F32))
        .update(|f| f.set((x, 0), bright.at((x, 0))))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x - 1)) + bright.at((x, r.x))));
    let r = rdom!(rx: (1, 47));
    let across = func("across", (x, y), down.at((x, y)))
        .over(&r, |f| f.set((r.x, y), f.at((r.x - 1, y)) * 0.5 + down.at((r.x, y))));
    let out = func("out", (x, y), across.at((x, y)) + bright.at((x, y)));
    Case::new("scans", [out], &[("input", &[48, 32]), ("out", &[48, 32])])
}

/// The brightest pixel of each row, and the bits of all its pixels.
fn extremes() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 2);
    let r = rdom!(r: (0, 40));
    let pixel = input.at((r.x, y)).i32();
    let rows = func("rows", y, 0)
        .over(&r, |f| f.set(y, max(f.at(y), &pixel)))
        .over(&r, |f| f.set(y, &pixel | f.at(y)));
    let out = func("out", (x, y), rows.at(y) + x);
    Case::new("extremes", [out], &[("input", &[40, 24]), ("out", &[40, 24])])
}

/// A product of three matrices.
fn product() -> Case {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let gain = func("gain", (x, y), (x + 2 * y).f32() * b.at((x, y)));
    let r = rdom!(r: (0, 24));
    let first = func("first", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((x, r.x)) * gain.at((r.x, y))));
    let r = rdom!(k: (0, 12), h: (0, 2));
    let second = func("second", (x, y), 0.0)
        .over(&r, |f| f.add((x, y), first.at((x, r.x + 12 * r.y)) * b.at((r.x + 12 * r.y, y))));
    let out = func("out", (x, y), second.at((x, y)) + 1.0);
    Case::new("product", [out], &[("A", &[24, 24]), ("B", &[24, 24]), ("out", &[24, 24])])
}

/// Maxima over twice as many rows per step.
fn doubling() -> Case {
    let (x, y, t) = vars!(x, y, t);
    let edge = Input::f32("input", 2).repeat_edge();
    let r = rdom!(ry: (0, 32), rt: (1, 3));
    let log = func("log", (x, y, t), edge.at((x, y))).over(&r, |f| {
        let lower = f.at((x, r.x + clamp(1 << (r.y - 1), 0, 4), r.y - 1));
        f.set((x, r.x, r.y), max(f.at((x, r.x, r.y - 1)), lower))
    });
    let steps = func("steps", x, clamp(x / 8, 0, 3));
    let out = func("out", (x, y), log.at((x, y, clamp(steps.at(x), 0, 3))));
    Case::new("doubling", [out], &[("input", &[40, 32]), ("out", &[40, 32])])
}

/// The best of several shifts, by the sum of differences in a window.
fn nearest() -> Case {
    let (x, y, d) = vars!(x, y, d);
    let (left, right) = (Input::u8("left", 2), Input::u8("right", 2));
    let cost = func("cost", (x, y, d), absd(left.at((x, y)), right.at((x + d, y))).f32());
    let w = rdom!(wx: (0, 3), wy: (0, 3));
    let window = func("window", (x, y, d), sum(&w, cost.at((x + w.x, y + w.y, d))));
    let r = rdom!(rd: (0, 6));
    let best = argmin(&r, window.at((x, y, r.x)));
    let out = func("out", (x, y), best.at[0].f32() + best.value * 0.01);
    Case::new("nearest", [out], &[("left", &[36, 24]), ("right", &[42, 24]), ("out", &[34, 22])])
}

/// Several outputs, one of which another reads.
fn outputs() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let common = func("common", (x, y), input.at((x, y)) + input.at((x + 1, y)));
    let pair = func("pair", (x, y), (common.at((x, y)) * 2.0, (x + y) * 3));
    let first = func("first", (x, y), pair.get(0, (x, y)) + pair.get(0, (x, y + 1)));
    let total = rdom!(r: (0, 16));
    let second = func("second", y, sum(&total, first.at((total.x, y)) + common.at((total.x, y))));
    Case::new("outputs", [first, second], &[("input", &[41, 31]), ("first", &[40, 30]), ("second", &[30])])
}

/// Values looked up at indices given by other values.
fn lookup() -> Case {
    let (x, y) = vars!(x, y);
    let (input, flow) = (Input::f32("input", 2), Input::u8("flow", 2));
    let edge = input.repeat_edge();
    let smooth = func("smooth", (x, y), edge.at((x, y)) + edge.at((x + 1, y + 1)));
    let shift = func("shift", (x, y), (flow.at((x, y)) % 8).i32());
    let moved = func("moved", (x, y), smooth.at((x + shift.at((x, y)), y)) * 0.5);
    let out = func("out", (x, y), moved.at((x, y)) + moved.at((x + 2, y)));
    Case::new("lookup", [out], &[("input", &[50, 30]), ("flow", &[52, 30]), ("out", &[50, 30])])
}

/// Three channels, blurred along both axes.
fn colours() -> Case {
    let (x, y, c) = vars!(x, y, c);
    let edge = Input::u8("input", 3).repeat_edge();
    let linear = func("linear", (x, y, c), edge.at((x, y, c)).f32() * edge.at((x, y, c)).f32());
    let rows = func("rows", (x, y, c), linear.at((x - 1, y, c)) + linear.at((x + 1, y, c)));
    let blur = func("blur", (x, y, c), rows.at((x, y - 1, c)) + rows.at((x, y + 1, c)));
    let gray = func("gray", (x, y), blur.at((x, y, 0)) + blur.at((x, y, 1)) + blur.at((x, y, 2)));
    let out = func("out", (x, y, c), linear.at((x, y, c)) / (gray.at((x, y)) + 1.0));
    Case::new("colours", [out], &[("input", &[32, 24, 3]), ("out", &[32, 24, 3])])
}

/// Sums over a window in three reduction variables, written to positions that the variables give.
fn table() -> Case {
    let (x, y, z) = vars!(x, y, z);
    let input = Input::f32("input", 2);
    let scaled = func("scaled", (x, y), input.at((x, y)) * 0.125);
    let r = rdom!(rx: (0, 4), ry: (0, 4), rc: (0, 5));
    let blocks = func("blocks", (x, y, z), 0.0)
        .over(&r, |f| f.add((x, y, r.z), scaled.at((4 * x + r.x, 4 * y + r.y)) * r.z.f32()));
    let low = func("low", (x, y, z), blocks.at((x, y, z)) + blocks.at((x + 1, y, z)));
    let out = func("out", (x, y), low.at((x / 4, y / 4, (x + y) % 5)));
    Case::new("table", [out], &[("input", &[44, 36]), ("out", &[36, 36])])
}

/// Transposed twice, there and back.
fn flips() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let turned = func("turned", (x, y), input.at((y, x)) * 2.0);
    let rows = func("rows", (x, y), turned.at((x, y)) + turned.at((x + 1, y)));
    let back = func("back", (x, y), rows.at((y, x)) - 1.0);
    let out = func("out", (x, y), back.at((x, y)) * back.at((x, y)));
    Case::new("flips", [out], &[("input", &[40, 33]), ("out", &[40, 32])])
}

/// A few values of a table that is far too large to compute in full.
fn sparse() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::u16("input", 1);
    let table = func("table", x, (x * 3 + 1) % 1000);
    let place = func("place", x, input.at(x).i32() * 16);
    let out = func("out", (x, y), table.at(place.at(x)) + y);
    Case::new("sparse", [out], &[("input", &[9]), ("out", &[9, 5])])
}
