//! Bounds: spans compared with all concrete values, and the boxes of whole pipelines.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use warploom_lang::affine::Congruence;
use warploom_lang::bounds::*;
use warploom_lang::ir::NodeKind;
use warploom_lang::*;

// ---- Spans of expressions over tiles.

/// A variable that ranges over a tile of `width + 1` values, starting at `first`, `first + step`,
/// ...
#[derive(Clone, Copy, Debug)]
struct Tile {
    first: i64,
    step: i64,
    places: i64,
    width: i64,
}

impl Tile {
    fn span(self) -> IntSpan {
        let last = self.first + self.step * (self.places - 1) + self.width;
        IntSpan::tile(self.first, last, self.width, Congruence::new(self.step, self.first))
    }

    fn starts(self) -> impl Iterator<Item = i64> {
        (0..self.places).map(move |place| self.first + place * self.step)
    }
}

/// The tiles of the variables `x` and `y`.
type Tiles = [Tile; 2];

struct Over(Tiles);

impl Environment for Over {
    fn var(&self, dimension: usize) -> IntSpan {
        self.0[dimension].span()
    }
    fn rvar(&self, _: usize) -> IntSpan {
        unreachable!("no reductions here")
    }
    fn param(&self, _: ParamId) -> Span {
        unreachable!("no Params here")
    }
    fn input_min(&self, _: InputId, _: usize) -> IntSpan {
        unreachable!("no inputs here")
    }
    fn input_extent(&self, _: InputId, _: usize) -> IntSpan {
        unreachable!("no inputs here")
    }
}

/// The smallest and largest value, and the largest distance between two values at one position of
/// the tiles.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Truth {
    min: f64,
    max: f64,
    width: f64,
}

/// An expression of `x` and `y` in a pipeline's tables.
struct Subject {
    pipeline: Pipeline,
    /// Operands first; the last one is the expression itself.
    nodes: Vec<ExprId>,
}

impl Subject {
    fn new(expr: impl Into<Expr>) -> Subject {
        let (x, y) = vars!(x, y);
        let pipeline = Pipeline::new("p", [func("f", (x, y), Vec::from([expr.into()]))]).unwrap();
        let root = pipeline.funcs().values().next().unwrap().stages[0].values[0];
        Subject { nodes: pipeline.exprs().reachable([root]), pipeline }
    }

    fn span(&self, tiles: Tiles) -> IntSpan {
        let root = *self.nodes.last().unwrap();
        Analysis::new(self.pipeline.exprs(), &Over(tiles), [root]).int(root)
    }

    /// The value of every node.
    fn values(&self, point: [i64; 2]) -> HashMap<ExprId, Value> {
        let mut known = HashMap::new();
        for &id in &self.nodes {
            let node = &self.pipeline.exprs()[id];
            let args: Vec<Value> = node.args.iter().map(|arg| known[arg]).collect();
            let value = match node.kind {
                NodeKind::Var(d) => Value::from(point[d as usize] as i32),
                NodeKind::Op(op) => op.eval(&args),
                _ => unreachable!("only variables and operations"),
            };
            known.insert(id, value);
        }
        known
    }

    /// Compares the span of every node with its values. Returns the exact result for the whole
    /// expression.
    fn check(&self, tiles: Tiles) -> Result<Truth, String> {
        let root = *self.nodes.last().unwrap();
        let environment = Over(tiles);
        let analysis = Analysis::new(self.pipeline.exprs(), &environment, [root]);
        let mut truth = Truth { min: f64::INFINITY, max: f64::NEG_INFINITY, width: 0.0 };
        for x in tiles[0].starts() {
            for y in tiles[1].starts() {
                let box_points =
                    (x..=x + tiles[0].width).flat_map(|x| (y..=y + tiles[1].width).map(move |y| [x, y]));
                let values: Vec<_> = box_points.map(|point| self.values(point)).collect();
                for &id in &self.nodes {
                    let (low, high) = check_node(&analysis, id, &values).map_err(|what| {
                        format!("{what} at box ({x}, {y}) of {:?}", self.pipeline.exprs()[id])
                    })?;
                    if id == root {
                        truth.min = truth.min.min(low);
                        truth.max = truth.max.max(high);
                        truth.width = truth.width.max(high - low);
                    }
                }
            }
        }
        Ok(truth)
    }
}

