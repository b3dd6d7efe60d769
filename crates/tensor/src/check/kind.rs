//! The types of expressions, and of floats that take their type from their context.

use warploom_lang::{Type, Value};

use super::Checker;
use crate::ast::{Assign, Name, Statement};
use crate::builtins;
use crate::error::Fault;
use crate::source::Span;
use crate::types::{meet, type_name};

/// The known type of an expression.
#[derive(Clone, Copy)]
pub(super) enum KnownType<'a> {
    Is(Type),
    Open(Open<'a>),
}

/// An open float, whose type follows from the first float that it meets: it is made of literals, integers and functions
/// of these. Without such a float, it is a `float`.
#[derive(Clone, Copy, Default)]
pub(super) struct Open<'a> {
    /// A function in it that `double` does not have.
    single: Option<&'a Name>,
    /// The literal in it that is the largest.
    largest: Option<(f64, Span)>,
}

impl<'a> KnownType<'a> {
    pub fn literal(number: f64, span: Span) -> KnownType<'a> {
        KnownType::Open(Open { single: None, largest: Some((number, span)) })
    }

    /// The type if it meets nothing else.
    pub fn alone(self) -> Type {
        match self {
            KnownType::Is(ty) => ty,
            KnownType::Open(_) => Type::F32,
        }
    }
}

impl<'a> Open<'a> {
    fn and(self, other: Open<'a>) -> Open<'a> {
        let largest = [self.largest, other.largest].into_iter().flatten();
        Open { single: self.single.or(other.single), largest: largest.max_by(|a, b| a.0.total_cmp(&b.0)) }
    }
}

impl<'a> Checker<'a> {
    /// The type in which two operands of a statement meet; `None` for `bool` with anything else.
    pub(super) fn join(
        &mut self,
        a: KnownType<'a>,
        b: KnownType<'a>,
        statement: &Statement,
    ) -> Option<KnownType<'a>> {
        match (a, b) {
            (KnownType::Is(a), KnownType::Is(b)) => meet(a, b).map(KnownType::Is),
            (KnownType::Open(a), KnownType::Open(b)) => Some(KnownType::Open(a.and(b))),
            (KnownType::Open(open), KnownType::Is(ty)) | (KnownType::Is(ty), KnownType::Open(open)) => {
                match ty {
                    Type::Bool => None,
                    ty if ty.is_float() => {
                        Some(KnownType::Is(self.settle(KnownType::Open(open), ty, statement)))
                    }
                    _ => Some(KnownType::Open(open)),
                }
            }
        }
    }

    /// Gives an open float a type, and refuses values and functions that the type lacks. Anything else keeps its type.
    pub(super) fn settle(&mut self, kind: KnownType<'a>, ty: Type, statement: &Statement) -> Type {
        let open = match kind {
            KnownType::Is(ty) => return ty,
            KnownType::Open(open) => open,
        };
        let ty = if ty.is_float() { ty } else { Type::F32 };
        if let (Type::F64, Some(name)) = (ty, open.single) {
            self.mistakes.add(name.span, Fault::NoDouble { name: name.text.clone() });
        }
        // Reductions compute floats of 16 bits in `float`.
        let held = if statement.assign == Assign::Set { ty } else { ty.accumulator() };
        if let Some((number, span)) = open.largest
            && Value::rounded(held, number).is_some_and(|value| value.as_f64().is_infinite())
        {
            self.mistakes.add(span, Fault::Large { text: format!("{number:?}"), ty: type_name(held) });
        }
        ty
    }

    /// The type of a function of numbers: the type in which they meet, and at least a float.
    pub(super) fn function(
        &mut self,
        name: &'a Name,
        kinds: &[KnownType<'a>],
        statement: &Statement,
    ) -> Option<KnownType<'a>> {
        let mut met = KnownType::Open(Open::default());
        for kind in kinds {
            met = self.join(met, *kind, statement)?;
        }
        let has_double = builtins::has_double(&name.text);
        match met {
            KnownType::Is(Type::F64) if !has_double => {
                self.mistakes.add(name.span, Fault::NoDouble { name: name.text.clone() });
                None
            }
            KnownType::Open(open) if !has_double => {
                Some(KnownType::Open(Open { single: open.single.or(Some(name)), ..open }))
            }
            met => Some(met),
        }
    }
}
