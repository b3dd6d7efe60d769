//! Abstract interpretation of expressions: one pass over the nodes, operands first, gives each its
//! span.

use ahash::AHashMap;

use crate::affine::interval;
use crate::affine::{Linear, gcd};
use crate::bounds::span::{FloatSpan, IntSpan, Span};
use crate::ids::{ExprId, FuncId, InputId, ParamId, TableId};
use crate::ir::{Exprs, NodeKind};
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::types::{Type, Value};

/// The spans of an expression's leaves.
pub trait Environment {
    /// The span of the variable of a dimension.
    fn var(&self, dimension: usize) -> IntSpan;
    /// The span of a variable of the reduction domain.
    fn rvar(&self, index: usize) -> IntSpan;
    /// The value of a Param, or the range known for it.
    fn param(&self, param: ParamId) -> Span;
    /// The span of the smallest index of an input's dimension: one value unless sizes vary.
    fn input_min(&self, input: InputId, dimension: usize) -> IntSpan;
    /// The span of the extent of an input's dimension: one value unless sizes vary.
    fn input_extent(&self, input: InputId, dimension: usize) -> IntSpan;
    /// The span of a Func's value at any point. The default is everything that its type can hold.
    fn value(&self, _func: FuncId, _value: usize, ty: Type) -> Span {
        Span::of_type(ty)
    }
}

/// Spans of the nodes of some expressions under one [`Environment`].
pub struct Analysis<'a, E> {
    exprs: &'a Exprs,
    environment: &'a E,
    known: AHashMap<ExprId, (Span, Linear)>,
}

/// The largest modulus whose residues are enumerated.
const MAX_ENUMERATED_MODULUS: i64 = 4096;

impl<'a, E: Environment> Analysis<'a, E> {
    /// Analyses every node that `roots` depend on.
    pub fn new(exprs: &'a Exprs, environment: &'a E, roots: impl IntoIterator<Item = ExprId>) -> Self {
        let mut analysis = Analysis { exprs, environment, known: AHashMap::new() };
        for id in exprs.reachable(roots) {
            let entry = analysis.node(id);
            analysis.known.insert(id, entry);
        }
        analysis
    }

    /// Whether a node has been analysed.
    pub(crate) fn contains(&self, id: ExprId) -> bool {
        self.known.contains_key(&id)
    }

    /// The span of an analysed node.
    pub fn span(&self, id: ExprId) -> Span {
        self.known[&id].0
    }

    /// The span of an analysed integer node.
    pub fn int(&self, id: ExprId) -> IntSpan {
        match self.span(id) {
            Span::Int(span) => span,
            Span::Float(_) => IntSpan::of_type(Type::I32),
        }
    }

    /// The linear form of an analysed integer node.
    pub fn linear(&self, id: ExprId) -> &Linear {
        &self.known[&id].1
    }

    fn float(&self, id: ExprId) -> FloatSpan {
        match self.span(id) {
            Span::Float(span) => span,
            Span::Int(_) => FloatSpan::ANY,
        }
    }

    fn node(&self, id: ExprId) -> (Span, Linear) {
        let node = &self.exprs[id];
        if node.ty.is_float() {
            return (Span::Float(self.float_node(id)), Linear::default());
        }
        if let Some(linear) = self.sum_node(id) {
            let span = self.span_of_linear(&linear).within(node.ty);
            // A sum that may wrap no longer equals the sum of its terms.
            if self.span_of_linear(&linear) == span && !span.is_far() {
                return (Span::Int(span), linear);
            }
            return (Span::Int(span.unless_far(node.ty)), Linear::atom(id));
        }
        let span = self.int_node(id).within(node.ty);
        let linear = span.singleton().map_or_else(|| Linear::atom(id), Linear::constant);
        (Span::Int(span), linear)
    }

    /// The span of a linear combination. Its atoms are assumed to vary independently. If a term is far, the result is
    /// unknown, because two terms that saturate would cancel.
    pub fn span_of_linear(&self, linear: &Linear) -> IntSpan {
        let mut sum = IntSpan::constant(linear.constant);
        for (atom, factor) in &linear.terms {
            let term = self.atom(*atom).scale(*factor);
            if sum.is_far() || term.is_far() {
                return IntSpan::fixed(i64::MIN, i64::MAX);
            }
            sum = sum.add(&term);
        }
        sum
    }

