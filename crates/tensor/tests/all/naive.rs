//! A naive evaluator over the tree: loops over given ranges, values read from whole tensors.

pub mod harness;
mod types;

use std::cell::Cell;
use std::collections::HashMap;

use warploom_lang::Type;
use warploom_tensor::ast::{Assign, Binary, Clause, Def, Expr, ExprKind, Reduction, Statement, Unary};

pub use types::V;
use types::{Kind, binary, meet, rounded};

/// A tensor, row-major.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub shape: Vec<i64>,
    pub data: Vec<V>,
    ty: Kind,
    /// The statement and ranges of literals that have no type yet.
    origin: Option<(Statement, Ranges)>,
    read: Cell<bool>,
}

impl Tensor {
    pub fn from_fn(shape: &[i64], ty: Type, mut value: impl FnMut(&[i64]) -> V) -> Tensor {
        let data = points(shape).iter().map(|point| value(point)).collect();
        Tensor { shape: shape.to_vec(), data, ty: Some(ty), origin: None, read: Cell::new(false) }
    }

    /// The type of the elements.
    pub fn ty(&self) -> Type {
        self.ty.unwrap_or(Type::F32)
    }

    /// The type, if it can no longer change.
    fn kind(&self) -> Kind {
        if self.read.get() { Some(self.ty()) } else { self.ty }
    }

    pub fn at(&self, point: &[i64]) -> V {
        self.data[offset(&self.shape, point)]
    }
}

fn offset(shape: &[i64], point: &[i64]) -> usize {
    assert_eq!(point.len(), shape.len());
    let step = |offset: i64, (at, size): (&i64, &i64)| {
        assert!((0..*size).contains(at), "{point:?} is outside {shape:?}");
        offset * size + at
    };
    point.iter().zip(shape).fold(0, step) as usize
}

/// All points of a box at the origin, the last coordinate fastest.
pub fn points(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for size in shape {
        all = all
            .iter()
            .flat_map(|point| (0..*size).map(move |at| [point.as_slice(), &[at]].concat()))
            .collect();
    }
    all
}

/// The range of each index of a statement: low, and one past high.
pub type Ranges = Vec<(String, i64, i64)>;

pub struct Naive {
    pub tensors: HashMap<String, Tensor>,
    pub sizes: HashMap<String, i64>,
}

struct Place<'a> {
    indices: HashMap<&'a str, i64>,
    lets: HashMap<&'a str, &'a Expr>,
    /// Whether floats of 16 bits are computed in 32 bits.
    wide: bool,
}

impl Place<'_> {
    fn work(&self, ty: Type) -> Type {
        if self.wide { ty.accumulator() } else { ty }
    }
}

impl Naive {
    pub fn run(&mut self, def: &Def, ranges: &[Ranges]) {
        assert_eq!(def.statements.len(), ranges.len());
        for (statement, ranges) in def.statements.iter().zip(ranges) {
            self.statement(def, statement, ranges);
        }
    }

    /// The type in which a statement stores a value of this type.
    fn stored(&self, def: &Def, statement: &Statement, value: Kind) -> Kind {
        let name = &statement.target.text;
        let result = def.results.iter().find(|result| result.name.text == *name);
        let param = def.params.iter().find(|param| param.name.text == *name);
        let declared = result.and_then(|result| result.ty.as_ref()).or(param.map(|param| &param.ty));
        let mut writes = def.statements.iter().filter(|statement| statement.target.text == *name);
        let temporary = writes.find_map(|statement| statement.ty);
        if let Some(declared) =
            declared.map(|declared| declared.scalar).or(temporary.map(|(scalar, _)| scalar))
        {
            return Some(declared.lang());
        }
        let met = self.tensors.get(name).map_or(value, |before| meet(before.kind(), value));
        if statement.assign == Assign::Set { met } else { met.or(Some(Type::F32)) }
    }

    fn statement(&mut self, def: &Def, statement: &Statement, ranges: &Ranges) {
        self.mark_reads(statement);
        let place = place(statement, ranges, &vec![0; ranges.len()], false);
        let value = self.kind(&statement.value, &place);
        let stored = self.stored(def, statement, value);
        let ty = stored.unwrap_or(Type::F32);
        let name = statement.target.text.clone();
        // Literals that nobody has read take the type of the update.
        if let Some(Tensor { origin: Some((origin, over)), read, .. }) = self.tensors.get(&name)
            && !read.get()
        {
            let tensor = self.computed(origin, over, ty, false);
            self.tensors.insert(name.clone(), tensor);
        }
        let is_half = ty.is_half() || value.is_some_and(Type::is_half);
        let mut tensor = self.computed(statement, ranges, ty, is_half && statement.assign != Assign::Set);
        if stored.is_none() {
            (tensor.ty, tensor.origin) = (None, Some((statement.clone(), ranges.clone())));
        }
        self.tensors.insert(name, tensor);
    }