/// Compares the span of a node with its values at one position of the tiles. Returns the extremes.
fn check_node(
    analysis: &Analysis<'_, Over>,
    id: ExprId,
    values: &[HashMap<ExprId, Value>],
) -> Result<(f64, f64), String> {
    let all = || values.iter().map(|known| known[&id].as_f64());
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let sound = match analysis.span(id) {
        Span::Float(span) => {
            let inside = f64::from(span.min) <= low && high <= f64::from(span.max);
            let near = low == high || (high - low) as f32 <= span.width;
            (low > high || (inside && near)) && (span.nan || !all().any(f64::is_nan))
        }
        Span::Int(span) => {
            let linear = analysis.linear(id);
            let sum = |known: &HashMap<ExprId, Value>| {
                let terms = linear.terms.iter().map(|(atom, factor)| factor * known[atom].as_int().unwrap());
                linear.constant + terms.sum::<i64>()
            };
            if let Some(known) = values.iter().find(|known| known[&id].as_int() != Some(sum(known))) {
                return Err(format!("{linear:?} is {}, not {:?}", sum(known), known[&id]));
            }
            let (low, high) = (low as i64, high as i64);
            let bounds = (at_most(low, span.lower), at_least(high, span.upper));
            let wide_enough = matches!(bounds, (Some(low), Some(high)) if high - low <= span.width);
            span.min <= low && high <= span.max && wide_enough
        }
    };
    if sound { Ok((low, high)) } else { Err(format!("{low}..={high} outside {:?}", analysis.span(id))) }
}

/// The largest number that is at most `value` and satisfies a congruence.
fn at_most(value: i64, congruence: Congruence) -> Option<i64> {
    match congruence.modulus() {
        0 => Some(congruence.remainder()).filter(|known| *known <= value),
        modulus => Some(value - (value - congruence.remainder()).rem_euclid(modulus)),
    }
}

/// The smallest number that is at least `value` and satisfies a congruence.
fn at_least(value: i64, congruence: Congruence) -> Option<i64> {
    at_most(-value, congruence.scale(-1)).map(|negated| -negated)
}

/// An expression that prints itself as a pipeline listing does.
#[derive(Clone)]
struct Index(Expr);

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Subject::new(&self.0).pipeline)
    }
}

const VARS: [Var; 2] = [Var::literal("x"), Var::literal("y")];

fn any_tile() -> impl Strategy<Value = Tile> {
    (-12..12i64, 1..9i64, 1..6i64, 0..7i64).prop_map(|(first, step, places, width)| Tile {
        first,
        step,
        places,
        width,
    })
}

/// A tile whose start is known modulo `divisor`.
fn aligned_tile(divisor: i64) -> impl Strategy<Value = Tile> {
    any_tile().prop_map(move |tile| Tile { step: (1 + tile.step % 3) * divisor, ..tile })
}

/// `a * x + b * y + c`, with `x` in two terms.
fn affine() -> impl Strategy<Value = Index> {
    let [x, y] = VARS;
    let factor = -4..=4i32;
    (factor.clone(), factor.clone(), factor, -20..20i32).prop_map(move |(a, again, b, c)| {
        let sum = x * a + (y * b - c);
        Index(sum - (-(x * again)))
    })
}

/// Builds an expression of any type from a list of numbers, one per choice.
struct Maker(std::vec::IntoIter<u32>);

impl Maker {
    fn below(&mut self, end: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % end
    }

    fn constant(&mut self, ty: Type) -> Expr {
        let number = self.below(1 << 16) as i64;
        let small = number / 8 % 18 - 5;
        let value = match (ty.int_range(), number % 8) {
            (Some((low, _)), 0) => Value::from_int(ty, low),
            (Some((_, high)), 1) => Value::from_int(ty, high),
            (None, 0) => {
                Some(Value::from([f32::INFINITY, f32::NAN, -0.0, 0.0, 1e30, 3e9][number as usize / 8 % 6]))
            }
            (None, _) => Some(Value::from(small as f32 * 0.5)),
            _ => Value::from_int(ty, small),
        };
        value.unwrap_or(Value::zero(ty)).into()
    }

