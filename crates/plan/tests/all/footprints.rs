//! Compares footprints with every point that is really touched, per block and per thread.

use proptest::prelude::*;
use warploom_lang::ir::NodeKind;
use warploom_lang::*;
use warploom_plan::*;
use warploom_plan::{KernelId, NestId};
use warploom_schedule::*;
use warploom_schedule::{LoopKind, Rational};
use warploom_target::Device;

const X: Var = Var::literal("x");
const EXTENT: i64 = 41;
const TERMS: i64 = 10;

// ---- Random indices.

/// An index expression over `x` and, inside a reduction, `r`.
#[derive(Clone, Debug)]
enum Index {
    X,
    R,
    Add(Box<Index>, Box<Index>),
    Offset(Box<Index>, i32),
    Scale(Box<Index>, i32),
    Div(Box<Index>, i32),
    Mod(Box<Index>, i32),
    Min(Box<Index>, i32),
    Max(Box<Index>, i32),
    Clamp(Box<Index>, i32, i32),
    Select(Box<Index>, Box<Index>),
    Float(Box<Index>),
}

fn index() -> impl Strategy<Value = Index> {
    let leaf = prop_oneof![3 => Just(Index::X), 1 => Just(Index::R)];
    leaf.prop_recursive(4, 8, 2, |inner| {
        let one = || inner.clone().prop_map(Box::new);
        prop_oneof![
            2 => (one(), one()).prop_map(|(a, b)| Index::Add(a, b)),
            4 => (one(), -5..6).prop_map(|(a, c)| Index::Offset(a, c)),
            3 => (one(), -2..4).prop_map(|(a, c)| Index::Scale(a, c)),
            3 => (one(), 1..5).prop_map(|(a, c)| Index::Div(a, c)),
            1 => (one(), 1..6).prop_map(|(a, c)| Index::Mod(a, c)),
            1 => (one(), -9..40).prop_map(|(a, c)| Index::Min(a, c)),
            1 => (one(), -9..40).prop_map(|(a, c)| Index::Max(a, c)),
            2 => (one(), 0..4, 4..30).prop_map(|(a, low, high)| Index::Clamp(a, low, high)),
            1 => (one(), one()).prop_map(|(a, b)| Index::Select(a, b)),
            1 => one().prop_map(Index::Float),
        ]
    })
}

impl Index {
    fn expr(&self, r: &Expr) -> Expr {
        let of = |index: &Index| index.expr(r);
        match self {
            Index::X => X.expr(),
            Index::R => r.clone(),
            Index::Add(a, b) => of(a) + of(b),
            Index::Offset(a, c) => of(a) + *c,
            Index::Scale(a, c) => of(a) * *c,
            Index::Div(a, c) => of(a) / *c,
            Index::Mod(a, c) => of(a) % *c,
            Index::Min(a, c) => min(of(a), *c),
            Index::Max(a, c) => max(of(a), *c),
            Index::Clamp(a, low, high) => clamp(of(a), *low, *high),
            Index::Select(a, b) => select((X % 3).eq(1), of(a), of(b)),
            Index::Float(a) => floor(of(a).f32() * 0.5 + 0.25).i32(),
        }
    }
}

/// `out` sums, over r, reads of g at two indices and of f at one; g reads f at two indices.
fn pipeline(outer: &[Index; 3], inner: &[Index; 2]) -> Pipeline {
    let f = func("f", X, X * 3);
    let zero = Expr::from(0);
    let [j, k] = [0, 1].map(|i| f.at(inner[i].expr(&zero)));
    let g = func("g", X, j + k);
    let r = rdom!(r: (0, TERMS as i32));
    let [a, b, c] = [0, 1, 2].map(|i| outer[i].expr(&r.x.expr()));
    let out = func("out", X, 0).over(&r, |it| it.add(X, g.at(a) + g.at(b) + f.at(c)));
    Pipeline::new("p", [out]).unwrap()
}

fn problem(pipeline: &Pipeline, output: Region) -> Option<Problem> {
    let request = Realisation::new(pipeline).output("out", output);
    Problem::new(pipeline, &request, &Device::preset("h200").unwrap()).ok()
}

// ---- The points that are touched.

fn evaluate(pipeline: &Pipeline, id: ExprId, x: i64, r: i64) -> Value {
    let node = &pipeline.exprs()[id];
    match node.kind {
        NodeKind::Var(_) => Value::from(x as i32),
        NodeKind::RVar(_) => Value::from(r as i32),
        NodeKind::Op(op) => {
            let args: Vec<Value> = node.args.iter().map(|arg| evaluate(pipeline, *arg, x, r)).collect();
            op.eval(&args)
        }
        _ => panic!("indices are computed from variables"),
    }
}

