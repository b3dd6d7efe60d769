//! Assigns types to parsed expressions, and converts them to operations of the language.

use std::collections::BTreeMap;

use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{Type, Value};

use super::syntax::{Item, Raw, RawBlock, RawStatement, items};
use super::{Block, Expr, ExprKind, Function, Local, Statement};

/// The functions in the text of source files.
pub(super) fn functions(sources: &[&str]) -> Vec<Function> {
    let (mut functions, mut constants) = (Vec::new(), Constants::default());
    for item in sources.iter().flat_map(|source| items(source)) {
        match item {
            Item::Const(name, ty, value) => {
                let values = match &value {
                    Raw::Array(values) => values.iter().map(|value| constants.value(value, ty)).collect(),
                    value => vec![constants.value(value, ty)],
                };
                constants.0.insert(name, values);
            }
            Item::Fn(name, params, result, body) => {
                let mut typer = Typer {
                    functions: &functions,
                    constants: &constants,
                    locals: Vec::new(),
                    scope: Vec::new(),
                    statements: Vec::new(),
                };
                let count = params.len();
                params.into_iter().for_each(|(name, types)| _ = typer.bind(name, types));
                let body = typer.block(&body, &result);
                let locals = typer.locals;
                functions.push(Function { name: name.to_owned(), params: count, result, locals, body });
            }
        }
    }
    functions
}

/// The values of constants: one, or those of an array. A later file may hide the constants of an earlier one.
#[derive(Default)]
struct Constants<'a>(BTreeMap<&'a str, Vec<Value>>);

impl Constants<'_> {
    /// The value of a constant expression.
    fn value(&self, raw: &Raw<'_>, ty: Type) -> Value {
        match raw {
            Raw::Number(text) => number(text, ty),
            Raw::Path(None, name) => self.0[name][0],
            Raw::Path(Some(_), name) => named(name, ty),
            Raw::Index(array, index) => match (&**array, &**index) {
                (Raw::Path(None, name), Raw::Number(index)) => {
                    self.0[name][index.parse::<usize>().unwrap_or(0)]
                }
                other => panic!("{other:?} is no constant"),
            },
            Raw::Unary("-", a) => Op::Unary(UnaryOp::Neg).eval(&[self.value(a, ty)]),
            Raw::Binary(sign, sides) => {
                Op::Binary(operator(sign)).eval(&[self.value(&sides[0], ty), self.value(&sides[1], ty)])
            }
            other => panic!("{other:?} is no constant"),
        }
    }
}

fn number(text: &str, ty: Type) -> Value {
    let digits = text.replace('_', "");
    let int = || match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let found = match ty {
        Type::F32 => digits.parse().ok().map(|value: f32| Value::from(value)),
        Type::F64 => digits.parse().ok().map(|value: f64| Value::from(value)),
        ty => int().ok().map(|bits| Value::from_bits(ty, bits)),
    };
    found.unwrap_or_else(|| panic!("`{text}` is no {ty}"))
}

/// A constant of the standard library.
fn named(name: &str, ty: Type) -> Value {
    let (single, double) = match name {
        "INFINITY" => (f32::INFINITY, f64::INFINITY),
        "NEG_INFINITY" => (f32::NEG_INFINITY, f64::NEG_INFINITY),
        "NAN" => (f32::NAN, f64::NAN),
        "MIN_POSITIVE" => (f32::MIN_POSITIVE, f64::MIN_POSITIVE),
        "FRAC_2_PI" => (std::f32::consts::FRAC_2_PI, std::f64::consts::FRAC_2_PI),
        "FRAC_PI_2" => (std::f32::consts::FRAC_PI_2, std::f64::consts::FRAC_PI_2),
        "LOG2_E" => (std::f32::consts::LOG2_E, std::f64::consts::LOG2_E),
        "SQRT_2" => (std::f32::consts::SQRT_2, std::f64::consts::SQRT_2),
        other => panic!("`{other}` is no constant"),
    };
    if ty == Type::F32 { single.into() } else { double.into() }
}

fn operator(sign: &str) -> BinaryOp {
    match sign {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "&" | "&&" => BinaryOp::And,
        "|" | "||" => BinaryOp::Or,
        "^" => BinaryOp::Xor,
        "<<" => BinaryOp::Shl,
        ">>" => BinaryOp::Shr,
        "==" => BinaryOp::Eq,
        "!=" => BinaryOp::Ne,
        "<" | ">" => BinaryOp::Lt,
        "<=" | ">=" => BinaryOp::Le,
        // Integer division differs in Rust.
        "/" => BinaryOp::Div,
        other => panic!("`{other}` is no operator"),
    }
}

/// The unsigned integer with as many bits.
fn bits_of(ty: Type) -> Type {
    if ty == Type::F32 { Type::U32 } else { Type::U64 }
}

