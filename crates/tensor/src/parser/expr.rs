//! Parses expressions.

use super::{MAX_CHAIN, MAX_NESTING, Parsed, Parser, fail};
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::error::Fault;
use crate::lexer::TokenKind;
use crate::source::Span;
use crate::types::Scalar;

impl Parser<'_> {
    /// One expression. It ends where no operator follows.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let condition = parser.binary(1)?;
            if !parser.take("?") {
                return Ok(condition);
            }
            let mut depth = parser.depth;
            let one = parser.expr()?;
            depth = depth.max(parser.depth);
            parser.expect(":", "write a choice as `condition ? one : other`")?;
            let other = parser.expr()?;
            parser.deepen(depth)?;
            let span = condition.span.to(other.span);
            Ok(Expr { kind: ExprKind::Select(Box::new([condition, one, other])), span })
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        if self.nesting > MAX_NESTING {
            return fail(self.token().span, Fault::Nested { most: MAX_NESTING });
        }
        self.nesting += 1;
        let expr = read(self);
        self.nesting -= 1;
        expr
    }

    /// Adds a level above the expression that was just read and another one of depth `other`.
    fn deepen(&mut self, other: usize) -> Parsed<()> {
        self.depth = self.depth.max(other) + 1;
        match self.depth > MAX_CHAIN {
            true => fail(self.last(), Fault::Chain { most: MAX_CHAIN }),
            false => Ok(()),
        }
    }

    /// Operators of this level and above; all are left associative.
    fn binary(&mut self, level: u8) -> Parsed<Expr> {
        if level == 6 {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(op) = self.operator(level) {
            let depth = self.depth;
            self.next();
            let right = self.binary(level + 1)?;
            self.deepen(depth)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(op, Box::new([left, right])), span };
        }
        Ok(left)
    }

    fn operator(&self, level: u8) -> Option<Binary> {
        let op = match self.peek() {
            TokenKind::Symbol("||") => Binary::Or,
            TokenKind::Symbol("&&") => Binary::And,
            TokenKind::Symbol("<") => Binary::Lt,
            TokenKind::Symbol(">") => Binary::Gt,
            TokenKind::Symbol("<=") => Binary::Le,
            TokenKind::Symbol(">=") => Binary::Ge,
            TokenKind::Symbol("==") => Binary::Eq,
            TokenKind::Symbol("!=") => Binary::Ne,
            TokenKind::Symbol("+") => Binary::Add,
            TokenKind::Symbol("-") => Binary::Sub,
            TokenKind::Symbol("*") => Binary::Mul,
            TokenKind::Symbol("/") => Binary::Div,
            TokenKind::Symbol("%") => Binary::Mod,
            _ => return None,
        };
        (op.level() == level).then_some(op)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let op = match self.peek() {
            TokenKind::Symbol("-") => Unary::Neg,
            TokenKind::Symbol("!") => Unary::Not,
            _ => return self.primary(),
        };
        let start = self.next().span;
        let operand = self.nested(Parser::unary)?;
        self.deepen(0)?;
        let span = start.to(operand.span);
        Ok(Expr { kind: ExprKind::Unary(op, Box::new(operand)), span })
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.token().span;
        self.depth = 0;
        let kind = match self.peek() {
            TokenKind::Int(number) => {
                self.next();
                ExprKind::Int(number)
            }
            TokenKind::Float(number) => {
                self.next();
                ExprKind::Float(number)
            }
            TokenKind::Symbol("(") => return self.parenthesised(start),
            TokenKind::Word => self.named()?,
            _ => return self.expected("an expression", "an operator needs an operand on both sides"),
        };
        Ok(Expr { kind, span: start.to(self.last()) })
    }

    fn parenthesised(&mut self, start: Span) -> Parsed<Expr> {
        self.next();
        let inner = self.expr()?;
        let end = self.expect(")", "close the parenthesis")?;
        Ok(Expr { span: start.to(end), ..inner })
    }

    /// An expression that begins with a word.
    fn named(&mut self) -> Parsed<ExprKind> {
        let word = self.word().unwrap_or("");
        if let Some(scalar) = Scalar::named(word) {
            self.next();
            self.expect("(", "write a conversion as `float(value)`")?;
            let operand = self.expr()?;
            self.deepen(0)?;
            self.expect(")", "close the parenthesis")?;
            return Ok(ExprKind::Cast(scalar, Box::new(operand)));
        }
        if let "min" | "max" = word {
            let op = if word == "min" { Binary::Min } else { Binary::Max };
            self.next();
            self.expect("(", "write it as `min(a, b)`")?;
            let left = self.expr()?;
            let depth = self.depth;
            self.expect(",", "`min` and `max` take two values")?;
            let right = self.expr()?;
            self.deepen(depth)?;
            self.expect(")", "`min` and `max` take two values")?;
            return Ok(ExprKind::Binary(op, Box::new([left, right])));
        }
        let name = self.name("an expression")?;
        if self.take(".") {
            let TokenKind::Int(dimension) = self.peek() else {
                return self.expected("the number of a dimension", "write a size as `A.0`");
            };
            self.next();
            return Ok(ExprKind::Size(name, usize::try_from(dimension).unwrap_or(usize::MAX)));
        }
        if !self.is("(") {
            return Ok(ExprKind::Name(name));
        }
        let mut depth = 0;
        let operands = self.list(|parser| {
            let operand = parser.expr()?;
            depth = depth.max(parser.depth);
            Ok(operand)
        })?;
        self.deepen(depth)?;
        Ok(ExprKind::Call(name, operands))
    }
}
