//! The elementary functions of [`warploom_lang::math`] as graphs of operations.
//!
//! The Rust text of that module is their only definition. Rust compiles it to the oracle's functions, and [`functions`]
//! reads it into these graphs, which a back end prints in its language. The part of Rust that the text may use:
//!
//! - `const` of scalars and arrays; `fn` with a type for its result, after the functions that it calls;
//! - `let` of a name or of a tuple of names, `if c { ...; return v; }`, `if c { a } else { b }` as a value without statements
//!   inside, `return`;
//! - operators, `as`, tuples and their fields, elements of constant arrays, calls, and the methods in `typed`. Integer arithmetic
//!   must not overflow, unless a method says that it wraps.
//!
//! [`PRIMITIVES`] are written with loops or wider types in Rust, and are known by name here.

mod syntax;
mod typed;

use std::sync::LazyLock;

use warploom_lang::math::SOURCES;
use warploom_lang::op::Op;
use warploom_lang::{Type, Value};

/// The functions whose definitions are not read.
const PRIMITIVES: [&str; 3] = ["horner", "polynomial", "mul_high"];

/// A function of floats.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its name in Rust. A function of `f64` may have the name of one of `f32`.
    pub name: String,
    /// The number of parameters, which are the first locals.
    pub params: usize,
    /// The types of its result: one, or those of a tuple.
    pub result: Vec<Type>,
    pub locals: Vec<Local>,
    pub body: Block,
}

/// A parameter, or a variable that a `let` binds.
#[derive(Debug)]
pub(crate) struct Local {
    pub name: String,
    pub types: Vec<Type>,
}

/// Statements that are followed by a result.
#[derive(Debug)]
pub(crate) struct Block {
    pub statements: Vec<Statement>,
    pub value: Expr,
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// Binds a local, or the elements of a tuple to several.
    Let(Vec<usize>, Expr),
    /// Ends the function with the block's value where a condition holds.
    Leave(Expr, Block),
}

/// A value, with its types: one, or those of a tuple.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub types: Vec<Type>,
    pub kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// An operation of the language.
    Op(Op, Vec<Expr>),
    /// The upper half of a product of two `u64`.
    MulHigh(Box<[Expr; 2]>),
    Local(usize),
    /// An element of a constant array: its name and values, and the index.
    Element(String, Vec<Value>, Box<Expr>),
    /// A call of the function with this number.
    Call(usize, Vec<Expr>),
    /// An element of a tuple.
    Field(Box<Expr>, usize),
    /// The second where the first holds, otherwise the third; only one of them is evaluated.
    If(Box<[Expr; 3]>),
    Tuple(Vec<Expr>),
}

impl Expr {
    /// Its value, if it is a constant.
    pub fn constant(&self) -> Option<Value> {
        match self.kind {
            ExprKind::Op(Op::Const(value), _) => Some(value),
            _ => None,
        }
    }
}

/// All functions, each after those that it calls.
pub(crate) fn functions() -> &'static [Function] {
    static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| typed::functions(&SOURCES));
    &FUNCTIONS
}

/// The function of this name whose operands have this type, if there is one.
pub(crate) fn find(name: &str, ty: Type) -> Option<usize> {
    let takes = |function: &Function| function.locals[0].types == [ty];
    functions().iter().position(|function| function.name == name && takes(function))
}

#[cfg(test)]
mod tests {
    use warploom_lang::op::{BinaryOp, Class, UnaryOp};

    use super::*;

    #[test]
    fn every_elementary_function_of_the_language_is_there() {
        let unary = UnaryOp::ALL.iter().map(|op| (op.name(), op.facts()));
        let binary = BinaryOp::ALL.iter().map(|op| (op.name(), op.facts()));
        for (name, facts) in
            unary.chain(binary).filter(|(_, facts)| facts.unit.class(true) == Class::FloatSpecial)
        {
            for ty in [Type::F32, Type::F64].into_iter().filter(|ty| facts.takes.includes(*ty)) {
                assert!(find(name, ty).is_some(), "{name} of {ty}");
            }
        }
        assert!(find("rsqrt", Type::F32).is_some());
    }
}
