//! Spans of expressions over tiles, compared with all concrete values.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use warploom_lang::affine::Congruence;
use warploom_lang::bounds::*;
use warploom_lang::ir::NodeKind;
use warploom_lang::*;

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

/// An expression of `x`, `y` and what [`loaded`] reads, in a pipeline's tables.
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
                NodeKind::Load(_) => element(node.ty, point),
                _ => unreachable!("only variables, loads and operations"),
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
                let terms =
                    linear.terms.iter().map(|(atom, factor)| i128::from(*factor) * exact_int(known[atom]));
                i128::from(linear.constant) + terms.sum::<i128>()
            };
            if let Some(known) = values.iter().find(|known| exact_int(known[&id]) != sum(known)) {
                return Err(format!("{linear:?} is {}, not {:?}", sum(known), known[&id]));
            }
            let ints: Vec<i64> = values.iter().filter_map(|known| known[&id].as_int()).collect();
            let held = values.iter().all(|known| holds(&span, known[&id]));
            held && (span.is_far() || is_wide_enough(&span, &ints))
        }
    };
    if sound { Ok((low, high)) } else { Err(format!("{low}..={high} outside {:?}", analysis.span(id))) }
}

/// An integer of any type.
fn exact_int(value: Value) -> i128 {
    if value.ty() == Type::U64 { value.bits().into() } else { value.as_int().unwrap().into() }
}

/// Whether a span holds an integer. The largest `i64` stands for everything from there on.
fn holds(span: &IntSpan, value: Value) -> bool {
    let int = exact_int(value);
    i128::from(span.min) <= int && (int <= i128::from(span.max) || span.max == i64::MAX)
}