    fn computed(&self, statement: &Statement, ranges: &Ranges, ty: Type, wide: bool) -> Tensor {
        let range =
            |name: &str| ranges.iter().find(|(index, ..)| index == name).map(|(_, low, high)| (*low, *high));
        let shape: Vec<i64> = statement
            .indices
            .iter()
            .map(|index| range(&index.text).expect("a range for every index").1)
            .collect();
        let sum = if statement.assign == Assign::Set { ty } else { ty.accumulator() };
        let keeps = matches!(statement.assign, Assign::Reduce { initialised: false, .. });
        let mut new: Vec<Option<V>> = match self.tensors.get(&statement.target.text) {
            Some(old) if keeps => old.data.iter().map(|value| Some(value.into_float(sum))).collect(),
            _ => vec![None; shape.iter().product::<i64>() as usize],
        };
        let extents: Vec<i64> = ranges.iter().map(|(_, low, high)| high - low).collect();
        for point in points(&extents) {
            let place = place(statement, ranges, &point, wide);
            let value = self.eval(&statement.value, &place, sum).into_float(sum);
            let left: Vec<i64> =
                statement.indices.iter().map(|index| place.indices[index.text.as_str()]).collect();
            let cell = &mut new[offset(&shape, &left)];
            *cell = Some(match (statement.assign, *cell) {
                (Assign::Reduce { op, .. }, Some(old)) => reduce(op, sum, old, value),
                _ => value,
            });
        }
        let data = new.into_iter().map(|value| value.expect("every element is written").into_float(ty));
        Tensor { shape, data: data.collect(), ty: Some(ty), origin: None, read: Cell::new(false) }
    }

    /// The type of an expression.
    fn kind(&self, expr: &Expr, place: &Place<'_>) -> Kind {
        let of = |expr: &Expr| self.kind(expr, place);
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Size(..) => Some(Type::I32),
            ExprKind::Float(_) => None,
            ExprKind::Name(name) => {
                match (place.lets.get(name.text.as_str()), self.tensors.get(&name.text)) {
                    (Some(value), _) => of(value),
                    (None, Some(scalar)) => Some(scalar.ty()),
                    (None, None) => Some(Type::I32),
                }
            }
            ExprKind::Call(name, operands) => match self.tensors.get(&name.text) {
                Some(tensor) => Some(tensor.ty()),
                None => operands.iter().fold(None, |kind, operand| meet(kind, of(operand))),
            },
            ExprKind::Cast(scalar, _) => Some(scalar.lang()),
            ExprKind::Unary(_, operand) => of(operand),
            ExprKind::Select(operands) => meet(of(&operands[1]), of(&operands[2])),
            ExprKind::Binary(op, _) if op.is_comparison() => Some(Type::Bool),
            ExprKind::Binary(_, operands) => meet(of(&operands[0]), of(&operands[1])),
        }
    }

    /// The value of an expression; `float` is the type of one that has none of its own.
    fn eval(&self, expr: &Expr, place: &Place<'_>, float: Type) -> V {
        let kind = |expr: &Expr| self.kind(expr, place);
        let at = |expr: &Expr, ty: Type| self.eval(expr, place, ty).into_float(ty);
        match &expr.kind {
            ExprKind::Int(number) => V::I(*number),
            ExprKind::Float(number) => V::F(rounded(float, *number)),
            ExprKind::Name(name) => {
                let name = name.text.as_str();
                if let Some(value) = place.lets.get(name) {
                    return self.eval(value, place, float);
                }
                let known = place.indices.get(name).or(self.sizes.get(name));
                known.map_or_else(|| self.read(name, &[]), |number| V::I(*number))
            }
            ExprKind::Size(name, dimension) => V::I(self.tensors[&name.text].shape[*dimension]),
            ExprKind::Cast(scalar, operand) => {
                let to = scalar.lang();
                self.eval(operand, place, if to.is_float() { to } else { Type::F32 }).cast(to)
            }
            ExprKind::Call(name, operands) => match self.tensors.get(&name.text) {
                Some(tensor) => {
                    let values: Vec<V> =
                        operands.iter().map(|one| self.eval(one, place, Type::F32)).collect();
                    self.read(&name.text, &indices(tensor, operands, &values))
                }
                None => {
                    let ty = place.work(kind(expr).unwrap_or(float));
                    let values: Vec<f64> = operands.iter().map(|operand| at(operand, ty).number()).collect();
                    V::F(rounded(ty, builtin(&name.text, &values)))
                }
            },
            ExprKind::Unary(Unary::Neg, operand) => match self.eval(operand, place, float) {
                V::I(int) => V::I(-int),
                other => V::F(-other.number()),
            },
            ExprKind::Unary(Unary::Not, operand) => V::B(self.eval(operand, place, Type::F32) != V::B(true)),
            ExprKind::Select(operands) => {
                let ty = place.work(kind(expr).unwrap_or(float));
                let taken = if self.eval(&operands[0], place, Type::F32) == V::B(true) { 1 } else { 2 };
                at(&operands[taken], ty)
            }
            ExprKind::Binary(op, operands) => {
                let alone = if op.is_comparison() { Type::F32 } else { float };
                let met = meet(kind(&operands[0]), kind(&operands[1]));
                let ty = place.work(met.unwrap_or(alone));
                binary(*op, ty, at(&operands[0], ty), at(&operands[1], ty))
            }
        }
    }

    fn read(&self, name: &str, point: &[i64]) -> V {
        self.tensors[name].at(point)
    }

    /// Notes which tensors a statement reads.
    fn mark_reads(&self, statement: &Statement) {
        let mut open = vec![&statement.value];
        open.extend(statement.clauses.iter().filter_map(|clause| match clause {
            Clause::Let { value, .. } | Clause::Exists(value) => Some(value),
            Clause::Range { .. } => None,
        }));
        while let Some(expr) = open.pop() {
            if let ExprKind::Name(name) | ExprKind::Call(name, _) = &expr.kind
                && let Some(tensor) = self.tensors.get(&name.text)
            {
                tensor.read.set(true);
            }
            open.extend(expr.operands());
        }
    }
}