    fn value(&mut self, ty: Type, depth: u32) -> Expr {
        match self.below(if depth == 0 { 3 } else { 14 }) {
            0 | 1 => VARS[self.below(2)].cast(ty),
            2 => self.constant(ty),
            3 | 4 => {
                let from = Type::ALL[self.below(8)];
                let value = self.value(from, depth - 1);
                match self.below(3) {
                    0 => value.cast(ty),
                    1 if from.bytes() == ty.bytes() && from != Type::Bool && ty != Type::Bool => {
                        value.reinterpret(ty)
                    }
                    _ => value.saturating_cast(ty),
                }
            }
            5 => {
                let condition = self.value(Type::Bool, depth - 1);
                select(condition, self.value(ty, depth - 1), self.value(ty, depth - 1))
            }
            6 if ty != Type::Bool => {
                let (low, high) = (self.constant(ty), self.constant(ty));
                clamp(self.value(ty, depth - 1), low, high)
            }
            7 => self.unary(ty, depth),
            _ => self.binary(ty, depth),
        }
    }

    fn unary(&mut self, ty: Type, depth: u32) -> Expr {
        if ty == Type::Bool {
            let operands = Type::ALL[1 + self.below(7)];
            let (a, b) = (self.value(operands, depth - 1), self.value(operands, depth - 1));
            let nan = is_nan(self.value(Type::F32, depth - 1));
            return [a.lt(&b), a.le(&b), a.eq(&b), !self.value(ty, depth - 1), nan][self.below(5)].clone();
        }
        let a = self.value(ty, depth - 1);
        match ty {
            Type::F32 => {
                let more = [atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2];
                let functions: [fn(Expr) -> Expr; 11] =
                    [floor, ceil, round, abs, sqrt, exp, fast_exp, tanh, sin, cos, |a| -a];
                let functions = [functions.as_slice(), &more].concat();
                functions[self.below(functions.len())](a)
            }
            _ => {
                let all = [
                    -&a,
                    !&a,
                    abs(&a),
                    absd(&a, self.constant(ty)).cast(ty),
                    popcount(&a),
                    leading_zeros(&a),
                ];
                all[self.below(all.len())].clone()
            }
        }
    }

    fn binary(&mut self, ty: Type, depth: u32) -> Expr {
        let a = self.value(ty, depth - 1);
        let b = if self.below(2) == 0 { self.constant(ty) } else { self.value(ty, depth - 1) };
        type Operation = fn(Expr, Expr) -> Expr;
        let logic: [Operation; 3] = [|a, b| a & b, |a, b| a | b, |a, b| a ^ b];
        let arithmetic: [Operation; 7] =
            [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| a / b, |a, b| a % b, min, max];
        let integers: [Operation; 3] = [|a, b| a << b, |a, b| a >> b, average];
        let all = match ty {
            Type::Bool => logic.to_vec(),
            Type::F32 => [arithmetic.as_slice(), &[absd, pow, atan2]].concat(),
            _ => [arithmetic.as_slice(), &arithmetic[..5], &integers, &logic].concat(),
        };
        all[self.below(all.len())](a, b)
    }
}

fn any_expr() -> impl Strategy<Value = Index> {
    vec(any::<u32>(), 3..60).prop_map(|list| {
        let mut maker = Maker(list.into_iter());
        let ty =
            [Type::I32, Type::I32, Type::U8, Type::I16, Type::U32, Type::F32, Type::Bool][maker.below(7)];
        Index(maker.value(ty, 4))
    })
}