    /// The span of an atom. A node that is still being analysed may be its own atom.
    fn atom(&self, id: ExprId) -> IntSpan {
        match self.known.get(&id) {
            Some((Span::Int(span), _)) => *span,
            _ => self.int_node(id),
        }
    }

    /// The linear form of a node that is a sum, a constant multiple, or a conversion that preserves
    /// the value.
    fn sum_node(&self, id: ExprId) -> Option<Linear> {
        let node = &self.exprs[id];
        let NodeKind::Op(op) = node.kind else { return None };
        if node.args.iter().any(|arg| self.is_far(*arg)) {
            return None;
        }
        let linear = |i: usize| self.linear(node.args[i]);
        let constant = |i: usize| self.int(node.args[i]).singleton();
        match op {
            Op::Const(value) => value.as_int().map(Linear::constant),
            Op::Unary(UnaryOp::Neg) => linear(0).scale(-1),
            Op::Binary(BinaryOp::Add) => linear(0).add_scaled(linear(1), 1),
            Op::Binary(BinaryOp::Sub) => linear(0).add_scaled(linear(1), -1),
            Op::Binary(BinaryOp::Mul) => match (constant(0), constant(1)) {
                (_, Some(factor)) => linear(0).scale(factor),
                (Some(factor), _) => linear(1).scale(factor),
                _ => None,
            },
            Op::Binary(BinaryOp::Shl) => match constant(1) {
                Some(amount @ 0..=61) => linear(0).scale(1 << amount),
                _ => None,
            },
            Op::Cast(ty) | Op::SaturatingCast(ty) if self.exprs[node.args[0]].ty.is_int() => {
                let span = self.int(node.args[0]);
                (span.within(ty) == span).then(|| linear(0).clone())
            }
            _ => None,
        }
    }

    /// Whether arithmetic on a node may not fit in 64 bits; see [`IntSpan::is_far`].
    fn is_far(&self, id: ExprId) -> bool {
        matches!(self.span(id), Span::Int(span) if span.is_far())
    }

    fn int_node(&self, id: ExprId) -> IntSpan {
        let node = &self.exprs[id];
        match node.kind {
            NodeKind::Var(d) => self.environment.var(d as usize),
            NodeKind::RVar(r) => self.environment.rvar(r as usize),
            NodeKind::Param(param) => match self.environment.param(param) {
                Span::Int(span) => span,
                Span::Float(_) => IntSpan::of_type(node.ty),
            },
            NodeKind::InputMin(input, d) => self.environment.input_min(input, d as usize),
            NodeKind::InputExtent(input, d) => self.environment.input_extent(input, d as usize),
            NodeKind::Call(func, value) => match self.environment.value(func, value as usize, node.ty) {
                Span::Int(span) => span,
                Span::Float(_) => IntSpan::of_type(node.ty),
            },
            NodeKind::Load(_) => IntSpan::of_type(node.ty),
            NodeKind::Table(table) => match self.table_node(table, &node.args) {
                Span::Int(span) => span,
                Span::Float(_) => IntSpan::of_type(node.ty),
            },
            NodeKind::Op(op) => match self.folded(op, &node.args).and_then(Value::as_int) {
                Some(value) => IntSpan::constant(value),
                None => self.int_op(op, node.ty, &node.args),
            },
        }
    }

    /// One value of a table if the indices are known, otherwise the range of all.
    fn table_node(&self, table: TableId, indices: &[ExprId]) -> Span {
        let table = &self.exprs.tables()[table];
        let at: Option<Vec<i64>> = indices.iter().map(|index| self.int(*index).singleton()).collect();
        at.and_then(|at| table.value(at)).map_or(table.span(), Span::constant)
    }

