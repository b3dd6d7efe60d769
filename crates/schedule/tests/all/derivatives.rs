//! Slopes of indices: each rule, composition, and a check against the evaluated index.

use proptest::prelude::*;
use warploom_lang::ir::{Exprs, NodeKind};
use warploom_lang::*;
use warploom_schedule::*;

fn ratio(numerator: i64, denominator: i64) -> Slope {
    Rational::new(numerator, denominator)
}

fn int(value: i64) -> Slope {
    Some(Rational::integer(value))
}

/// The index in dimension 0 of the access to `table` in a stage over x and y.
fn index(at: impl Fn(Expr, Expr) -> Expr) -> Index {
    let (x, y) = vars!(x, y);
    let table = Input::f32("table", 1);
    let reader = func("reader", (x, y), table.at(at(x.expr(), y.expr())));
    let pipeline = Pipeline::new("p", [reader]).unwrap();
    let dag = Dag::new(&pipeline);
    let table = Target::Input(pipeline.input_named("table").unwrap());
    let stage = dag.stages().values().next().unwrap();
    stage.accesses.iter().find(|access| access.target == table).unwrap().map.rows()[0].clone()
}

fn slopes(at: impl Fn(Expr, Expr) -> Expr) -> Vec<Slope> {
    index(at).slopes.to_vec()
}

#[test]
fn sums_and_multiples_add_up() {
    assert_eq!(slopes(|x, _| x), [int(1), int(0)]);
    assert_eq!(slopes(|x, y| 3 * x - y * 2 + 5), [int(3), int(-2)]);
    assert_eq!(slopes(|x, y| -(x << 3) + y * (Expr::from(2) + 1)), [int(-8), int(3)]);
    assert_eq!(slopes(|x, y| x + &y - y), [int(1), int(0)]);
    assert_eq!(slopes(|x, y| x * Expr::from(0) + y), [int(0), int(1)]);
    let affine = index(|x, y| 3 * x - y * 2 + 5);
    assert!(affine.is_affine());
    assert_eq!((affine.constant(), affine.period), (Some(5), 1));
}

#[test]
fn divisions_divide() {
    assert_eq!(slopes(|x, _| x / 2 + 1), [ratio(1, 2), int(0)]);
    assert_eq!(slopes(|x, _| (x + 1) / 2), [ratio(1, 2), int(0)]);
    assert_eq!(slopes(|x, _| x >> 3), [ratio(1, 8), int(0)]);
    assert_eq!(slopes(|x, _| x / -4), [ratio(-1, 4), int(0)]);
    assert_eq!(slopes(|x, _| x / 0 + 7), [int(0), int(0)]);
    assert_eq!(slopes(|x, _| &x / 2 + &x / 2), [int(1), int(0)]);
    assert_eq!(slopes(|x, y| (x / 2 + 3 * y) / 3), [ratio(1, 6), int(1)]);
    let tap = index(|x, _| x / 2 + 1);
    assert_eq!((tap.period, tap.origin, tap.constant()), (2, Some(Range::new(1, 1)), None));
    // A division without remainder is affine.
    let even = index(|x, _| (4 * x + 7) / 2);
    assert_eq!((even.slopes[0], even.period, even.constant()), (int(2), 1, Some(3)));
    // The same slope as x, but not x.
    let rounded = index(|x, _| x / 2 * 2);
    assert_eq!((rounded.slopes[0], rounded.period, rounded.unit_loop()), (int(1), 2, None));
}

#[test]
fn remainders_and_products_are_unknown_where_they_move() {
    assert_eq!(slopes(|x, y| x % 2 + y), [None, int(1)]);
    assert_eq!(slopes(|x, _| &x - &x / 2 * 2), [None, int(0)]);
    assert_eq!(slopes(|x, y| x * y), [None, None]);
    assert_eq!(slopes(|x, y| (&x * &x) + y), [None, int(1)]);
    assert_eq!(slopes(|x, y| (x.f32() * 0.5).i32() + y), [None, int(1)]);
    assert_eq!(slopes(|x, y| abs(x) + y), [None, int(1)]);
}

#[test]
fn sizes_and_params_do_not_move() {
    let other = Input::f32("other", 1);
    let shift = Param::i32("shift").range(0, 9);
    let moved = index(|x, y| x + other.extent(0) - other.min(0) + &shift + y);
    assert_eq!(moved.slopes[..], [int(1), int(1)]);
    assert_eq!((moved.is_affine(), moved.constant()), (true, None));
    assert_eq!(slopes(|x, y| x * &shift + y), [None, int(1)]);
}