fn any_index() -> impl Strategy<Value = Index> {
    vec(any::<u32>(), 3..40).prop_map(|list| Index(Maker(list.into_iter()).value(Type::I32, 3)))
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(1000), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn spans_hold_every_value(index in any_expr(), tiles in [any_tile(), any_tile()]) {
        let found = Subject::new(index.0).check(tiles);
        prop_assert!(found.is_ok(), "{}", found.unwrap_err());
    }

    #[test]
    fn affine_indices_are_exact(index in affine(), tiles in [any_tile(), any_tile()]) {
        exact(index.0, tiles)?;
    }

    #[test]
    fn divisions_over_aligned_tiles_are_exact(
        (divisor, tiles) in (1..9i64).prop_flat_map(|d| (Just(d), [aligned_tile(d), aligned_tile(d)])),
        index in affine(),
        negative: bool,
    ) {
        let divisor = divisor as i32;
        exact(index.0 / if negative { -divisor } else { divisor }, tiles)?;
    }

    #[test]
    fn remainders_over_aligned_tiles_are_exact(
        (divisor, tiles) in (1..9i64).prop_flat_map(|d| (Just(d), [aligned_tile(d), aligned_tile(d)])),
        index in affine(),
        negative: bool,
    ) {
        let divisor = divisor as i32;
        exact(index.0 % if negative { -divisor } else { divisor }, tiles)?;
    }

    #[test]
    fn limits_never_widen(index in any_index(), limit in -9..9i32, tiles in [any_tile(), any_tile()]) {
        let index = index.0;
        let width = Subject::new(&index).span(tiles).width;
        for limited in [min(&index, limit), max(&index, limit), clamp(&index, limit, limit + 5)] {
            prop_assert!(Subject::new(limited).span(tiles).width <= width);
        }
    }
}

fn exact(expr: Expr, tiles: Tiles) -> Result<(), TestCaseError> {
    let subject = Subject::new(expr);
    let truth = subject.check(tiles).map_err(TestCaseError::fail)?;
    let span = subject.span(tiles);
    let found = Truth { min: span.min as f64, max: span.max as f64, width: span.width as f64 };
    prop_assert_eq!(found, truth);
    Ok(())
}

/// Cases that random expressions hit too rarely.
#[test]
fn spans_of_narrow_types_and_conversions() {
    let [x, _] = VARS;
    let tile = Tile { first: 0, step: 1, places: 1, width: 4 };
    let fifths = x.f32() * 0.2;
    let cases = [
        // The amount of a shift is taken modulo the width.
        x.u8() >> 9u8,
        x.i16() >> 17i16,
        x.u8() << 9u8,
        // The complement of an integer is not a boolean.
        !(x % 2),
        !((x % 2).u8()),
        // A cast to bool is `!= 0`, also for negative numbers and fractions.
        (&fifths + 0.1).cast(Type::Bool).i32(),
        (&fifths - 5.0).saturating_cast(Type::Bool).i32(),
        (x - 7).saturating_cast(Type::Bool).i32(),
        (x - 7).cast(Type::Bool).i32(),
        // Zero times infinity is NaN.
        (abs((x - 2).f32() * f32::INFINITY) + 1.0).i32(),
        (x.f32() * 1e9).u32(),
        (x - 1).u32() * 3,
        abs(x.cast(Type::I8) * 64i8).i32(),
        absd(x - 2, i32::MIN).i32(),
        average(x.u8() + 252u8, 255u8).i32(),
        x / (x - 2),
        x % (x - 2),
        (x + i32::MAX) - i32::MAX,
        select(x.lt(2), x + 7, x),
    ];
    let errors = cases.into_iter().map(Subject::new).filter_map(|subject| {
        let error = subject.check([tile, tile]).err()?;
        Some(format!("{}{error}", subject.pipeline))
    });
    let errors: Vec<String> = errors.collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

// ---- Boxes of whole pipelines.

/// The box of every Func and input, by name.
fn boxes(outputs: impl IntoIterator<Item = Func>, sizes: &[(&str, Region)]) -> HashMap<String, String> {
    try_boxes(outputs, sizes).unwrap()
}

fn try_boxes(
    outputs: impl IntoIterator<Item = Func>,
    sizes: &[(&str, Region)],
) -> Result<HashMap<String, String>, BoundsError> {
    let pipeline = Pipeline::new("p", outputs).unwrap();
    let mut request = Realisation::new(&pipeline);
    for (name, region) in sizes {
        request = match pipeline.input_named(name) {
            Some(_) => request.input(name, region.clone()),
            None => request.output(name, region.clone()),
        };
    }
    let regions = infer(&pipeline, &request)?;
    let inputs = pipeline.inputs().iter().map(|(id, input)| (&input.name, &regions.inputs[id]));
    let funcs = pipeline.funcs().iter().map(|(id, func)| (&func.name, &regions.funcs[id].region));
    Ok(inputs.chain(funcs).map(|(name, region)| (name.clone(), region.to_string())).collect())
}

fn size(extents: &[i64]) -> Region {
    Region::of_extents(extents)
}

fn line(min: i64, extent: i64) -> Region {
    Region(vec![Range::new(min, extent)])
}

#[test]
fn stencils_grow_by_their_reach() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("in", 2);
    let blur_x = func("bx", (x, y), input.at((x - 1, y)) + input.at((x + 1, y)));
    let blur_y = func("by", (x, y), blur_x.at((x, y - 2)) + blur_x.at((x, y)));
    let turned = func("out", (x, y), blur_y.at((y, x)) + blur_y.at((3 - y, x)));
    let found = boxes([turned], &[("in", Region(vec![Range::new(-9, 30); 2])), ("out", size(&[8, 5]))]);
    assert_eq!(found["by"], "[-1, 5) x [0, 8)");
    assert_eq!(found["bx"], "[-1, 5) x [-2, 8)");
    assert_eq!(found["in"], "[-2, 6) x [-2, 8)");
}

