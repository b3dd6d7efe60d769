//! A naive evaluator over the tree: loops over given ranges, values read from whole tensors.

pub mod harness;

use std::collections::HashMap;

use warploom_tensor::ast::{Assign, Binary, Clause, Def, Expr, ExprKind, Reduction, Statement, Unary};

/// A value of the notation. Integers do not wrap here; the tests stay small.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum V {
    I(i64),
    F(f32),
    B(bool),
}

impl V {
    pub fn float(self) -> f32 {
        match self {
            V::I(int) => int as f32,
            V::F(float) => float,
            V::B(truth) => f32::from(u8::from(truth)),
        }
    }

    fn int(self) -> i64 {
        match self {
            V::I(int) => int,
            other => panic!("{other:?} is no integer"),
        }
    }
}

/// A tensor, row-major.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub shape: Vec<i64>,
    pub data: Vec<V>,
}

impl Tensor {
    pub fn from_fn(shape: &[i64], mut value: impl FnMut(&[i64]) -> V) -> Tensor {
        let data = points(shape).iter().map(|point| value(point)).collect();
        Tensor { shape: shape.to_vec(), data }
    }

    pub fn at(&self, point: &[i64]) -> V {
        self.data[self.offset(point)]
    }

    fn offset(&self, point: &[i64]) -> usize {
        assert_eq!(point.len(), self.shape.len());
        let step = |offset: i64, (at, size): (&i64, &i64)| {
            assert!((0..*size).contains(at), "{point:?} is outside {:?}", self.shape);
            offset * size + at
        };
        point.iter().zip(&self.shape).fold(0, step) as usize
    }
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
}

impl Naive {
    pub fn run(&mut self, def: &Def, ranges: &[Ranges]) {
        assert_eq!(def.statements.len(), ranges.len());
        for (statement, ranges) in def.statements.iter().zip(ranges) {
            self.statement(statement, ranges);
        }
    }

    fn statement(&mut self, statement: &Statement, ranges: &Ranges) {
        let range =
            |name: &str| ranges.iter().find(|(index, ..)| index == name).map(|(_, low, high)| (*low, *high));
        let shape: Vec<i64> = statement
            .indices
            .iter()
            .map(|index| range(&index.text).expect("a range for every index").1)
            .collect();
        let old = self.tensors.get(&statement.target.text);
        let keeps = matches!(statement.assign, Assign::Reduce { initialised: false, .. });
        let mut new: Vec<Option<V>> = match old {
            Some(old) if keeps => old.data.iter().map(|value| Some(*value)).collect(),
            _ => vec![None; shape.iter().product::<i64>() as usize],
        };
        let blank = Tensor { shape: shape.clone(), data: Vec::new() };
        let extents: Vec<i64> = ranges.iter().map(|(_, low, high)| high - low).collect();
        let mut lets = HashMap::new();
        for clause in &statement.clauses {
            if let Clause::Let { name, value } = clause {
                lets.insert(name.text.as_str(), value);
            }
        }
        for point in points(&extents) {
            let indices =
                ranges.iter().zip(&point).map(|((index, low, _), at)| (index.as_str(), low + at)).collect();
            let place = Place { indices, lets: lets.clone() };
            let value = self.eval(&statement.value, &place);
            let left: Vec<i64> =
                statement.indices.iter().map(|index| place.indices[index.text.as_str()]).collect();
            let cell = &mut new[blank.offset(&left)];
            *cell = Some(match (statement.assign, *cell) {
                (Assign::Reduce { op, .. }, Some(old)) => reduce(op, old, value),
                _ => value,
            });
        }
        let data = new.into_iter().map(|value| value.expect("every element is written")).collect();
        self.tensors.insert(statement.target.text.clone(), Tensor { shape, data });
    }