#[test]
fn clamps_keep_the_moving_side() {
    let other = Input::f32("other", 1);
    let held = index(|x, _| clamp(x, 0, other.extent(0) - 1));
    assert_eq!((&held.slopes[..], held.clamped), (&[int(1), int(0)][..], true));
    let halved = index(|x, y| max(min(&x / 2, other.extent(0)), 0) + y);
    assert_eq!((&halved.slopes[..], halved.clamped), (&[ratio(1, 2), int(1)][..], true));
    assert_eq!(slopes(|x, y| min(x, y)), [None, None]);
    assert_eq!(slopes(|x, y| min(&x + &y, y + 3)), [None, int(1)]);
    assert!(!index(|x, _| min(other.extent(0), 9) + x).clamped);
}

#[test]
fn selects_need_agreement() {
    let flag = Param::new("flag", Type::Bool);
    let still = index(|x, y| select(&flag, &x + 1, &x - 1) + y);
    assert_eq!((&still.slopes[..], still.clamped), (&[int(1), int(1)][..], false));
    let stepped = index(|x, y| select(x.lt(&y), &x + 1, &x));
    assert_eq!((&stepped.slopes[..], stepped.clamped), (&[int(1), int(0)][..], true));
    assert_eq!(slopes(|x, y| select(&flag, x, y)), [None, None]);
    // An alternating condition moves the index with every step.
    assert_eq!(slopes(|x, y| select((&x % 2).eq(0), &x, &x + 8) + y), [None, int(1)]);
}

#[test]
fn conversions_between_integers_keep() {
    let wide = index(|x, _| x.u32().i32());
    assert_eq!((wide.slopes[0], wide.clamped), (int(1), true));
    let narrow = index(|x, _| x.saturating_cast(Type::U8).i32() * 2);
    assert_eq!((narrow.slopes[0], narrow.clamped), (int(2), true));
    let exact = index(|x, y| x.lt(3).i32() + y);
    assert_eq!((exact.slopes[0], exact.slopes[1], exact.clamped), (int(0), int(1), true));
}

#[test]
fn loaded_indices_are_unknown_where_the_load_moves() {
    let lut = Input::new("lut", Type::I32, 1);
    let (x, y) = vars!(x, y);
    let table = Input::f32("table", 2);
    let reader = func("reader", (x, y), table.at((lut.at(x) + y, lut.at(3))));
    let dag = Dag::new(&Pipeline::new("p", [reader]).unwrap());
    let stage = dag.stages().values().next().unwrap();
    let map = &stage.accesses.iter().find(|access| access.map.rows().len() == 2).unwrap().map;
    assert_eq!(map.rows()[0].slopes[..], [None, int(1)]);
    assert_eq!(map.rows()[1].slopes[..], [int(0), int(0)]);
    assert_eq!(map.rows()[1].constant(), None);
}

#[test]
fn what_a_stage_reads_of_itself_may_change_with_every_step() {
    let x = vars!(x);
    let r = rdom([(0, 9)]);
    let list = func("list", x, 0).over(&r, |f| f.set(clamp(f.at(0), 0, 9), r.x.i32()));
    let dag = Dag::new(&Pipeline::new("p", [list]).unwrap());
    let update = dag.stages().values().nth(1).unwrap();
    assert_eq!(update.store.rows()[0].slopes[..], [None]);
    assert_eq!(update.accesses[0].map.rows()[0].constant(), Some(0));
}

/// The map of the only access, with these indices over x, y.
fn map(at: impl Fn(Var, Var) -> Vec<Expr>) -> AccessMap {
    let (x, y) = vars!(x, y);
    let indices = at(x, y);
    let table = Input::f32("table", indices.len());
    let reader = func("reader", (x, y), table.at(indices));
    let dag = Dag::new(&Pipeline::new("p", [reader]).unwrap());
    dag.stages().values().next().unwrap().accesses[0].map.clone()
}