#[test]
fn pyramids_halve_and_double() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let down = |name: &str, at: &dyn Fn(Expr) -> Expr| {
        func(name, x, at(2 * x - 1) + at(2 * x) + at(2 * x + 1) + at(2 * x + 2))
    };
    let d1 = down("d1", &|i| input.at(i));
    let d2 = down("d2", &|i| d1.at(i));
    let up = func("up", x, d2.at(x / 2 - 1 + 2 * (x % 2)) + d2.at(x / 2));
    let found = boxes([up], &[("in", line(-20, 60)), ("up", line(0, 8))]);
    assert_eq!(found["d2"], "[-1, 5)");
    assert_eq!(found["d1"], "[-3, 11)");
    assert_eq!(found["in"], "[-7, 23)");
}

#[test]
fn boundary_conditions_need_no_more_than_there_is() {
    type Condition = fn(&Input) -> Func;
    let conditions: [(&str, Condition); 5] = [
        ("repeat_edge", Input::repeat_edge),
        ("repeat_image", Input::repeat_image),
        ("mirror_image", Input::mirror_image),
        ("mirror_interior", Input::mirror_interior),
        ("constant_exterior", |input| input.constant_exterior(0.0)),
    ];
    let x = vars!(x);
    for (name, condition) in conditions {
        for low in [-2, 0, 5] {
            for extent in [1, 2, 3, 8] {
                let input = Input::f32("in", 1);
                let out = func("out", x, condition(&input).at(x));
                let whole = line(low, extent);
                let need = |asked: Region| {
                    boxes([out.clone()], &[("in", whole.clone()), ("out", asked)])["in"].clone()
                };
                // A request far beyond both sides needs the whole input. A request inside needs
                // just its own points.
                assert_eq!(need(line(low - 20, 60)), whole.to_string(), "{name}");
                assert_eq!(need(whole.clone()), whole.to_string(), "{name}");
                assert_eq!(
                    need(line(low + extent - 1, 1)),
                    format!("[{0}, {1})", low + extent - 1, low + extent)
                );
                // A request anywhere else never reads outside.
                for start in low - 9..low + 9 {
                    need(line(start, 2));
                }
            }
        }
    }
}

#[test]
fn clamped_reads_on_one_side_need_one_side() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let out = func("out", x, input.repeat_edge().at(x - 5));
    let found = boxes([out], &[("in", line(0, 9)), ("out", line(0, 8))]);
    assert_eq!(found["in"], "[0, 3)");
    let out = func("out", x, input.mirror_image().at(x - 3));
    let found = boxes([out], &[("in", line(0, 9)), ("out", line(0, 3))]);
    assert_eq!(found["in"], "[0, 3)");
}

