//! Bounds: spans against every value they stand for, and the boxes of whole pipelines.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use warploom_lang::bounds::*;
use warploom_lang::ir::NodeKind;
use warploom_lang::*;

// ---- Spans of expressions over tiles.

/// A variable that runs over a tile of `width + 1` values, which starts at `first`, `first + step`, ...
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

/// The variables `x` and `y`.
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
    fn input_min(&self, _: InputId, _: usize) -> i64 {
        unreachable!("no inputs here")
    }
    fn input_extent(&self, _: InputId, _: usize) -> i64 {
        unreachable!("no inputs here")
    }
}

/// Smallest and largest value, and the largest distance of two values at one place of the tiles.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Truth {
    min: f64,
    max: f64,
    width: f64,
}

/// An expression of `x` and `y` in a pipeline's tables.
struct Subject {
    pipeline: Pipeline,
    /// Operands first; the last is the expression itself.
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

    /// Compares the span of every node with the values it has; gives the truth about the whole expression.
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

/// Compares what is known of a node with its values at one place of the tiles; gives the extremes.
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

/// The largest number up to `value` with a congruence.
fn at_most(value: i64, congruence: Congruence) -> Option<i64> {
    match congruence.modulus() {
        0 => Some(congruence.remainder()).filter(|known| *known <= value),
        modulus => Some(value - (value - congruence.remainder()).rem_euclid(modulus)),
    }
}

/// The smallest number from `value` on with a congruence.
fn at_least(value: i64, congruence: Congruence) -> Option<i64> {
    at_most(-value, congruence.scale(-1)).map(|negated| -negated)
}

/// An expression that shows itself as a pipeline does.
#[derive(Clone)]
struct Index(Expr);

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Subject::new(&self.0).pipeline)
    }
}

const VARS: [Var; 2] = [Var::new("x"), Var::new("y")];

fn any_tile() -> impl Strategy<Value = Tile> {
    (-12..12i64, 1..9i64, 1..6i64, 0..7i64).prop_map(|(first, step, places, width)| Tile {
        first,
        step,
        places,
        width,
    })
}

/// A tile whose starts are known modulo `divisor`.
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

/// An expression of any type read off a list of numbers, one for each choice.
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
            return [a.lt(&b), a.le(&b), a.eq(&b), !self.value(ty, depth - 1)][self.below(4)].clone();
        }
        let a = self.value(ty, depth - 1);
        match ty {
            Type::F32 => {
                let functions: [fn(Expr) -> Expr; 11] =
                    [floor, ceil, round, abs, sqrt, exp, fast_exp, tanh, sin, cos, |a| -a];
                functions[self.below(11)](a)
            }
            _ => [-&a, !&a, abs(&a), absd(&a, self.constant(ty)).cast(ty)][self.below(4)].clone(),
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
            Type::F32 => [arithmetic.as_slice(), &[absd, pow]].concat(),
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