/// The points of `callee` that a stage reads at one of its own points.
fn accesses(pipeline: &Pipeline, caller: (&str, usize), callee: &str, x: i64, r: i64) -> Vec<i64> {
    let stage = &pipeline.funcs()[pipeline.func_named(caller.0).unwrap()].stages[caller.1];
    let callee = pipeline.func_named(callee).unwrap();
    let exprs = pipeline.exprs();
    let nodes = exprs.reachable(stage.roots()).into_iter().map(|id| &exprs[id]);
    let calls = nodes.filter(|node| matches!(node.kind, NodeKind::Call(func, _) if func == callee));
    calls.map(|node| evaluate(pipeline, node.args[0], x, r).as_int().unwrap()).collect()
}

/// The first and last of some points.
fn hull(points: &[i64]) -> Option<(i64, i64)> {
    Some((*points.iter().min()?, *points.iter().max()?))
}

/// The first and last point of a footprint at one block and one iteration. The first one may be before `min`
/// without a clamp; no stage computes points there.
fn placed(plan: &Plan, reach: &Reach, place: (i64, i64)) -> (i64, i64) {
    if reach.terms.is_empty() {
        return (reach.min, reach.min + reach.extent() - 1);
    }
    let mut sum = Rational::ZERO;
    for (symbol, step) in &reach.terms {
        let value = match symbol {
            Symbol::Block(LoopKind::Pure(0)) => place.0,
            Symbol::Loop(id) if id.index() == 0 => place.1,
            Symbol::Lowest(number) => {
                let parts = &plan.lowest[*number];
                let starts = parts.iter().map(|part| {
                    let (start, _) = placed(plan, part, place);
                    if parts.len() > 1 { start.clamp(part.min, part.max) } else { start }
                });
                starts.min().unwrap()
            }
            other => panic!("{other:?} is not fixed there"),
        };
        sum = sum.add(step.mul(Rational::integer(value)).unwrap()).unwrap();
    }
    let (low, high) = (sum.add(reach.low).unwrap(), sum.add(reach.high).unwrap());
    let low = -(-low.numerator()).div_euclid(low.denominator());
    let high = high.numerator().div_euclid(high.denominator());
    let (first, last) = reach.clamp.unwrap_or((warploom_plan::Limit::None, warploom_plan::Limit::None));
    let (first, last) = (first.value().unwrap_or(i64::MIN), last.value().unwrap_or(i64::MAX));
    let low = low.clamp(first, last);
    let low = if reach.clamp.is_some() || reach.has_fractions() { low.max(reach.min) } else { low };
    let high = if reach.moved && !reach.has_fractions() {
        low + reach.extent() - 1
    } else {
        high.clamp(first, last)
    };
    (low, high.min(reach.max))
}

/// Checks that a footprint includes some points and is no larger than its extent. Returns the points that a block
/// computes: the full extent from the first point on, inside the Func.
fn holds(plan: &Plan, reach: &Reach, points: &[i64], place: (i64, i64)) -> Result<(i64, i64), TestCaseError> {
    let Some((first, last)) = hull(points) else { return Ok((0, -1)) };
    prop_assert!(last - first < reach.extent(), "{first}..={last} at {place:?} is not in {reach:?}");
    prop_assert!(
        reach.min <= first && last <= reach.max,
        "{first}..={last} at {place:?} is not in {reach:?}"
    );
    let (low, high) = placed(plan, reach, place);
    prop_assert!(
        low <= first && last <= high,
        "{first}..={last} at {place:?} is not in {low}..={high} of {reach:?}"
    );
    prop_assert!(high - low < reach.extent(), "{low}..={high} at {place:?} is wider than {reach:?}");
    // A box with fractions ends at its rounded last point.
    let end = if reach.has_fractions() { high } else { (low + reach.extent() - 1).min(reach.max) };
    prop_assert!(last <= end, "{first}..={last} at {place:?} is not in {low}..={end} of {reach:?}");
    Ok((low.max(reach.min), end))
}

/// The values of x in a block and of r in an iteration.
fn block_points(block: i64, tile: i64) -> std::ops::Range<i64> {
    let start = block * tile;
    start - 3..(start + tile).min(EXTENT) - 3
}

fn terms(iteration: i64, step: i64) -> std::ops::Range<i64> {
    iteration * step..(iteration * step + step).min(TERMS)
}