fn constant(value: impl Into<Value>) -> Expr {
    let value = value.into();
    Expr { types: vec![value.ty()], kind: ExprKind::Op(Op::Const(value), Vec::new()) }
}

/// An operation on operands of the right types.
fn apply<const N: usize>(op: Op, args: [Expr; N]) -> Expr {
    let types: Vec<Type> = args.iter().map(|arg| arg.types[0]).collect();
    let ty = op.result_type(&types).unwrap_or_else(|fault| panic!("{} of {types:?}: {fault:?}", op.name()));
    let values: Vec<Value> = args.iter().filter_map(Expr::constant).collect();
    if values.len() == N {
        return constant(op.eval(&values));
    }
    Expr { types: vec![ty], kind: ExprKind::Op(op, args.into()) }
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    apply(Op::Binary(op), [a, b])
}

fn cast(to: Type, a: Expr) -> Expr {
    if a.types == [to] { a } else { apply(Op::Cast(to), [a]) }
}

struct Typer<'a> {
    functions: &'a [Function],
    constants: &'a Constants<'a>,
    locals: Vec<Local>,
    /// The names that are visible; the last one of a name counts.
    scope: Vec<(String, usize)>,
    /// The statements of the block that is being made.
    statements: Vec<Statement>,
}

impl Typer<'_> {
    fn bind(&mut self, name: &str, types: Vec<Type>) -> usize {
        let id = self.locals.len();
        self.locals.push(Local { name: name.to_owned(), types });
        self.scope.push((name.to_owned(), id));
        id
    }

    fn block(&mut self, raw: &RawBlock<'_>, result: &[Type]) -> Block {
        let (outside, visible) = (std::mem::take(&mut self.statements), self.scope.len());
        for statement in &raw.statements {
            match statement {
                RawStatement::Let(names, value) => {
                    let types = self.known(value);
                    let value = self.typed(value, &types);
                    let ids = match names[..] {
                        [name] => vec![self.bind(name, types)],
                        _ => names.iter().zip(types).map(|(name, ty)| self.bind(name, vec![ty])).collect(),
                    };
                    self.statements.push(Statement::Let(ids, value));
                }
                RawStatement::Leave(condition, body) => {
                    let condition = self.one(condition, Type::Bool);
                    let body = self.block(body, result);
                    self.statements.push(Statement::Leave(condition, body));
                }
            }
        }
        let value = self.typed(&raw.value, result);
        self.scope.truncate(visible);
        Block { statements: std::mem::replace(&mut self.statements, outside), value }
    }

    fn local(&self, name: &str) -> Option<usize> {
        self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    fn function(&self, name: &str) -> usize {
        let found = self.functions.iter().rposition(|function| function.name == name);
        found.unwrap_or_else(|| panic!("`{name}` is called before it is defined"))
    }

    /// The types of a value; `i32` where nothing determines it, as in Rust.
    fn known(&self, raw: &Raw<'_>) -> Vec<Type> {
        self.types(raw).into_iter().map(|ty| ty.unwrap_or(Type::I32)).collect()
    }

    /// The types of a value, as far as the value itself determines them.
    fn types(&self, raw: &Raw<'_>) -> Vec<Option<Type>> {
        let all = |types: &[Type]| types.iter().copied().map(Some).collect();
        let either = |a: &Raw<'_>, b: &Raw<'_>| {
            self.types(a).into_iter().zip(self.types(b)).map(|(a, b)| a.or(b)).collect()
        };
        let first = |raw: &Raw<'_>| self.types(raw)[0];
        match raw {
            Raw::Number(_) | Raw::Array(_) => vec![None],
            Raw::Path(Some(before), _) => vec![Type::ALL.into_iter().find(|ty| ty.name() == *before)],
            Raw::Path(None, name) => match self.local(name) {
                Some(id) => all(&self.locals[id].types),
                None => vec![Some(self.constants.0[name][0].ty())],
            },
            Raw::Call(Some(ty), ..) => vec![Type::ALL.into_iter().find(|known| known.name() == *ty)],
            Raw::Call(None, "horner" | "polynomial", args) => vec![first(&args[0])],
            Raw::Call(None, "mul_high", _) => vec![Some(Type::U64)],
            Raw::Call(None, name, _) => all(&self.functions[self.function(name)].result),
            Raw::Method(a, method, _) => vec![match *method {
                "is_nan" | "is_infinite" | "is_sign_negative" => Some(Type::Bool),
                "to_bits" => first(a).map(bits_of),
                "leading_zeros" => Some(Type::U32),
                _ => first(a),
            }],
            Raw::Index(array, _) | Raw::First(array, _) => self.types(array),
            Raw::Field(tuple, field) => vec![self.types(tuple)[*field]],
            Raw::Unary(_, a) => self.types(a),
            Raw::Binary("==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||", _) => vec![Some(Type::Bool)],
            Raw::Binary("<<" | ">>", sides) => self.types(&sides[0]),
            Raw::Binary(_, sides) => either(&sides[0], &sides[1]),
            Raw::Cast(a, to) => vec![to.or(first(a))],
            Raw::If(parts) => either(&parts[1], &parts[2]),
            Raw::Tuple(parts) => parts.iter().map(first).collect(),
        }
    }

    /// A value that determines its own type.
    fn own(&mut self, raw: &Raw<'_>) -> Expr {
        let types = self.known(raw);
        self.typed(raw, &types)
    }

    fn one(&mut self, raw: &Raw<'_>, ty: Type) -> Expr {
        self.typed(raw, &[ty])
    }

    fn typed(&mut self, raw: &Raw<'_>, types: &[Type]) -> Expr {
        let ty = types[0];
        let made = |kind| Expr { types: types.to_vec(), kind };
        match raw {
            Raw::Number(_) | Raw::Path(Some(_), _) => constant(self.constants.value(raw, ty)),
            Raw::Path(None, name) => match self.local(name) {
                Some(id) => made(ExprKind::Local(id)),
                None => constant(self.constants.0[name][0]),
            },
            Raw::Call(before, name, args) => self.call(*before, name, args, ty),
            Raw::Method(a, method, args) => self.method(a, method, args, ty),
            Raw::Index(array, index) => match (&**array, &**index) {
                (_, Raw::Number(_)) => constant(self.constants.value(raw, ty)),
                (Raw::Path(None, name), index) => {
                    let index = self.own(index);
                    made(ExprKind::Element(
                        (*name).to_owned(),
                        self.constants.0[name].clone(),
                        Box::new(index),
                    ))
                }
                other => panic!("{other:?} is no element"),
            },
            Raw::Field(tuple, field) => made(ExprKind::Field(Box::new(self.own(tuple)), *field)),
            Raw::Unary("-", a) if matches!(**a, Raw::Number(_)) => constant(self.constants.value(raw, ty)),
            Raw::Unary(sign, a) => {
                let op = if *sign == "-" { UnaryOp::Neg } else { UnaryOp::Not };
                apply(Op::Unary(op), [self.one(a, ty)])
            }
            Raw::Binary(sign, sides) => self.operation(sign, sides, ty),
            Raw::Cast(a, Some(to)) => cast(*to, self.own(a)),
            Raw::Cast(a, None) => self.own(a),
            Raw::If(parts) => {
                let condition = self.one(&parts[0], Type::Bool);
                let (yes, no) = (self.typed(&parts[1], types), self.typed(&parts[2], types));
                made(ExprKind::If(Box::new([condition, yes, no])))
            }
            Raw::Tuple(parts) => {
                made(ExprKind::Tuple(parts.iter().zip(types).map(|(part, ty)| self.one(part, *ty)).collect()))
            }
            Raw::First(..) | Raw::Array(_) => panic!("{raw:?} is no value"),
        }
    }

    fn operation(&mut self, sign: &str, [a, b]: &[Raw<'_>; 2], ty: Type) -> Expr {
        let op = operator(sign);
        assert!(op != BinaryOp::Div || ty.is_float(), "quotients of integers are others in Rust");
        match sign {
            "<<" | ">>" => {
                let (a, b) = (self.one(a, ty), self.own(b));
                binary(op, a, cast(ty, b))
            }
            "==" | "!=" | "<" | "<=" | ">" | ">=" => {
                let operands = self.types(a)[0].or(self.types(b)[0]).unwrap_or(Type::I32);
                let (a, b) = (self.one(a, operands), self.one(b, operands));
                if sign.starts_with('>') { binary(op, b, a) } else { binary(op, a, b) }
            }
            _ => {
                let (a, b) = (self.one(a, ty), self.one(b, ty));
                binary(op, a, b)
            }
        }
    }

    fn method(&mut self, a: &Raw<'_>, method: &str, args: &[Raw<'_>], ty: Type) -> Expr {
        let a = self.own(a);
        let of = a.types[0];
        let unary = |op, a| apply(Op::Unary(op), [a]);
        let reinterpreted = |to, a| apply(Op::Reinterpret(to), [a]);
        let both = |typer: &mut Self, op, a| binary(op, a, typer.one(&args[0], of));
        match method {
            "abs" => unary(UnaryOp::Abs, a),
            "floor" => unary(UnaryOp::Floor, a),
            "round_ties_even" => unary(UnaryOp::Round, a),
            "sqrt" => unary(UnaryOp::Sqrt, a),
            "is_nan" => binary(BinaryOp::Ne, a.clone(), a),
            "is_infinite" => binary(BinaryOp::Eq, unary(UnaryOp::Abs, a), constant(named("INFINITY", of))),
            "to_bits" => reinterpreted(ty, a),
            "is_sign_negative" => {
                let signed = if of == Type::F32 { Type::I32 } else { Type::I64 };
                binary(BinaryOp::Lt, reinterpreted(signed, a), constant(Value::zero(signed)))
            }
            "copysign" => {
                let (bits, sign) = (bits_of(of), self.one(&args[0], of));
                let top = Value::from_bits(bits, 1 << (8 * bits.bytes() - 1));
                let rest = Op::Unary(UnaryOp::Not).eval(&[top]);
                let part = |a, mask: Value| binary(BinaryOp::And, reinterpreted(bits, a), constant(mask));
                reinterpreted(of, binary(BinaryOp::Or, part(a, rest), part(sign, top)))
            }
            "leading_zeros" => cast(ty, unary(UnaryOp::LeadingZeros, a)),
            "wrapping_neg" => unary(UnaryOp::Neg, a),
            "wrapping_add" => both(self, BinaryOp::Add, a),
            "wrapping_sub" => both(self, BinaryOp::Sub, a),
            "wrapping_mul" => both(self, BinaryOp::Mul, a),
            "clamp" => {
                let [low, high] = [&args[0], &args[1]].map(|limit| self.one(limit, of));
                binary(BinaryOp::Min, binary(BinaryOp::Max, a, low), high)
            }
            other => panic!("`{other}` is no method"),
        }
    }

    fn call(&mut self, before: Option<&str>, name: &str, args: &[Raw<'_>], ty: Type) -> Expr {
        match (before, name) {
            (Some(_), "from_bits") => apply(Op::Reinterpret(ty), [self.one(&args[0], bits_of(ty))]),
            (Some(_), "from") => cast(ty, self.own(&args[0])),
            (None, "horner") => {
                let (x, coefficients) = (self.bound(&args[0], "x", ty), self.coefficients(&args[1]));
                horner(&x, &coefficients)
            }
            (None, "polynomial") => {
                let (x, coefficients) = (self.bound(&args[0], "x", ty), self.coefficients(&args[1]));
                let square = self.kept("square", binary(BinaryOp::Mul, x.clone(), x.clone()));
                let chain = |start| {
                    let own: Vec<Value> = coefficients.iter().copied().skip(start).step_by(2).collect();
                    horner(&square, &own)
                };
                let (even, odd) = (chain(0), chain(1));
                let (high, low) =
                    if coefficients.len().is_multiple_of(2) { (even, odd) } else { (odd, even) };
                binary(BinaryOp::Add, binary(BinaryOp::Mul, high, x), low)
            }
            (None, "mul_high") => {
                let sides = [&args[0], &args[1]].map(|arg| self.one(arg, ty));
                Expr { types: vec![ty], kind: ExprKind::MulHigh(Box::new(sides)) }
            }
            (None, name) => {
                let id = self.function(name);
                let (functions, params) = (self.functions, self.functions[id].params);
                let types = functions[id].locals[..params].iter().map(|local| &local.types);
                let args = args.iter().zip(types).map(|(arg, types)| self.typed(arg, types)).collect();
                Expr { types: functions[id].result.clone(), kind: ExprKind::Call(id, args) }
            }
            (Some(before), name) => panic!("`{before}::{name}` is no function"),
        }
    }

    /// The values of an array that is an argument.
    fn coefficients(&self, raw: &Raw<'_>) -> Vec<Value> {
        match raw {
            Raw::Path(None, name) => self.constants.0[name].clone(),
            Raw::First(array, count) => self.coefficients(array)[..*count].to_vec(),
            other => panic!("{other:?} is no array"),
        }
    }

    /// A value as a local, unless it is one.
    fn bound(&mut self, raw: &Raw<'_>, name: &str, ty: Type) -> Expr {
        let value = self.one(raw, ty);
        if matches!(value.kind, ExprKind::Local(_)) { value } else { self.kept(name, value) }
    }

    /// A value as a local that no name refers to.
    fn kept(&mut self, name: &str, value: Expr) -> Expr {
        let (id, types) = (self.locals.len(), value.types.clone());
        self.locals.push(Local { name: name.to_owned(), types: types.clone() });
        self.statements.push(Statement::Let(vec![id], value));
        Expr { types, kind: ExprKind::Local(id) }
    }
}

/// A polynomial, highest power first, as one Horner chain.
fn horner(x: &Expr, coefficients: &[Value]) -> Expr {
    let terms = coefficients[1..].iter().map(|value| constant(*value));
    terms.fold(constant(coefficients[0]), |chain, term| {
        binary(BinaryOp::Add, binary(BinaryOp::Mul, chain, x.clone()), term)
    })
}
