//! Names, ranks and types of expressions.

use warploom_lang::Type;

use super::kind::KnownType;
use super::{Checker, MAX_INDICES, VisibleNames};
use crate::ast::{Binary, Expr, ExprKind, Name, Unary};
use crate::builtins::{self, SUGGESTED};
use crate::error::{Fault, counted};
use crate::names::Meaning;
use crate::types::type_name;

impl<'a> Checker<'a> {
    /// The type of an expression; `None` after a mistake in it. Records the indices that it uses.
    pub(super) fn expr(&mut self, expr: &'a Expr, scope: &mut VisibleNames<'a>) -> Option<KnownType<'a>> {
        match &expr.kind {
            ExprKind::Int(_) => Some(KnownType::Is(Type::I32)),
            ExprKind::Float(number) => Some(KnownType::literal(*number, expr.span)),
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Call(name, operands) => self.call(name, operands, expr, scope),
            ExprKind::Size(name, dimension) => self.size(name, *dimension, expr),
            ExprKind::Cast(scalar, operand) => {
                let kind = self.expr(operand, scope)?;
                self.settle(kind, scalar.lang(), scope.statement);
                Some(KnownType::Is(scalar.lang()))
            }
            ExprKind::Unary(op, operand) => {
                let kind = self.expr(operand, scope)?;
                match op {
                    Unary::Not => self.boolean("!", kind, operand),
                    Unary::Neg => self.number("-", kind, operand),
                }
            }
            ExprKind::Binary(op, operands) => {
                let left = self.expr(&operands[0], scope);
                let right = self.expr(&operands[1], scope);
                self.binary(*op, operands, [left?, right?], expr, scope)
            }
            ExprKind::Select(operands) => {
                let [condition, one, other] = [0, 1, 2].map(|i| self.expr(&operands[i], scope));
                self.boolean("?", condition?, &operands[0])?;
                self.met(one?, other?, expr, scope)
            }
        }
    }

    fn fail(&mut self, expr: &Expr, fault: Fault) -> Option<KnownType<'a>> {
        self.mistakes.add(expr.span, fault);
        None
    }

    fn boolean(&mut self, what: &'static str, kind: KnownType<'a>, operand: &Expr) -> Option<KnownType<'a>> {
        match kind.alone() {
            Type::Bool => Some(kind),
            ty => self.fail(operand, Fault::NotBool { what, ty: type_name(ty) }),
        }
    }

    fn number(&mut self, what: &'static str, kind: KnownType<'a>, operand: &Expr) -> Option<KnownType<'a>> {
        match kind.alone() {
            Type::Bool => self.fail(operand, Fault::BoolOperand { what: what.to_string() }),
            _ => Some(kind),
        }
    }

    fn met(
        &mut self,
        left: KnownType<'a>,
        right: KnownType<'a>,
        expr: &Expr,
        scope: &VisibleNames<'a>,
    ) -> Option<KnownType<'a>> {
        let fault = Fault::Types { left: type_name(left.alone()), right: type_name(right.alone()) };
        self.join(left, right, scope.statement).or_else(|| self.fail(expr, fault))
    }

    fn binary(
        &mut self,
        op: Binary,
        operands: &[Expr; 2],
        [left, right]: [KnownType<'a>; 2],
        expr: &Expr,
        scope: &VisibleNames<'a>,
    ) -> Option<KnownType<'a>> {
        if let Binary::And | Binary::Or = op {
            let left = self.boolean(op.symbol(), left, &operands[0]);
            return self.boolean(op.symbol(), right, &operands[1]).and(left);
        }
        if !matches!(op, Binary::Eq | Binary::Ne) {
            let left = self.number(op.symbol(), left, &operands[0]);
            self.number(op.symbol(), right, &operands[1]).and(left)?;
        }
        let kind = self.met(left, right, expr, scope)?;
        if op.is_comparison() {
            self.settle(kind, Type::F32, scope.statement);
            return Some(KnownType::Is(Type::Bool));
        }
        Some(kind)
    }

    fn name(&mut self, name: &'a Name, scope: &mut VisibleNames<'a>) -> Option<KnownType<'a>> {
        let text = name.text.as_str();
        let fault = match self.names.meaning(&scope.lets, text) {
            Meaning::Let(number) => match scope.known_lets.get(number).cloned() {
                Some((kind, indices)) => {
                    indices.into_iter().for_each(|index| scope.use_index(index));
                    return kind;
                }
                None => Fault::LetOrder { name: text.to_string() },
            },
            Meaning::Size => return Some(KnownType::Is(Type::I32)),
            Meaning::Index => {
                scope.use_index(text);
                return Some(KnownType::Is(Type::I32));
            }
            Meaning::Builtin => Fault::BuiltinRedefined { name: text.to_string() },
            Meaning::Tensor => match (self.names.ranks.get(text), self.types.get(text)) {
                (Some(0), Some(_)) => return self.value_of(name, scope),
                (Some(0), None) => Fault::NoValue { name: text.to_string() },
                (rank, _) => {
                    Fault::TensorAsScalar { name: text.to_string(), rank: rank.copied().unwrap_or_default() }
                }
            },
        };
        self.mistakes.add(name.span, fault);
        None
    }

    /// The type of a tensor that has a value. A literal in it is a `float` from now on.
    fn value_of(&mut self, name: &'a Name, scope: &VisibleNames<'a>) -> Option<KnownType<'a>> {
        let kind = self.types.get(name.text.as_str()).copied()?;
        let ty = self.settle(kind, Type::F32, scope.statement);
        self.types.insert(&name.text, KnownType::Is(ty));
        Some(KnownType::Is(ty))
    }

    fn call(
        &mut self,
        name: &'a Name,
        operands: &'a [Expr],
        expr: &'a Expr,
        scope: &mut VisibleNames<'a>,
    ) -> Option<KnownType<'a>> {
        let kinds: Vec<Option<KnownType<'a>>> =
            operands.iter().map(|operand| self.expr(operand, scope)).collect();
        let text = name.text.clone();
        let fault = match self.names.meaning(&scope.lets, &text) {
            Meaning::Tensor => return self.read(name, operands, &kinds, scope),
            Meaning::Builtin => match builtins::arguments(&text) {
                None => Fault::UnsupportedBuiltin { name: text, supported: SUGGESTED },
                Some(expected) if expected != operands.len() => {
                    let got = counted(operands.len(), "argument", "arguments");
                    let many = if expected == 1 { "argument" } else { "arguments" };
                    Fault::Arguments { name: text, expected: format!("{expected} {many}"), got }
                }
                Some(_) => {
                    let is_bool = |kind: &KnownType<'a>| kind.alone() == Type::Bool;
                    if kinds.iter().flatten().any(is_bool) {
                        return self.fail(expr, Fault::BoolOperand { what: text });
                    }
                    let kinds: Option<Vec<KnownType<'a>>> = kinds.into_iter().collect();
                    return self.function(name, &kinds?, scope.statement);
                }
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
        kinds: &[Option<KnownType<'a>>],
        scope: &VisibleNames<'a>,
    ) -> Option<KnownType<'a>> {
        for (operand, kind) in operands.iter().zip(kinds) {
            self.fix(operand, &scope.lets);
            if let Some(ty) = kind.map(KnownType::alone).filter(|ty| !ty.is_int()) {
                self.fail(operand, Fault::IndexType { ty: type_name(ty) });
            }
        }
        let text = name.text.clone();
        let rank = self.names.ranks.get(&text).copied().unwrap_or_default();
        let fault = if rank != operands.len() {
            Fault::Rank { name: text, rank, got: counted(operands.len(), "index", "indices") }
        } else if !self.types.contains_key(text.as_str()) {
            Fault::NoValue { name: text }
        } else if text == scope.statement.target.text && !reads_same(operands, &scope.statement.indices) {
            let indices: Vec<&str> =
                scope.statement.indices.iter().map(|index| index.text.as_str()).collect();
            Fault::OwnTensor { name: text, indices: indices.join(", ") }
        } else {
            return self.value_of(name, scope);
        };
        self.mistakes.add(name.span, fault);
        None
    }

    fn size(&mut self, name: &'a Name, dimension: usize, expr: &Expr) -> Option<KnownType<'a>> {
        let text = name.text.clone();
        let rank = self.names.ranks.get(&text).copied();
        let fault = match rank {
            None => Fault::UndefinedTensor { name: text },
            Some(rank) if dimension >= rank => Fault::NoDimension { name: text, dimension, rank },
            Some(_) if !self.types.contains_key(name.text.as_str()) => Fault::NoValue { name: text },
            Some(_) => return Some(KnownType::Is(Type::I32)),
        };
        self.fail(expr, fault)
    }
}

impl<'a> VisibleNames<'a> {
    /// Records an index. One more than allowed is enough to report.
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