fn check_blocks(pipeline: &Pipeline, tile: i64, step: i64, f_outside: bool) -> Result<(), TestCaseError> {
    let Some(problem) = problem(pipeline, Region(vec![Range::new(-3, EXTENT)])) else { return Ok(()) };
    let head = format!("p\n  kernel out.0 flat\n  kernel out.1 block x {tile}\n");
    let text = match f_outside {
        true => format!(
            "{head}    f flat shared\n    over out.1.r {step}\n      g flat shared\n      out.1 threads x 4\n"
        ),
        false => format!(
            "{head}    over out.1.r {step}\n      f flat shared\n      g flat shared\n      out.1 threads x 4\n"
        ),
    };
    let schedule = Schedule::parse(&text, pipeline).unwrap();
    let plan = problem.plan(&schedule);
    let reach =
        |position: usize| &plan.nests[NestId::new(position)].footprint.as_ref().unwrap().points.dims[0];
    let (f, g) = (reach(1), reach(2));
    for block in 0..EXTENT.div_euclid(tile) + i64::from(EXTENT % tile != 0) {
        let mut f_points = Vec::new();
        for iteration in 0..TERMS.div_euclid(step) + i64::from(TERMS % step != 0) {
            let points = block_points(block, tile).flat_map(|x| terms(iteration, step).map(move |r| (x, r)));
            let points: Vec<(i64, i64)> = points.collect();
            let read = |callee: &str| -> Vec<i64> {
                points.iter().flat_map(|(x, r)| accesses(pipeline, ("out", 1), callee, *x, *r)).collect()
            };
            let (first, last) = holds(&plan, g, &read("g"), (block, iteration))?;
            let through = (first..=last).flat_map(|x| accesses(pipeline, ("g", 0), "f", x, 0));
            f_points.extend(read("f").into_iter().chain(through));
            if !f_outside {
                holds(&plan, f, &f_points, (block, iteration))?;
                f_points.clear();
            }
        }
        if f_outside {
            holds(&plan, f, &f_points, (block, 0))?;
        }
    }
    Ok(())
}