    /// The constant result, if every operand has exactly one value.
    fn folded(&self, op: Op, args: &[ExprId]) -> Option<Value> {
        let value = |id: &ExprId| match self.span(*id) {
            Span::Int(span) => Value::from_int(self.exprs[*id].ty, span.singleton()?),
            // Zero has two bit patterns, so it does not count as one value.
            Span::Float(span) => span.singleton().filter(|value| *value != 0.0).map(Value::from),
        };
        let values: Option<Vec<Value>> = args.iter().map(value).collect();
        Some(op.eval(&values?))
    }

    fn int_op(&self, op: Op, ty: Type, args: &[ExprId]) -> IntSpan {
        match op {
            Op::Unary(UnaryOp::Popcount | UnaryOp::LeadingZeros) if self.is_far(args[0]) => {
                IntSpan::fixed(0, 8 * ty.bytes() as i64)
            }
            Op::Unary(_) | Op::Cast(_) if self.is_far(args[0]) => IntSpan::of_type(ty),
            Op::Unary(op) => int_unary(op, ty, self.int(args[0])),
            Op::Binary(op) if op.is_comparison() => IntSpan::of_type(Type::Bool),
            Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max | BinaryOp::And)) => {
                self.int_binary(op, ty, args[0], args[1])
            }
            Op::Binary(BinaryOp::Mod) if !self.is_far(args[1]) => {
                self.int_binary(BinaryOp::Mod, ty, args[0], args[1])
            }
            Op::Binary(binary) if args.iter().any(|arg| self.is_far(*arg)) => {
                let operands = [0, 1].map(|i| (self.exprs[args[i]].ty, self.int(args[i]).interval()));
                let range = interval::result(Op::Binary(binary), ty, &operands);
                IntSpan::fixed(range.min, range.max)
            }
            Op::Binary(op) => self.int_binary(op, ty, args[0], args[1]).unless_far(ty),
            Op::Select => self.int_select(args),
            Op::Cast(_) | Op::SaturatingCast(_) if ty == Type::Bool => IntSpan::of_type(ty),
            Op::Cast(_) | Op::SaturatingCast(_) if self.exprs[args[0]].ty.is_float() => {
                truncated(&self.float(args[0]), ty)
            }
            Op::Cast(_) => self.int(args[0]),
            Op::SaturatingCast(_) => {
                let (low, high) = ty.int_range().unwrap_or_default();
                let (low, high) = (IntSpan::constant(low), IntSpan::constant(high));
                self.int(args[0]).min(&high, i64::MAX).max(&low, i64::MIN)
            }
            Op::Reinterpret(_) | Op::Const(_) => IntSpan::of_type(ty),
        }
    }

    fn int_binary(&self, op: BinaryOp, ty: Type, a: ExprId, b: ExprId) -> IntSpan {
        let (left, right) = (self.int(a), self.int(b));
        let combined = |factor: i64| {
            let linear = self.linear(a).add_scaled(self.linear(b), factor);
            linear.map(|linear| self.span_of_linear(&linear)).filter(|span| !span.is_far())
        };
        let sum = || combined(1);
        match op {
            BinaryOp::Min => left.min(&right, sum().map_or(i64::MAX, |sum| sum.max.div_euclid(2))),
            BinaryOp::Max => left.max(&right, sum().map_or(i64::MIN, |sum| -((-sum.min).div_euclid(2)))),
            BinaryOp::Div => match right.singleton() {
                Some(0) => IntSpan::constant(0),
                Some(divisor) => left.div(divisor),
                None => {
                    let reach = left.min.abs().max(left.max.abs());
                    let low = if left.min >= 0 && right.min >= 0 { 0 } else { -reach };
                    IntSpan::fixed(low, reach)
                }
            },
            BinaryOp::Mod => match right.singleton() {
                Some(0) => IntSpan::constant(0),
                Some(divisor) if left.is_far() => IntSpan::fixed(0, divisor.abs() - 1),
                Some(divisor) => self.remainder(a, divisor.abs()),
                None => IntSpan::fixed(0, (right.min.abs().max(right.max.abs()) - 1).max(0)),
            },
            BinaryOp::Shr => match right.singleton() {
                // Values that are not far have at most 62 bits.
                Some(amount) => left.div(1 << (amount & (8 * ty.bytes() as i64 - 1)).min(62)),
                None => IntSpan::fixed(left.min.min(0), left.max.max(0)),
            },
            BinaryOp::Average => {
                let sum = sum().unwrap_or_else(|| left.add(&right));
                sum.add(&IntSpan::constant(1)).div(2)
            }
            BinaryOp::Absd => {
                let difference = combined(-1).unwrap_or_else(|| left.add(&right.scale(-1)));
                int_unary(UnaryOp::Abs, Type::I32, difference)
            }
            _ => int_ranges(op, ty, left, right),
        }
    }

    /// `a mod divisor`. Exact for sums of tiles whose start is known modulo the divisor.
    fn remainder(&self, a: ExprId, divisor: i64) -> IntSpan {
        let span = self.int(a);
        let period = span.min.div_euclid(divisor);
        if span.max.div_euclid(divisor) == period {
            return span.add(&IntSpan::constant(-period * divisor));
        }
        if divisor > MAX_ENUMERATED_MODULUS {
            return IntSpan::fixed(0, divisor - 1);
        }
        let step = gcd(span.lower.modulus(), divisor);
        let size = divisor as usize;
        let mut reached = vec![false; size];
        for start in (0..divisor / step).map(|k| k * step + span.lower.remainder()) {
            reached[start.rem_euclid(divisor) as usize] = true;
        }
        for (atom, factor) in &self.linear(a).terms {
            if reached.iter().all(|hit| *hit) {
                break;
            }
            let stride = (factor.unsigned_abs() % divisor.unsigned_abs()) as i64;
            let turns = divisor / gcd(stride, divisor);
            let before = reached.clone();
            for start in (0..size).filter(|start| before[*start]) {
                for k in 1..=self.atom(*atom).width.min(turns - 1) {
                    reached[((start as i64 + k * stride) % divisor) as usize] = true;
                }
            }
        }
        let first = reached.iter().position(|hit| *hit).unwrap_or(0);
        let last = reached.iter().rposition(|hit| *hit).unwrap_or(size - 1);
        IntSpan::fixed(first as i64, last as i64)
    }

    fn int_select(&self, args: &[ExprId]) -> IntSpan {
        let (condition, a, b) = (self.int(args[0]), self.int(args[1]), self.int(args[2]));
        match condition.singleton() {
            Some(0) => return b,
            Some(_) => return a,
            None => {}
        }
        // Two values at a constant distance stay close wherever the box is.
        let distance = self.linear(args[1]).add_scaled(self.linear(args[2]), -1);
        match distance.filter(Linear::is_constant) {
            Some(Linear { constant, .. }) => {
                let (low, high) = if constant < 0 { (a, b) } else { (b, a) };
                let width = low.width.saturating_add(constant.abs());
                IntSpan { min: low.min, max: high.max, width, lower: low.lower, upper: high.upper }
            }
            None => a.union(&b),
        }
    }

    fn float_node(&self, id: ExprId) -> FloatSpan {
        let node = &self.exprs[id];
        if node.ty != Type::F32 {
            return FloatSpan::ANY;
        }
        match node.kind {
            NodeKind::Param(param) => match self.environment.param(param) {
                Span::Float(span) => span,
                Span::Int(_) => FloatSpan::ANY,
            },
            NodeKind::Call(func, value) => match self.environment.value(func, value as usize, node.ty) {
                Span::Float(span) => span,
                Span::Int(_) => FloatSpan::ANY,
            },
            NodeKind::Table(table) => match self.table_node(table, &node.args) {
                Span::Float(span) => span,
                Span::Int(_) => FloatSpan::ANY,
            },
            NodeKind::Op(op) => match self.folded(op, &node.args).and_then(Value::get::<f32>) {
                Some(value) => FloatSpan::constant(value),
                None => self.float_op(op, &node.args),
            },
            _ => FloatSpan::ANY,
        }
    }

    fn float_op(&self, op: Op, args: &[ExprId]) -> FloatSpan {
        match op {
            Op::Const(value) => value.get::<f32>().map_or(FloatSpan::ANY, FloatSpan::constant),
            Op::Unary(op) => float_unary(op, self.float(args[0])),
            Op::Binary(op) => float_binary(op, self.float(args[0]), self.float(args[1])),
            Op::Cast(_) | Op::SaturatingCast(_) if self.exprs[args[0]].ty.is_float() => FloatSpan::ANY,
            Op::Cast(_) | Op::SaturatingCast(_) if self.is_far(args[0]) => FloatSpan::ANY,
            Op::Cast(_) | Op::SaturatingCast(_) => {
                let span = self.int(args[0]);
                FloatSpan::new(span.min as f32, span.max as f32, span.width as f32, false)
            }
            Op::Select => {
                let (a, b) = (self.float(args[1]), self.float(args[2]));
                match self.int(args[0]).singleton() {
                    Some(0) => b,
                    Some(_) => a,
                    None => a.union(&b),
                }
            }
            Op::Reinterpret(_) => FloatSpan::ANY,
        }
    }
}