/// Whether bounds of the span's congruences around the values at one position are near enough.
fn is_wide_enough(span: &IntSpan, values: &[i64]) -> bool {
    let (Some(low), Some(high)) = (values.iter().min(), values.iter().max()) else { return true };
    let bounds = (at_most(*low, span.lower), at_least(*high, span.upper));
    matches!(bounds, (Some(low), Some(high)) if high - low <= span.width)
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

/// An element of an input of this type: any number, among them the ends of 64 bits.
fn loaded(ty: Type) -> Expr {
    thread_local! {
        static INPUTS: [Input; 2] = [Type::I64, Type::U64].map(|ty| Input::new(ty.name(), ty, 2));
    }
    INPUTS.with(|inputs| inputs[usize::from(ty == Type::U64)].at(VARS))
}

/// What [`loaded`] reads at a point.
fn element(ty: Type, point: [i64; 2]) -> Value {
    const ENDS: [u64; 14] = [
        0,
        1,
        7,
        1 << 31,
        (1 << 32) - 3,
        1 << 61,
        (1 << 61) + 1,
        1 << 62,
        i64::MAX as u64 - 1,
        i64::MAX as u64,
        1 << 63,
        (1 << 63) + 1,
        u64::MAX - 6,
        u64::MAX,
    ];
    let mixed = (point[0] as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (point[1] as u64).wrapping_mul(0xd1b5_4a32_d192_ed03);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = mixed ^ (mixed >> 32);
    let end = ENDS[(mixed >> 8) as usize % ENDS.len()];
    Value::from_bits(ty, if mixed.is_multiple_of(4) { mixed } else { end })
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
            (Some(_), 2) => Value::from_int(ty, 1 << (number / 8 % 63)),
            (Some(_), 3) if ty == Type::U64 => Some(Value::from(u64::MAX - number as u64 / 8 % 9)),
            (None, 0) => {
                let all = [f64::INFINITY, f64::NAN, -0.0, 0.0, 1e30, 3e9, 1e19, -1e19];
                Value::rounded(ty, all[number as usize / 8 % all.len()])
            }
            (None, _) => Value::rounded(ty, small as f64 * 0.5),
            _ => Value::from_int(ty, small),
        };
        value.unwrap_or(Value::zero(ty)).into()
    }

    fn value(&mut self, ty: Type, depth: u32) -> Expr {
        match self.below(if depth == 0 { 3 } else { 14 }) {
            0 | 1 => match (ty, self.below(4)) {
                (Type::I64 | Type::U64, 2..) => loaded(ty),
                (_, choice) => VARS[choice % 2].cast(ty),
            },
            2 => self.constant(ty),
            3 | 4 => {
                let from = Type::ALL[self.below(Type::ALL.len())];
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
            let operands = Type::ALL[1 + self.below(Type::ALL.len() - 1)];
            let (a, b) = (self.value(operands, depth - 1), self.value(operands, depth - 1));
            let nan = is_nan(self.value(Type::F32, depth - 1));
            return [a.lt(&b), a.le(&b), a.eq(&b), !self.value(ty, depth - 1), nan][self.below(5)].clone();
        }
        let a = self.value(ty, depth - 1);
        match ty {
            ty if ty.is_float() => {
                let more: &[fn(Expr) -> Expr] =
                    &[atan, asin, acos, tan, rsqrt, erf, log1p, expm1, exp2, log2, fast_exp];
                // `f64` has no others.
                let more = if ty == Type::F64 { &[] } else { more };
                let functions: [fn(Expr) -> Expr; 10] =
                    [floor, ceil, round, abs, sqrt, exp, tanh, sin, cos, |a| -a];
                let functions = [functions.as_slice(), more].concat();
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
            Type::F64 => [arithmetic.as_slice(), &[absd, pow]].concat(),
            ty if ty.is_float() => [arithmetic.as_slice(), &[absd, pow, atan2]].concat(),
            _ => [arithmetic.as_slice(), &arithmetic[..5], &integers, &logic].concat(),
        };
        all[self.below(all.len())](a, b)
    }
}

fn any_expr() -> impl Strategy<Value = Index> {
    vec(any::<u32>(), 3..60).prop_map(|list| {
        let mut maker = Maker(list.into_iter());
        use Type::*;
        let all = [I32, I32, U8, I16, U32, F32, Bool, I64, I64, U64, U64, F16, BF16, F64];
        let ty = all[maker.below(all.len())];
        Index(maker.value(ty, 4))
    })
}

/// An expression of integers of 64 bits alone.
fn wide_expr() -> impl Strategy<Value = Index> {
    vec(any::<u32>(), 3..40).prop_map(|list| {
        let mut maker = Maker(list.into_iter());
        let ty = [Type::I64, Type::U64][maker.below(2)];
        let value = match maker.below(4) {
            0 => clamp(maker.value(ty, 3), maker.constant(ty), maker.constant(ty)),
            1 => maker.value(ty, 3).saturating_cast(Type::I32),
            _ => maker.value(ty, 3),
        };
        Index(value)
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
    fn spans_hold_every_wide_value(index in wide_expr(), tiles in [any_tile(), any_tile()]) {
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

/// Cases in which 64 bits overflow, or an end stands for more than one number.
#[test]
fn spans_of_sixty_four_bits() {
    let [x, _] = VARS;
    let tile = Tile { first: 0, step: 3, places: 4, width: 9 };
    let (signed, unsigned) = (loaded(Type::I64), loaded(Type::U64));
    let high = |offset: i64| clamp(&signed, (1_i64 << 40) + offset, (1_i64 << 40) + offset + 1);
    let largest = max(&unsigned, i64::MAX as u64);
    let cases = [
        // Two terms whose products saturate do not cancel.
        (high(0) - clamp(-&signed, 1_i64 << 40, (1_i64 << 40) + 1)) * (1_i64 << 40),
        (x.i64() + high(0) - high(7)) * (1_i64 << 30) * (1_i64 << 30),
        // The smallest of two numbers is not half of their sum if that overflows.
        min(&unsigned, unsigned.clone() ^ 1u64),
        max(&signed, signed.clone() ^ 1i64),
        // The largest `i64` stands for every larger `u64`.
        largest.eq(i64::MAX as u64).i32(),
        &largest - i64::MAX as u64,
        &largest / i64::MAX as u64,
        &largest % 1000u64,
        &largest >> 1u64,
        &unsigned >> 63u64,
        &unsigned >> 127u64,
        &unsigned / 2u64,
        &unsigned / (1u64 << 63),
        &signed / 3i64,
        &signed / -3i64,
        &signed >> 63i64,
        &signed % i64::MIN,
        &signed % Expr::from(-1i64),
        -&signed,
        abs(&signed),
        !&signed,
        !&unsigned,
        absd(&signed, i64::MIN).cast(Type::I64),
        average(&signed, i64::MAX),
        average(&unsigned, u64::MAX),
        popcount(&unsigned),
        leading_zeros(&signed),
        x.i64() << 62i64,
        x.u64() << 63u64,
        (x.i64() * (1_i64 << 60)) % 4096i64,
        unsigned.saturating_cast(Type::I64),
        signed.saturating_cast(Type::U64),
        signed.saturating_cast(Type::I32),
        signed.cast(Type::U8),
        (x.f32() * 1e18).cast(Type::U64),
        (x.f32() * -1e18).saturating_cast(Type::I64),
        select(x.lt(2), &signed, signed.clone() + 1i64),
    ];
    let errors = cases.into_iter().map(Subject::new).filter_map(|subject| {
        let error = subject.check([tile, tile]).err()?;
        Some(format!("{}{error}", subject.pipeline))
    });
    let errors: Vec<String> = errors.collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    // Ranges that are known although the operand may be anything.
    let span = |expr: Expr| {
        let span = Subject::new(expr).span([tile, tile]);
        (span.min, span.max)
    };
    assert_eq!(span(&unsigned >> 58u64), (0, 63));
    assert_eq!(span(&signed >> 60i64), (-8, 7));
    assert_eq!(span(&unsigned / (1u64 << 60)), (0, 15));
    assert_eq!(span(&unsigned % 10u64), (0, 9));
    assert_eq!(span(&signed % -10i64), (0, 9));
    assert_eq!(span(&unsigned & 255u64), (0, 255));
    assert_eq!(span(clamp(&signed, -3i64, 12i64)), (-3, 12));
    assert_eq!(span(min(&unsigned, 12u64)), (0, 12));
    assert_eq!(span(x.i64() * 1_000_000_007i64 - 5i64), (-5, 18 * 1_000_000_007 - 5));
}
