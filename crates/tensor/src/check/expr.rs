//! Names, ranks and types of expressions.

use warploom_lang::Type;

use super::{Checker, MAX_INDICES, Scope};
use crate::ast::{Binary, Expr, ExprKind, Name, Unary};
use crate::builtins::{self, SUGGESTED};
use crate::error::{Fault, counted};
use crate::names::Meaning;
use crate::types::{meet, type_name};

impl<'a> Checker<'a> {
    /// The type of an expression; `None` after a mistake in it. Notes the indices that it uses.
    pub(super) fn expr(&mut self, expr: &'a Expr, scope: &mut Scope<'a>) -> Option<Type> {
        match &expr.kind {
            ExprKind::Int(_) => Some(Type::I32),
            ExprKind::Float(_) => Some(Type::F32),
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Call(name, operands) => self.call(name, operands, expr, scope),
            ExprKind::Size(name, dimension) => self.size(name, *dimension, expr),
            ExprKind::Cast(scalar, operand) => {
                self.expr(operand, scope)?;
                self.supported(*scalar, expr.span);
                scalar.lang()
            }
            ExprKind::Unary(op, operand) => {
                let ty = self.expr(operand, scope)?;
                match op {
                    Unary::Not => self.boolean("!", ty, operand),
                    Unary::Neg => self.number("-", ty, operand),
                }
            }
            ExprKind::Binary(op, operands) => {
                let left = self.expr(&operands[0], scope);
                let right = self.expr(&operands[1], scope);
                self.binary(*op, operands, left?, right?, expr)
            }
            ExprKind::Select(operands) => {
                let [condition, one, other] = [0, 1, 2].map(|i| self.expr(&operands[i], scope));
                self.boolean("?", condition?, &operands[0])?;
                self.met(one?, other?, expr)
            }
        }
    }

    fn fail(&mut self, expr: &Expr, fault: Fault) -> Option<Type> {
        self.mistakes.add(expr.span, fault);
        None
    }

    fn boolean(&mut self, what: &'static str, ty: Type, operand: &Expr) -> Option<Type> {
        match ty {
            Type::Bool => Some(Type::Bool),
            ty => self.fail(operand, Fault::NotBool { what, ty: type_name(ty) }),
        }
    }

    fn number(&mut self, what: &'static str, ty: Type, operand: &Expr) -> Option<Type> {
        match ty {
            Type::Bool => self.fail(operand, Fault::BoolOperand { what: what.to_string() }),
            ty => Some(ty),
        }
    }

    fn met(&mut self, left: Type, right: Type, expr: &Expr) -> Option<Type> {
        let fault = Fault::Types { left: type_name(left), right: type_name(right) };
        meet(left, right).or_else(|| self.fail(expr, fault))
    }

    fn binary(
        &mut self,
        op: Binary,
        operands: &[Expr; 2],
        left: Type,
        right: Type,
        expr: &Expr,
    ) -> Option<Type> {
        if let Binary::And | Binary::Or = op {
            let left = self.boolean(op.symbol(), left, &operands[0]);
            return self.boolean(op.symbol(), right, &operands[1]).and(left);
        }
        if !matches!(op, Binary::Eq | Binary::Ne) {
            let left = self.number(op.symbol(), left, &operands[0]);
            self.number(op.symbol(), right, &operands[1]).and(left)?;
        }
        let ty = self.met(left, right, expr)?;
        Some(if op.is_comparison() { Type::Bool } else { ty })
    }

    fn name(&mut self, name: &'a Name, scope: &mut Scope<'a>) -> Option<Type> {
        let text = name.text.as_str();
        let fault = match self.names.meaning(&scope.lets, text) {
            Meaning::Let(number) => match scope.known_lets.get(number).cloned() {
                Some((ty, indices)) => {
                    indices.into_iter().for_each(|index| scope.use_index(index));
                    return ty;
                }
                None => Fault::LetOrder { name: text.to_string() },
            },
            Meaning::Size => return Some(Type::I32),
            Meaning::Index => {
                scope.use_index(text);
                return Some(Type::I32);
            }
            Meaning::Builtin => Fault::BuiltinRedefined { name: text.to_string() },
            Meaning::Tensor => match (self.names.ranks.get(text), self.types.get(text)) {
                (Some(0), Some(ty)) => return Some(*ty),
                (Some(0), None) => Fault::NoValue { name: text.to_string() },
                (rank, _) => {
                    Fault::TensorAsScalar { name: text.to_string(), rank: rank.copied().unwrap_or_default() }
                }
            },
        };
        self.mistakes.add(name.span, fault);
        None
    }