fn int_unary(op: UnaryOp, ty: Type, a: IntSpan) -> IntSpan {
    match op {
        UnaryOp::Abs if a.min >= 0 => a,
        UnaryOp::Abs if a.max <= 0 => a.scale(-1),
        UnaryOp::Abs => IntSpan::fixed(0, a.max.max(-a.min)),
        UnaryOp::Not if ty != Type::Bool && ty != Type::U64 => {
            // The complement is -1 - a; for an unsigned type, modulo the number of its values.
            let values = if ty.is_signed() { 0 } else { ty.int_range().map_or(0, |(_, max)| max + 1) };
            a.scale(-1).add(&IntSpan::constant(values - 1))
        }
        UnaryOp::Popcount | UnaryOp::LeadingZeros => {
            let range = interval::result(Op::Unary(op), ty, &[(ty, a.interval())]);
            IntSpan::fixed(range.min, range.max)
        }
        _ => IntSpan::of_type(ty),
    }
}

/// Operations for which the operands' ranges are enough.
fn int_ranges(op: BinaryOp, ty: Type, a: IntSpan, b: IntSpan) -> IntSpan {
    let (natural, other) = (a.min >= 0 && b.min >= 0, IntSpan::of_type(ty));
    match op {
        BinaryOp::Mul => {
            let ends = [(a.min, b.min), (a.min, b.max), (a.max, b.min), (a.max, b.max)];
            let products = ends.map(|(x, y)| x.saturating_mul(y));
            products.into_iter().map(IntSpan::constant).reduce(|x, y| x.union(&y)).unwrap_or(other)
        }
        BinaryOp::Shl if natural && b.max < 32 => {
            IntSpan::fixed(a.min << b.min, a.max.saturating_mul(1 << b.max))
        }
        BinaryOp::And if natural => IntSpan::fixed(0, a.max.min(b.max)),
        BinaryOp::Or | BinaryOp::Xor if natural => {
            let bits = (a.max | b.max) as u64;
            IntSpan::fixed(0, (bits + 1).next_power_of_two() as i64 - 1)
        }
        _ => other,
    }
}