    fn eval(&self, expr: &Expr, place: &Place<'_>) -> V {
        match &expr.kind {
            ExprKind::Int(number) => V::I(*number),
            ExprKind::Float(number) => V::F(*number as f32),
            ExprKind::Name(name) => {
                let name = name.text.as_str();
                if let Some(value) = place.lets.get(name) {
                    return self.eval(value, place);
                }
                let known = place.indices.get(name).or(self.sizes.get(name));
                known.map_or_else(|| self.tensors[name].at(&[]), |number| V::I(*number))
            }
            ExprKind::Size(name, dimension) => V::I(self.tensors[&name.text].shape[*dimension]),
            ExprKind::Cast(scalar, operand) => {
                let value = self.eval(operand, place);
                match (scalar.name(), value) {
                    ("float", value) => V::F(value.float()),
                    ("int32", V::F(float)) => V::I(float as i32 as i64),
                    ("int32", value) => V::I(value.float() as i64),
                    ("bool", value) => V::B(value.float() != 0.0),
                    other => panic!("{other:?}"),
                }
            }
            ExprKind::Call(name, operands) => {
                let values: Vec<V> = operands.iter().map(|operand| self.eval(operand, place)).collect();
                match self.tensors.get(&name.text) {
                    Some(tensor) => tensor.at(&indices(tensor, operands, &values)),
                    None => V::F(builtin(
                        &name.text,
                        &values.iter().map(|value| value.float()).collect::<Vec<_>>(),
                    )),
                }
            }
            ExprKind::Unary(Unary::Neg, operand) => match self.eval(operand, place) {
                V::I(int) => V::I(-int),
                other => V::F(-other.float()),
            },
            ExprKind::Unary(Unary::Not, operand) => V::B(self.eval(operand, place) != V::B(true)),
            ExprKind::Select(operands) => match self.eval(&operands[0], place) {
                V::B(true) => self.eval(&operands[1], place),
                _ => self.eval(&operands[2], place),
            },
            ExprKind::Binary(op, operands) => {
                binary(*op, self.eval(&operands[0], place), self.eval(&operands[1], place))
            }
        }
    }
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

fn reduce(op: Reduction, old: V, value: V) -> V {
    let op = match op {
        Reduction::Sum => Binary::Add,
        Reduction::Product => Binary::Mul,
        Reduction::Min => Binary::Min,
        Reduction::Max => Binary::Max,
    };
    binary(op, old, value)
}

fn binary(op: Binary, a: V, b: V) -> V {
    match (a, b) {
        (V::B(a), V::B(b)) => V::B(match op {
            Binary::And => a && b,
            Binary::Or => a || b,
            Binary::Eq => a == b,
            _ => a != b,
        }),
        (V::I(a), V::I(b)) => match op {
            Binary::Add => V::I(a + b),
            Binary::Sub => V::I(a - b),
            Binary::Mul => V::I(a * b),
            Binary::Div | Binary::Mod if b == 0 => V::I(0),
            Binary::Div => V::I((a as f64 / b as f64).floor() as i64),
            Binary::Mod => V::I(a - b * (a as f64 / b as f64).floor() as i64),
            Binary::Min => V::I(a.min(b)),
            Binary::Max => V::I(a.max(b)),
            _ => compared(op, a as f64, b as f64),
        },
        _ => {
            let (a, b) = (a.float(), b.float());
            match op {
                Binary::Add => V::F(a + b),
                Binary::Sub => V::F(a - b),
                Binary::Mul => V::F(a * b),
                Binary::Div => V::F(a / b),
                Binary::Mod => V::F(a - b * (a / b).floor()),
                Binary::Min => V::F(a.min(b)),
                Binary::Max => V::F(a.max(b)),
                _ => compared(op, a.into(), b.into()),
            }
        }
    }
}

fn compared(op: Binary, a: f64, b: f64) -> V {
    V::B(match op {
        Binary::Lt => a < b,
        Binary::Gt => a > b,
        Binary::Le => a <= b,
        Binary::Ge => a >= b,
        Binary::Eq => a == b,
        Binary::Ne => a != b,
        other => panic!("{other:?} is no comparison"),
    })
}

fn builtin(name: &str, a: &[f32]) -> f32 {
    let norm = || a.iter().map(|x| x * x).sum::<f32>().sqrt();
    match name {
        "acos" => a[0].acos(),
        "acosh" => a[0].acosh(),
        "asin" => a[0].asin(),
        "asinh" => a[0].asinh(),
        "atan" => a[0].atan(),
        "atan2" => a[0].atan2(a[1]),
        "atanh" => a[0].atanh(),
        "cbrt" => a[0].cbrt(),
        "erf" => warploom_lang::math::exact::erf(a[0].into()) as f32,
        "expm1" => a[0].exp_m1(),
        "log1p" => a[0].ln_1p(),
        "rcbrt" => 1.0 / a[0].cbrt(),
        "sinh" => a[0].sinh(),
        "ceil" => a[0].ceil(),
        "cos" => a[0].cos(),
        "cosh" => a[0].cosh(),
        "exp" => a[0].exp(),
        "exp10" => 10f32.powf(a[0]),
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
        "fma" => a[0].mul_add(a[1], a[2]),
        "hypot" | "norm3d" | "norm4d" => norm(),
        "rhypot" | "rnorm3d" | "rnorm4d" => 1.0 / norm(),
        other => panic!("no builtin {other}"),
    }
}