#[test]
fn scans_and_scatters_keep_all_they_touch() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("in", 2);
    let r = rdom([(1, 9)]);
    let scan = func("scan", (x, y), undef(Type::F32))
        .update(|f| f.set((0, y), input.at((0, y))))
        .over(&r, |f| f.set((r.x, y), f.at((r.x - 1, y)) + input.at((r.x, y))));
    let found =
        boxes([scan], &[("in", size(&[10, 10])), ("scan", Region(vec![Range::new(3, 2), Range::new(4, 3)]))]);
    assert_eq!((found["scan"].as_str(), found["in"].as_str()), ("[0, 10) x [4, 7)", "[0, 10) x [4, 7)"));

    let image = Input::u8("image", 2);
    let r = rdom([(0, image.extent(0)), (0, image.extent(1))]);
    let histogram = func("histogram", x, 0).over(&r, |f| f.add(image.at((r.x, r.y)).i32() / 16, 1));
    let out = func("out", x, histogram.at(x));
    let found = boxes([out], &[("image", size(&[7, 5])), ("out", line(2, 3))]);
    assert_eq!((found["histogram"].as_str(), found["image"].as_str()), ("[0, 16)", "[0, 7) x [0, 5)"));
}

#[test]
fn loaded_indices_have_the_range_of_what_is_loaded() {
    let x = vars!(x);
    let (map, table) = (Input::new("map", Type::I32, 1), Input::u8("table", 1));
    let place = func("place", x, clamp(map.at(x), 3, 6) + 1);
    let out = func("out", x, table.at(place.at(x)).i32() + table.at(map.at(x) % 4).i32());
    let found = boxes([out], &[("map", line(0, 9)), ("table", line(0, 9)), ("out", line(0, 9))]);
    assert_eq!(found["table"], "[0, 8)");
}

#[test]
fn an_empty_domain_needs_nothing() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let n = Param::i32("n");
    let r = rdom([(0, &n)]);
    let out = func("out", x, sum(&r, input.at(x + r.x)));
    let pipeline = Pipeline::new("p", [out]).unwrap();
    for (extent, needed) in [(0, "[0, 0)"), (-3, "[0, 0)"), (1, "[4, 6)"), (3, "[4, 8)")] {
        let request =
            Realisation::new(&pipeline).input("in", line(0, 9)).output("out", line(4, 2)).param("n", extent);
        let regions = infer(&pipeline, &request).unwrap();
        assert_eq!(regions.inputs.values().next().unwrap().to_string(), needed, "extent {extent}");
    }
}

#[test]
fn domains_have_the_bounds_the_params_give() {
    let q = Param::f32("q");
    let n = Param::i32("n");
    let extents =
        [select(q.eq(0.0), 3, 1), (cos(&q) * 5.0).i32(), exp(&q).i32() + 2, (n.expr() << 3) >> 2, &n + 2];
    let expected = [[3, 5, 3, 0, 2], [1, 2, 4, 2, 3]];
    for (number, extent) in extents.into_iter().enumerate() {
        let r = rdom([(0, extent)]);
        let total = func("total", (), 0).over(&r, |f| f.add((), r.x));
        let pipeline = Pipeline::new("p", [total]).unwrap();
        for (value, expected) in expected.iter().enumerate() {
            let mut request = Realisation::new(&pipeline).output("total", size(&[]));
            request = match pipeline.param_named("q") {
                Some(_) => request.param("q", value as f32),
                None => request.param("n", value as i32),
            };
            let regions = infer(&pipeline, &request).unwrap();
            let domain = &regions.funcs.values().next().unwrap().stages[1].domain;
            assert_eq!(domain, &[Range::new(0, expected[number])], "extent {number}, Param {value}");
        }
    }
}

#[test]
fn a_param_without_a_value_has_its_default_or_the_middle_of_its_range() {
    let x = vars!(x);
    let value = |param: Param| {
        let pipeline = Pipeline::new("p", [func("out", x, &param + &param)]).unwrap();
        let request = Realisation::new(&pipeline).output("out", line(0, 9));
        let known = request.params.values().next().copied().flatten();
        (known, infer(&pipeline, &request).map(|_| ()))
    };
    assert_eq!(value(Param::f32("gain").range(0.0, 3.0f32)), (Some(1.5f32.into()), Ok(())));
    assert_eq!(value(Param::i32("taps").range(-4, 1)), (Some((-2).into()), Ok(())));
    assert_eq!(value(Param::i32("taps").range(1, 9).default(3)), (Some(3.into()), Ok(())));
    let (none, error) = value(Param::f32("gain"));
    assert!(none.is_none() && matches!(error, Err(BoundsError::Missing { what: "value", .. })));
    let (_, error) = value(Param::i32("taps").range(1, 9).default(30));
    assert!(matches!(error, Err(BoundsError::ParamRange { .. })), "{error:?}");
}