/// The span of a float converted to an integer type.
fn truncated(span: &FloatSpan, ty: Type) -> IntSpan {
    let to_int = |value: f32| {
        let wide = f64::from(value) as i64;
        ty.int_range().map_or(wide, |(low, high)| wide.clamp(low, high))
    };
    let (mut min, mut max) = (to_int(span.min), to_int(span.max));
    if span.nan {
        (min, max) = (min.min(0), max.max(0));
    }
    let whole = IntSpan::fixed(min, max);
    let width = (f64::from(span.width.floor()) as i64).saturating_add(1);
    if span.nan || width >= whole.width {
        return whole;
    }
    use crate::affine::Congruence;
    IntSpan { width, lower: Congruence::ANY, upper: Congruence::ANY, ..whole }
}

fn float_unary(op: UnaryOp, a: FloatSpan) -> FloatSpan {
    // The approximations are monotone only up to a few units in the last place.
    let loose = |f: fn(f32) -> f32| {
        FloatSpan::fixed(f(a.min) - f(a.min).abs() * 1e-5, f(a.max) + f(a.max).abs() * 1e-5, a.nan)
    };
    match op {
        UnaryOp::Neg => FloatSpan { min: -a.max, max: -a.min, ..a },
        UnaryOp::Abs if a.min >= 0.0 => a,
        UnaryOp::Abs => FloatSpan::fixed(0.0, a.max.max(-a.min), a.nan),
        UnaryOp::Floor => a.monotone(1.0, f32::floor),
        UnaryOp::Ceil => a.monotone(1.0, f32::ceil),
        UnaryOp::Round => a.monotone(1.0, f32::round_ties_even),
        UnaryOp::Sqrt if a.min >= 0.0 => FloatSpan::fixed(a.min.sqrt(), a.max.sqrt(), a.nan),
        UnaryOp::Exp | UnaryOp::FastExp => {
            let span = loose(if op == UnaryOp::Exp { crate::math::exp } else { crate::math::fast_exp });
            FloatSpan { nan: true, ..span }
        }
        UnaryOp::Sin | UnaryOp::Cos if a.min > -3000.0 && a.max < 3000.0 => {
            FloatSpan::fixed(-1.0001, 1.0001, a.nan)
        }
        UnaryOp::Tanh | UnaryOp::Erf => FloatSpan::fixed(-1.0001, 1.0001, a.nan),
        UnaryOp::Atan => FloatSpan::fixed(-1.571, 1.571, a.nan),
        UnaryOp::Asin => FloatSpan::fixed(-1.571, 1.571, true),
        UnaryOp::Acos => FloatSpan::fixed(0.0, 3.15, true),
        UnaryOp::Exp2 => loose(crate::math::exp2),
        UnaryOp::Expm1 => loose(crate::math::expm1),
        UnaryOp::Log2 if a.min > 0.0 => loose(crate::math::log2),
        UnaryOp::Log1p if a.min > -1.0 => loose(crate::math::log1p),
        UnaryOp::Rsqrt if a.min > 0.0 => {
            FloatSpan::fixed(crate::math::rsqrt(a.max), crate::math::rsqrt(a.min), a.nan)
        }
        _ => FloatSpan::ANY,
    }
}