fn check_threads(pipeline: &Pipeline, tile: i64, serial: i64) -> Result<(), TestCaseError> {
    let Some(problem) = problem(pipeline, Region(vec![Range::new(-3, EXTENT)])) else { return Ok(()) };
    let text = format!(
        "p inline f\n  kernel out.0 flat\n  kernel out.1 block x {tile} threads x 2 serial x {serial}\n    g registers\n"
    );
    let schedule = Schedule::parse(&text, pipeline).unwrap();
    let plan = problem.plan(&schedule);
    let g = pipeline.func_named("g").unwrap();
    let reach = &plan.nests[NestId::new(1)].footprint.as_ref().unwrap().registers[&g].thread.points.dims[0];
    for block in 0..EXTENT.div_euclid(tile) + i64::from(EXTENT % tile != 0) {
        let all: Vec<i64> = block_points(block, tile).collect();
        for share in all.chunks(serial as usize) {
            let points = share.iter().flat_map(|x| (0..TERMS).map(move |r| (*x, r)));
            let read: Vec<i64> =
                points.flat_map(|(x, r)| accesses(pipeline, ("out", 1), "g", x, r)).collect();
            let Some((first, last)) = hull(&read) else { continue };
            prop_assert!(last - first < reach.extent(), "{first}..={last} in {block} is not in {reach:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn blocks_hold_what_they_read(
        outer in [index(), index(), index()],
        inner in [index(), index()],
        tile in 1i64..20,
        step in 1i64..12,
        f_outside in any::<bool>(),
    ) {
        let pipeline = pipeline(&outer, &inner);
        check_blocks(&pipeline, tile, step, f_outside)?;
        check_threads(&pipeline, tile, step)?;
    }
}

/// The last part of a reduction is cut off, so the box that holds its reads of all iterations starts before the
/// Func does. It is read through another Func with such a box, and directly at a point between both starts.
#[test]
fn boxes_start_before_their_func() {
    let x = || Box::new(Index::X);
    let behind = Index::Add(x(), Box::new(Index::Scale(Box::new(Index::R), -1)));
    for offset in [0, -8, -9, -10, -11, -12] {
        let outer = [Index::X, behind.clone(), Index::Offset(x(), offset)];
        let pipeline = pipeline(&outer, &[Index::X, Index::X]);
        for (tile, outside) in [1, 3].into_iter().flat_map(|tile| [(tile, false), (tile, true)]) {
            let held = check_blocks(&pipeline, tile, 3, outside);
            held.unwrap_or_else(|error| panic!("f at x{offset} in tiles of {tile}: {error}"));
        }
    }
}

/// A Func is read directly, and through another Func at a clamped index. Blocks at the border compute
/// points of the other Func beyond those that the clamp leaves.
#[test]
fn clamped_readers_compute_whole_boxes() {
    let x = || Box::new(Index::X);
    let clamps = [
        Index::Max(x(), 0),
        Index::Max(x(), 4),
        Index::Min(x(), 31),
        Index::Clamp(x(), 2, 29),
        Index::Scale(Box::new(Index::Max(x(), 1)), -1),
        Index::Scale(Box::new(Index::Clamp(x(), 3, 20)), -2),
        Index::Div(Box::new(Index::Max(x(), 1)), 2),
    ];
    let inner = [
        Index::X,
        Index::Offset(x(), 1),
        Index::Scale(x(), -1),
        Index::Scale(x(), 2),
        Index::Div(x(), 2),
        Index::Max(x(), 3),
    ];
    for clamped in &clamps {
        for (first, second) in inner.iter().flat_map(|first| inner.iter().map(move |second| (first, second)))
        {
            let halves = [2, 3].map(|divisor| Index::Div(Box::new(clamped.clone()), divisor));
            for direct in inner.iter().chain(&halves) {
                let outer = [clamped.clone(), clamped.clone(), direct.clone()];
                let pipeline = pipeline(&outer, &[first.clone(), second.clone()]);
                for (tile, outside) in [2, 3, 16].into_iter().flat_map(|tile| [(tile, false), (tile, true)]) {
                    let held = check_blocks(&pipeline, tile, 3, outside);
                    held.unwrap_or_else(|error| {
                        panic!("{outer:?}, {first:?}, {second:?} in tiles of {tile}: {error}")
                    });
                }
            }
        }
    }
}

// ---- Exact extents.

/// The extent that a Func `f` in `read` gets in blocks of 16, and whether it is bounded.
fn extent(read: impl Fn(&Func) -> Expr) -> (i64, bool) {
    let f = func("f", X, X * 3);
    let out = func("out", X, read(&f));
    let pipeline = Pipeline::new("p", [out]).unwrap();
    let problem = problem(&pipeline, Region::of_extents(&[1000])).unwrap();
    let schedule = ScheduleBuilder::new(&pipeline)
        .kernel("out", "x 16", |block| block.flat("f").flat("out"))
        .build()
        .unwrap();
    let plan = problem.plan(&schedule);
    let points = &plan.kernels[KernelId::new(0)].allocations[0].points;
    (points.extents()[0], points.dims[0].bounded)
}

#[test]
fn extents_are_exact() {
    let x = X;
    let taps = |f: &Func, at: [Expr; 3]| at.map(|i| f.at(i)).into_iter().reduce(|a, b| a + b).unwrap();
    // Stencils, strides, halves.
    assert_eq!(extent(|f| taps(f, [x - 3, x.expr(), x + 2])), (21, true));
    assert_eq!(extent(|f| taps(f, [2 * x - 1, 2 * x, 2 * x + 2])), (34, true));
    assert_eq!(extent(|f| taps(f, [x / 2, x / 2 + 1, (x + 1) / 2])), (9, true));
    assert_eq!(extent(|f| taps(f, [x / 3, x / 3, x / 3])), (6, true));
    // Clamped and unclamped, on either side.
    assert_eq!(extent(|f| taps(f, [clamp(x - 2, 0, 999), clamp(x + 2, 0, 999), x.expr()])), (20, true));
    assert_eq!(extent(|f| taps(f, [max(x - 2, 0), x.expr(), x + 2])), (20, true));
    assert_eq!(
        extent(|f| taps(f, [5 - 2 * max(x - 2, 0), 6 - 2 * max(x, 0), 0 - 2 * max(x, 0)])),
        (40, true)
    );
    // The same for every block.
    assert_eq!(extent(|f| taps(f, [x % 4, x % 4 + 1, 7.into()])), (8, true));
    // Through floats, the start of a block's part is unknown.
    let float = || (x.f32() / 4.0).i32();
    assert_eq!(extent(|f| taps(f, [float(), float() + 1, float()])), (251, false));
    // Diverging readers: f(0) and f(999) from the last block.
    assert_eq!(extent(|f| taps(f, [x.expr(), 2 * x, x.expr()])), (1999, false));
    assert_eq!(extent(|f| taps(f, [x.expr(), 999 - x, x.expr()])), (1000, false));
}