// ---- Rejected requests.

#[test]
fn requests_that_do_not_fit_the_pipeline() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let gain = Param::f32("gain").range(0.0, 2.0);
    let pipeline = Pipeline::new("p", [func("out", x, input.at(x) * &gain)]).unwrap();
    let none = || Realisation::new(&pipeline);
    let sized = || none().input("in", line(0, 9)).output("out", line(0, 9));
    let refuse = |request: Realisation| infer(&pipeline, &request).unwrap_err();

    assert!(infer(&pipeline, &sized().param("gain", 1.0f32)).is_ok());
    let error = refuse(sized().param("gian", 1.0f32));
    assert!(matches!(&error, BoundsError::Unknown { name, .. } if name == "gian"), "{error}");
    // An output is not an input.
    let error = refuse(sized().param("gain", 1.0f32).input("out", line(0, 9)));
    assert!(matches!(&error, BoundsError::Unknown { name, .. } if name == "out"), "{error}");
    let error = refuse(none().input("in", line(0, 9)).param("gain", 1.0f32));
    assert!(matches!(&error, BoundsError::Missing { name, what: "size", .. } if name == "out"), "{error}");
    let error = refuse(sized().param("gain", 1i32));
    let (expected, got) = (Type::F32, Type::I32);
    assert_eq!(error, BoundsError::ParamType { name: "gain".into(), expected, got });
    for value in [-0.5, 2.5, f32::NAN] {
        let error = refuse(sized().param("gain", value));
        assert!(matches!(error, BoundsError::ParamRange { .. }), "{error}");
    }
    let error = refuse(sized().param("gain", 1.0f32).output("out", size(&[9, 9])));
    assert_eq!(error, BoundsError::Rank { name: "out".into(), got: 2, expected: 1 });
    for (min, extent) in [(0, 0), (0, 1 << 31), (1 << 30, 1), (-(1 << 31), 5), (i64::MAX, 2), (0, i64::MAX)] {
        let error = refuse(sized().param("gain", 1.0f32).output("out", line(min, extent)));
        assert_eq!(error, BoundsError::Extent { name: "out".into(), dimension: 0, extent });
    }
}

#[test]
fn accesses_without_bounds_are_refused() {
    let x = vars!(x);
    let input = Input::new("in", Type::I32, 1);
    let unbounded = |index: Expr| {
        let error = try_boxes([func("out", x, input.at(index))], &[("in", line(0, 9)), ("out", line(0, 9))]);
        match error {
            Err(BoundsError::Unbounded { consumer, producer, dimension: 0, place: Some(_) }) => {
                assert_eq!((consumer.as_str(), producer.as_str()), ("out", "in"));
            }
            other => panic!("{other:?}"),
        }
    };
    unbounded(input.at(x));
    unbounded(input.at(x) * 2 - input.at(x));
    unbounded(x + i32::MAX);
    unbounded((x + i32::MAX) - i32::MAX);
    unbounded(x * 65_536 * 65_536);
    unbounded(random_u32(1, [x]).i32());
}

#[test]
fn accesses_beyond_an_input_are_refused() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("in", 2);
    let out = func("out", (x, y), input.at((x, y + 1)));
    let error = try_boxes([out], &[("in", size(&[9, 9])), ("out", size(&[9, 9]))]).unwrap_err();
    match error {
        BoundsError::LeavesInput { consumer, input, dimension: 1, needed, available, .. } => {
            assert_eq!((consumer.as_str(), input.as_str()), ("out", "in"));
            assert_eq!((needed, available), (Range::new(1, 9), Range::new(0, 9)));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn boxes_that_cannot_be_counted_are_refused() {
    let (x, y) = vars!(x, y);
    let wide = func("wide", (x, y), x + y);
    let out = func("out", (x, y), wide.at((x * 100_000, y * 100_000)));
    let error = try_boxes([out], &[("out", size(&[100, 100]))]).unwrap_err();
    assert!(matches!(&error, BoundsError::TooLarge { func, .. } if func == "wide"), "{error}");
}