#[test]
fn composition_looks_through_an_inlined_func() {
    // half(x, y) = table(x / 2, y), read at half(x + 4, 2 * y) and half(x / 2, y - 1).
    let half = map(|x, y| vec![x / 2, y.expr()]);
    let shifted = half.compose(&map(|x, y| vec![x + 4, 2 * y])).unwrap();
    assert_eq!(shifted, map(|x, y| vec![x / 2 + 2, 2 * y]));
    let twice = half.compose(&map(|x, y| vec![x / 2, y - 1])).unwrap();
    assert_eq!(twice, map(|x, y| vec![x / 4, y - 1]));
    assert_eq!(twice.slope(0, 0), ratio(1, 4));
    let restored = half.compose(&map(|x, y| vec![2 * x, y.expr()])).unwrap();
    assert_eq!(restored, AccessMap::identity(2));
    // An odd shift changes the rounding, so only the slope is known.
    let odd = half.compose(&map(|x, y| vec![x + 1, y.expr()])).unwrap();
    assert_eq!((odd.slope(0, 0), odd.rows()[0].origin), (ratio(1, 2), None));
}

#[test]
fn zero_times_unknown_is_zero() {
    let first = map(|x, _| vec![x.expr()]);
    let inner = map(|x, y| vec![x + y, x * y]);
    assert_eq!(first.compose(&inner).unwrap().rows()[0].slopes[..], [int(1), int(1)]);
    let both = map(|x, y| vec![x + y]);
    assert_eq!(both.compose(&inner).unwrap().rows()[0].slopes[..], [None, None]);
    let unknown = map(|x, y| vec![x % 2 + y]);
    let still = map(|_, y| vec![Expr::from(3), y.expr()]);
    assert_eq!(unknown.compose(&still).unwrap().rows()[0].slopes[..], [int(0), int(1)]);
    assert_eq!(unknown.scale(&[0, 2]).unwrap().rows()[0].slopes[..], [int(0), int(2)]);
}

#[test]
fn tiles_scale_columns() {
    let half = map(|x, y| vec![x / 2, y.expr()]).scale(&[2, 8]).unwrap();
    assert_eq!((half.slope(0, 0), half.rows()[0].period, half.slope(1, 1)), (int(1), 1, int(8)));
    assert_eq!(half.slope(7, 7), int(0));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let two = AccessMap::identity(2);
    assert_eq!(two.scale(&[1]), Err(MapError::Factors { got: 1, loops: 2 }));
    assert_eq!(two.compose(&AccessMap::identity(3)), Err(MapError::Compose { loops: 2, dimensions: 3 }));
    assert_eq!(AccessMap::new(1, vec![Index::unknown(2)]), Err(MapError::Loops { got: 2, loops: 1 }));
    let text = two.compose(&AccessMap::identity(3)).unwrap_err().to_string();
    assert!(text.contains("2 loops") && text.contains("3 indices"), "{text}");
}

#[test]
fn loads_that_move_alike_are_merged() {
    let maps = [
        map(|x, y| vec![x - 1, y.expr()]),
        map(|x, y| vec![x + 2, y.expr()]),
        map(|x, y| vec![y.expr(), x.expr()]),
    ];
    let loads = merged(&maps);
    assert_eq!(loads.iter().map(|load| load.count).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(loads[0].map.rows()[0].origin, Some(Range::inclusive(-1, 2)));
    // A stencil read through a stencil.
    let through = loads[0].compose(&loads[0]).unwrap();
    assert_eq!((through.count, through.map.rows()[0].origin), (4, Some(Range::inclusive(-2, 4))));
}

/// Sums, multiples and divisions of x and y.
#[derive(Clone, Debug)]
enum Form {
    X,
    Y,
    Constant(i32),
    Plus(Box<Form>, Box<Form>),
    Minus(Box<Form>, Box<Form>),
    Times(Box<Form>, i32),
    Over(Box<Form>, i32),
    Shift(Box<Form>, i32),
}

impl Form {
    fn expr(&self, x: Var, y: Var) -> Expr {
        match self {
            Form::X => x.expr(),
            Form::Y => y.expr(),
            Form::Constant(value) => Expr::from(*value),
            Form::Plus(a, b) => a.expr(x, y) + b.expr(x, y),
            Form::Minus(a, b) => a.expr(x, y) - b.expr(x, y),
            Form::Times(a, factor) => *factor * a.expr(x, y),
            Form::Over(a, divisor) => a.expr(x, y) / *divisor,
            Form::Shift(a, amount) => a.expr(x, y) >> *amount,
        }
    }
}

fn form() -> impl Strategy<Value = Form> {
    let leaf = prop_oneof![Just(Form::X), Just(Form::Y), (-9..9).prop_map(Form::Constant)];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            pair.clone().prop_map(|(a, b)| Form::Plus(a.into(), b.into())),
            pair.prop_map(|(a, b)| Form::Minus(a.into(), b.into())),
            (inner.clone(), -4..5).prop_map(|(a, factor)| Form::Times(a.into(), factor)),
            (inner.clone(), -4..6).prop_map(|(a, divisor)| Form::Over(a.into(), divisor)),
            (inner, 0..3).prop_map(|(a, amount)| Form::Shift(a.into(), amount)),
        ]
    })
}