    fn call(
        &mut self,
        name: &'a Name,
        operands: &'a [Expr],
        expr: &'a Expr,
        scope: &mut Scope<'a>,
    ) -> Option<Type> {
        let types: Vec<Option<Type>> = operands.iter().map(|operand| self.expr(operand, scope)).collect();
        let text = name.text.clone();
        let fault = match self.names.meaning(&scope.lets, &text) {
            Meaning::Tensor => return self.read(name, operands, &types, scope),
            Meaning::Builtin => match builtins::arguments(&text) {
                None => Fault::UnsupportedBuiltin { name: text, supported: SUGGESTED },
                Some(expected) if expected != operands.len() => {
                    let got = counted(operands.len(), "argument", "arguments");
                    let many = if expected == 1 { "argument" } else { "arguments" };
                    Fault::Arguments { name: text, expected: format!("{expected} {many}"), got }
                }
                Some(_) if types.contains(&Some(Type::Bool)) => {
                    return self.fail(expr, Fault::BoolOperand { what: text });
                }
                Some(_) if types.contains(&None) => return None,
                Some(_) => return Some(Type::F32),
            },
            _ => Fault::UndefinedTensor { name: text },
        };
        self.mistakes.add(name.span, fault);
        None
    }

    /// Checks a read of a tensor.
    fn read(
        &mut self,
        name: &'a Name,
        operands: &'a [Expr],
        types: &[Option<Type>],
        scope: &Scope<'a>,
    ) -> Option<Type> {
        for (operand, ty) in operands.iter().zip(types) {
            self.fix(operand, &scope.lets);
            if let Some(ty) = ty.filter(|ty| !ty.is_int()) {
                self.fail(operand, Fault::IndexType { ty: type_name(ty) });
            }
        }
        let text = name.text.clone();
        let rank = self.names.ranks.get(&text).copied().unwrap_or_default();
        let ty = self.types.get(text.as_str()).copied();
        let fault = if rank != operands.len() {
            Fault::Rank { name: text, rank, got: counted(operands.len(), "index", "indices") }
        } else if ty.is_none() {
            Fault::NoValue { name: text }
        } else if text == scope.statement.target.text && !reads_same(operands, &scope.statement.indices) {
            let indices: Vec<&str> =
                scope.statement.indices.iter().map(|index| index.text.as_str()).collect();
            Fault::OwnTensor { name: text, indices: indices.join(", ") }
        } else {
            return ty;
        };
        self.mistakes.add(name.span, fault);
        None
    }

    fn size(&mut self, name: &'a Name, dimension: usize, expr: &Expr) -> Option<Type> {
        let text = name.text.clone();
        let rank = self.names.ranks.get(&text).copied();
        let fault = match rank {
            None => Fault::UndefinedTensor { name: text },
            Some(rank) if dimension >= rank => Fault::NoDimension { name: text, dimension, rank },
            Some(_) if !self.types.contains_key(name.text.as_str()) => Fault::NoValue { name: text },
            Some(_) => return Some(Type::I32),
        };
        self.fail(expr, fault)
    }
}

impl<'a> Scope<'a> {
    /// Notes an index. One more than allowed is enough to report.
    fn use_index(&mut self, name: &'a str) {
        if !self.indices.contains(&name) && self.indices.len() <= MAX_INDICES {
            self.indices.push(name);
        }
    }
}

/// Whether a read is at exactly these indices.
fn reads_same(operands: &[Expr], indices: &[Name]) -> bool {
    let same = |(operand, index): (&Expr, &Name)| matches!(&operand.kind, ExprKind::Name(name) if name.text == index.text);
    operands.iter().zip(indices).all(same)
}
