//! `+ - * / % & | ^ << >> - !` over expressions, variables, parameters, and constants as one
//! operand.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use crate::expr::{Expr, Var};
use crate::input::Param;
use crate::op::{BinaryOp, UnaryOp};
use crate::rdom::RVar;

macro_rules! binary {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        binary! { @left $trait $method $op: Expr, &Expr, Var, RVar, &Param }
        binary! { @constant $trait $method $op: i32, f32 }
    )*};
    (@left $trait:ident $method:ident $op:ident: $($left:ty),*) => {$(
        impl<T: Into<Expr>> $trait<T> for $left {
            type Output = Expr;
            #[track_caller]
            fn $method(self, right: T) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        }
    )*};
    (@constant $trait:ident $method:ident $op:ident: $($left:ty),*) => {$(
        binary! { @beside $trait $method $op $left: Expr, &Expr, Var, RVar, &Param }
    )*};
    (@beside $trait:ident $method:ident $op:ident $left:ty: $($right:ty),*) => {$(
        impl $trait<$right> for $left {
            type Output = Expr;
            #[track_caller]
            fn $method(self, right: $right) -> Expr {
                Expr::binary(BinaryOp::$op, self, right)
            }
        }
    )*};
}

binary! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Mod;
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
    Shl shl Shl;
    Shr shr Shr;
}

macro_rules! unary {
    ($($operand:ty),*) => {$(
        impl Neg for $operand {
            type Output = Expr;
            #[track_caller]
            fn neg(self) -> Expr {
                Expr::unary(UnaryOp::Neg, self)
            }
        }
        impl Not for $operand {
            type Output = Expr;
            #[track_caller]
            fn not(self) -> Expr {
                Expr::unary(UnaryOp::Not, self)
            }
        }
    )*};
}

unary! { Expr, &Expr, Var, RVar, &Param }