/// The names of a statement at a point of its ranges.
fn place<'a>(statement: &'a Statement, ranges: &'a Ranges, point: &[i64], wide: bool) -> Place<'a> {
    let indices = ranges.iter().zip(point).map(|((index, low, _), at)| (index.as_str(), low + at)).collect();
    let lets = statement.clauses.iter().filter_map(|clause| match clause {
        Clause::Let { name, value } => Some((name.text.as_str(), value)),
        _ => None,
    });
    Place { indices, lets: lets.collect(), wide }
}

/// Where a read is. An index that is loaded is clamped; any other must be in bounds.
fn indices(tensor: &Tensor, operands: &[Expr], values: &[V]) -> Vec<i64> {
    let one = |dimension: usize| {
        let index = values[dimension].int();
        if loads(&operands[dimension]) { index.clamp(0, tensor.shape[dimension] - 1) } else { index }
    };
    (0..values.len()).map(one).collect()
}

fn loads(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Call(..)) || expr.operands().iter().any(loads)
}

fn reduce(op: Reduction, ty: Type, old: V, value: V) -> V {
    let op = match op {
        Reduction::Sum => Binary::Add,
        Reduction::Product => Binary::Mul,
        Reduction::Min => Binary::Min,
        Reduction::Max => Binary::Max,
    };
    binary(op, ty, old, value)
}

/// A function, to be rounded.
fn builtin(name: &str, a: &[f64]) -> f64 {
    let norm = || a.iter().map(|x| x * x).sum::<f64>().sqrt();
    match name {
        "acos" => a[0].acos(),
        "acosh" => a[0].acosh(),
        "asin" => a[0].asin(),
        "asinh" => a[0].asinh(),
        "atan" => a[0].atan(),
        "atan2" => a[0].atan2(a[1]),
        "atanh" => a[0].atanh(),
        "cbrt" => a[0].cbrt(),
        "erf" => warploom_lang::math::exact::erf(a[0]),
        "expm1" => a[0].exp_m1(),
        "log1p" => a[0].ln_1p(),
        "rcbrt" => 1.0 / a[0].cbrt(),
        "sinh" => a[0].sinh(),
        "ceil" => a[0].ceil(),
        "cos" => a[0].cos(),
        "cosh" => a[0].cosh(),
        "exp" => a[0].exp(),
        "exp10" => 10f64.powf(a[0]),
        "exp2" => a[0].exp2(),
        "fabs" => a[0].abs(),
        "floor" => a[0].floor(),
        "log" => a[0].ln(),
        "log10" => a[0].log10(),
        "log2" => a[0].log2(),
        "round" => a[0].round(),
        "rsqrt" => 1.0 / a[0].sqrt(),
        "sin" => a[0].sin(),
        "sqrt" => a[0].sqrt(),
        "tan" => a[0].tan(),
        "tanh" => a[0].tanh(),
        "trunc" => a[0].trunc(),
        "fdim" => (a[0] - a[1]).max(0.0),
        "fdivide" => a[0] / a[1],
        "fmax" | "fmaxf" => a[0].max(a[1]),
        "fmin" | "fminf" => a[0].min(a[1]),
        "pow" => a[0].powf(a[1]),
        "fma" => a[0] * a[1] + a[2],
        "hypot" | "norm3d" | "norm4d" => norm(),
        "rhypot" | "rnorm3d" | "rnorm4d" => 1.0 / norm(),
        other => panic!("no builtin {other}"),
    }
}