/// The value of an integer expression at a point.
fn evaluate(exprs: &Exprs, id: ExprId, point: [i64; 2]) -> i64 {
    fn value(exprs: &Exprs, id: ExprId, point: [i64; 2]) -> Value {
        let node = &exprs[id];
        match node.kind {
            NodeKind::Var(d) => Value::from_int(Type::I32, point[d as usize]).unwrap(),
            NodeKind::Op(op) => {
                let args: Vec<Value> = node.args.iter().map(|arg| value(exprs, *arg, point)).collect();
                op.eval(&args)
            }
            other => panic!("{other:?}"),
        }
    }
    value(exprs, id, point).as_int().unwrap()
}

proptest! {
    #[test]
    fn whole_periods_move_the_index_by_its_slope(form in form(), x0 in -50i64..50, y0 in -50i64..50, n in -3i64..4) {
        let (x, y) = vars!(x, y);
        let table = Input::f32("table", 1);
        let pipeline = Pipeline::new("p", [func("reader", (x, y), table.at(form.expr(x, y)))]).unwrap();
        let dag = Dag::new(&pipeline);
        let access = &dag.stages().values().next().unwrap().accesses[0];
        let (exprs, id) = (pipeline.exprs(), pipeline.exprs()[access.expr].args[0]);
        let index = &access.map.rows()[0];
        let here = evaluate(exprs, id, [x0, y0]);
        for (d, slope) in index.slopes.iter().enumerate() {
            let Some(slope) = slope else { continue };
            let mut point = [x0, y0];
            // A slope of 0 means no movement at all, not only over whole periods.
            let steps = if slope.is_zero() { n } else { n * index.period };
            point[d] += steps;
            // With larger steps, the index itself could wrap.
            prop_assume!(steps.abs() < 1_000_000);
            let moved = slope.mul(Rational::integer(steps)).unwrap().as_integer();
            prop_assert_eq!(moved, Some(evaluate(exprs, id, point) - here), "{:?} {:?}", form, index);
        }
        prop_assert_eq!(index.origin.map(|origin| (origin.min, origin.extent)), Some((evaluate(exprs, id, [0, 0]), 1)));
        if let Some(constant) = index.constant() {
            let part = |d: usize, at: i64| index.slopes[d].unwrap().as_integer().unwrap() * at;
            prop_assert_eq!(part(0, x0) + part(1, y0) + constant, here);
        }
    }

    #[test]
    fn composition_is_substitution(outer in form(), a in form(), b in form(), x0 in -9i64..9, y0 in -9i64..9) {
        let (x, y) = vars!(x, y);
        let table = Input::f32("table", 1);
        let middle = func("middle", (x, y), table.at(outer.expr(x, y)));
        let reader = func("reader", (x, y), middle.at((a.expr(x, y), b.expr(x, y))));
        let pipeline = Pipeline::new("p", [reader]).unwrap();
        let dag = Dag::new(&pipeline);
        let accesses: Vec<&Access> = dag.stages().values().map(|stage| &stage.accesses[0]).collect();
        let composed = accesses[0].map.compose(&accesses[1].map).unwrap();
        let exprs = pipeline.exprs();
        let at = |point: [i64; 2]| {
            let inner = [0, 1].map(|d| evaluate(exprs, exprs[accesses[1].expr].args[d], point));
            evaluate(exprs, exprs[accesses[0].expr].args[0], inner)
        };
        let index = &composed.rows()[0];
        for (d, slope) in index.slopes.iter().enumerate() {
            let Some(slope) = slope else { continue };
            let mut point = [x0, y0];
            point[d] += index.period;
            prop_assume!(index.period < 1_000_000);
            let moved = slope.mul(Rational::integer(index.period)).unwrap().as_integer();
            prop_assert_eq!(moved, Some(at(point) - at([x0, y0])), "{:?}", index);
        }
        if let Some(origin) = index.origin {
            prop_assert_eq!((origin.min, origin.extent), (at([0, 0]), 1));
        }
    }
}