fn float_binary(op: BinaryOp, a: FloatSpan, b: FloatSpan) -> FloatSpan {
    match op {
        BinaryOp::Add => a.corners(&b, a.width + b.width, |x, y| x + y),
        BinaryOp::Sub => a.corners(&b, a.width + b.width, |x, y| x - y),
        BinaryOp::Mul => {
            let width = match (a.singleton(), b.singleton()) {
                (_, Some(factor)) => a.width * factor.abs(),
                (Some(factor), _) => b.width * factor.abs(),
                _ => f32::INFINITY,
            };
            let product = a.corners(&b, width, |x, y| x * y);
            // Zero times infinity is NaN; it can occur wherever the ranges contain both.
            let meet = |a: FloatSpan, b: FloatSpan| {
                a.min <= 0.0 && a.max >= 0.0 && (b.min.is_infinite() || b.max.is_infinite())
            };
            FloatSpan { nan: product.nan || meet(a, b) || meet(b, a), ..product }
        }
        BinaryOp::Div if b.min > 0.0 || b.max < 0.0 => {
            let width = b.singleton().map_or(f32::INFINITY, |divisor| a.width / divisor.abs());
            a.corners(&b, width, |x, y| x / y)
        }
        BinaryOp::Min | BinaryOp::Max => {
            let pick = if op == BinaryOp::Min { f32::min } else { f32::max };
            let both = FloatSpan::new(pick(a.min, b.min), pick(a.max, b.max), a.width.max(b.width), false);
            // A NaN operand gives the other operand.
            let both = if a.nan { both.union(&FloatSpan { nan: false, ..b }) } else { both };
            let both = if b.nan { both.union(&FloatSpan { nan: false, ..a }) } else { both };
            FloatSpan { nan: a.nan && b.nan, ..both }
        }
        BinaryOp::Atan2 => FloatSpan::fixed(-3.15, 3.15, a.nan || b.nan),
        BinaryOp::Absd => float_unary(UnaryOp::Abs, a.corners(&b, f32::INFINITY, |x, y| x - y)),
        _ => FloatSpan::ANY,
    }
}
