//! The scalar types of the notation, and the types of the language that represent them.
//!
//! `bfloat16` is not in the notation of the paper.

use warploom_lang::Type;

/// A scalar type of the notation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Scalar {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

/// Every name of a type. The first name of a type is the one that is printed.
const NAMES: [(&str, Scalar); 18] = [
    ("bool", Scalar::Bool),
    ("uint8", Scalar::U8),
    ("byte", Scalar::U8),
    ("uint16", Scalar::U16),
    ("uint32", Scalar::U32),
    ("uint64", Scalar::U64),
    ("int8", Scalar::I8),
    ("int16", Scalar::I16),
    ("int32", Scalar::I32),
    ("int", Scalar::I32),
    ("int64", Scalar::I64),
    ("float16", Scalar::F16),
    ("half", Scalar::F16),
    ("bfloat16", Scalar::Bf16),
    ("float", Scalar::F32),
    ("float32", Scalar::F32),
    ("double", Scalar::F64),
    ("float64", Scalar::F64),
];

impl Scalar {
    /// The type with this name.
    pub fn named(name: &str) -> Option<Scalar> {
        // Most names are too short for a type.
        if name.len() < 3 {
            return None;
        }
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, scalar)| *scalar)
    }

    /// The name that is printed.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, scalar)| *scalar == self).map_or("?", |(name, _)| name)
    }

    /// The type that Warploom computes with.
    pub fn lang(self) -> Type {
        match self {
            Scalar::Bool => Type::Bool,
            Scalar::U8 => Type::U8,
            Scalar::U16 => Type::U16,
            Scalar::U32 => Type::U32,
            Scalar::U64 => Type::U64,
            Scalar::I8 => Type::I8,
            Scalar::I16 => Type::I16,
            Scalar::I32 => Type::I32,
            Scalar::I64 => Type::I64,
            Scalar::F16 => Type::F16,
            Scalar::Bf16 => Type::BF16,
            Scalar::F32 => Type::F32,
            Scalar::F64 => Type::F64,
        }
    }
}

/// The notation's name of a type.
pub(crate) fn type_name(ty: Type) -> &'static str {
    let of = |(_, scalar): &&(&str, Scalar)| scalar.lang() == ty;
    NAMES.iter().find(of).map_or(ty.name(), |(name, _)| name)
}

/// The type in which two operands meet: float over integer, the wider float, the wider unsigned,
/// else a signed integer of the wider width. The two floats of 16 bits meet at `float`. `None` for
/// `bool` with anything else.
pub(crate) fn meet(a: Type, b: Type) -> Option<Type> {
    match (a.is_float(), b.is_float()) {
        _ if a == b => Some(a),
        _ if a == Type::Bool || b == Type::Bool => None,
        (true, true) if a == Type::F64 || b == Type::F64 => Some(Type::F64),
        (true, true) => Some(Type::F32),
        (true, false) => Some(a),
        (false, true) => Some(b),
        (false, false) => {
            let bytes = a.bytes().max(b.bytes());
            let signed = a.is_signed() || b.is_signed();
            let fits = |ty: &Type| ty.is_int() && ty.bytes() == bytes && ty.is_signed() == signed;
            Type::ALL.into_iter().find(fits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_meet_by_the_rules_of_the_notation() {
        assert_eq!(meet(Type::F32, Type::I32), Some(Type::F32));
        assert_eq!(meet(Type::U8, Type::U16), Some(Type::U16));
        assert_eq!(meet(Type::U32, Type::I8), Some(Type::I32));
        assert_eq!(meet(Type::U8, Type::I8), Some(Type::I8));
        assert_eq!(meet(Type::Bool, Type::I32), None);
        assert_eq!(meet(Type::F16, Type::BF16), Some(Type::F32));
        assert_eq!(meet(Type::BF16, Type::F32), Some(Type::F32));
        assert_eq!(meet(Type::F64, Type::F16), Some(Type::F64));
        assert_eq!(meet(Type::F16, Type::I64), Some(Type::F16));
        assert_eq!(meet(Type::U64, Type::U8), Some(Type::U64));
        assert_eq!(meet(Type::U64, Type::I8), Some(Type::I64));
        assert_eq!(meet(Type::U32, Type::I64), Some(Type::I64));
    }

    #[test]
    fn every_type_is_printed_by_a_name_that_reads_as_itself() {
        for (_, scalar) in NAMES {
            assert_eq!(Scalar::named(scalar.name()), Some(scalar));
        }
        assert_eq!((type_name(Type::F32), Scalar::named("double")), ("float", Some(Scalar::F64)));
    }
}
