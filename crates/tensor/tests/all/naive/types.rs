//! Types of expressions, and arithmetic on numbers of each type.

use warploom_lang::{Type, Value};
use warploom_tensor::ast::Binary;

/// A value of the notation. Integers do not wrap here; the tests stay small. Every float of any type is an `f64`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum V {
    I(i64),
    F(f64),
    B(bool),
}

/// A type; `None` for a float whose type follows from what it meets.
pub type Kind = Option<Type>;

impl V {
    pub fn number(self) -> f64 {
        match self {
            V::I(int) => int as f64,
            V::F(float) => float,
            V::B(truth) => f64::from(u8::from(truth)),
        }
    }

    pub fn int(self) -> i64 {
        match self {
            V::I(int) => int,
            other => panic!("{other:?} is no integer"),
        }
    }

    /// The value where a float or an integer of this type is wanted. Integers stay as they are.
    pub fn into_float(self, ty: Type) -> V {
        if ty.is_float() { V::F(rounded(ty, self.number())) } else { self }
    }

    /// What a conversion makes of the value.
    pub fn cast(self, ty: Type) -> V {
        let limits = ty.int_range();
        match (self, limits) {
            (value, _) if ty == Type::Bool => V::B(value.number() != 0.0),
            (value, None) => V::F(rounded(ty, value.number())),
            (V::F(float), Some((low, high))) => V::I((float as i64).clamp(low, high)),
            (V::I(int), Some(_)) if ty.is_wide() => V::I(int),
            (V::I(int), Some((low, high))) => V::I((int - low).rem_euclid(high - low + 1) + low),
            (V::B(truth), Some(_)) => V::I(i64::from(truth)),
        }
    }
}

/// Where two operands meet, by their ranks.
pub fn meet(a: Kind, b: Kind) -> Kind {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b).filter(|ty| ty.is_float()) };
    let floats = match (a.is_float(), b.is_float()) {
        (true, true) => [a, b],
        (true, false) => [a, a],
        (false, true) => [b, b],
        (false, false) if a == b => return Some(a),
        (false, false) => {
            let signed = [Type::I8, Type::I16, Type::I32, Type::I64];
            let unsigned = [Type::U8, Type::U16, Type::U32, Type::U64];
            let all = if a.is_signed() || b.is_signed() { signed } else { unsigned };
            return all.into_iter().find(|ty| ty.bytes() >= a.bytes() && ty.bytes() >= b.bytes());
        }
    };
    match floats {
        [a, b] if a == b => Some(a),
        both if both.contains(&Type::F64) => Some(Type::F64),
        _ => Some(Type::F32),
    }
}

pub fn rounded(ty: Type, number: f64) -> f64 {
    Value::rounded(ty, number).unwrap().as_f64()
}

/// An operator on two values of one type.
pub fn binary(op: Binary, ty: Type, a: V, b: V) -> V {
    match (a, b) {
        _ if op.is_comparison() => compared(op, a, b),
        (V::B(a), V::B(b)) => V::B(if op == Binary::And { a && b } else { a || b }),
        (V::I(a), V::I(b)) => V::I(match op {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div | Binary::Mod if b == 0 => 0,
            Binary::Div => (a as f64 / b as f64).floor() as i64,
            Binary::Mod => a - b * (a as f64 / b as f64).floor() as i64,
            Binary::Min => a.min(b),
            _ => a.max(b),
        }),
        _ if ty == Type::F64 => {
            let (a, b) = (a.number(), b.number());
            V::F(match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                Binary::Mod => a - b * (a / b).floor(),
                Binary::Min => a.min(b),
                _ => a.max(b),
            })
        }
        // Floats of 16 bits compute in 32 bits.
        _ => {
            let (a, b) = (a.number() as f32, b.number() as f32);
            let result = match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                Binary::Mod => a - b * (a / b).floor(),
                Binary::Min => a.min(b),
                _ => a.max(b),
            };
            V::F(rounded(ty, result.into()))
        }
    }
}

fn compared(op: Binary, a: V, b: V) -> V {
    let (a, b) = (a.number(), b.number());
    V::B(match op {
        Binary::Lt => a < b,
        Binary::Gt => a > b,
        Binary::Le => a <= b,
        Binary::Ge => a >= b,
        Binary::Eq => a == b,
        _ => a != b,
    })
}
