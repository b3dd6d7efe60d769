//! Prints the tree as text.

use std::fmt::{self, Display, Formatter, Write};

use crate::ast::{
    Binary, Clause, Declared, Def, Dim, Expr, ExprKind, ResultName, Statement, TensorType, Unary,
};

impl Display for Def {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Def { name, params, results, statements } = self;
        writeln!(f, "def {}({}) -> ({}) {{", name.text, listed(params), listed(results))?;
        for statement in statements {
            writeln!(f, "  {statement}")?;
        }
        f.write_str("}\n")
    }
}

impl Display for Declared {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ty, self.name.text)?;
        match self.default {
            Some(number) if number.is_float => write!(f, " = {:?}", number.value),
            Some(number) => write!(f, " = {}", number.value),
            None => Ok(()),
        }
    }
}

impl Display for ResultName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.ty {
            Some(ty) => write!(f, "{ty} {}", self.name.text),
            None => f.write_str(&self.name.text),
        }
    }
}

impl Display for TensorType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.scalar.name())?;
        if self.dims.is_empty() { Ok(()) } else { write!(f, "({})", listed(&self.dims)) }
    }
}

impl Display for Dim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Name(name) => f.write_str(&name.text),
            Dim::Number(number, _) => write!(f, "{number}"),
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((scalar, _)) = self.ty {
            write!(f, "{} ", scalar.name())?;
        }
        f.write_str(&self.target.text)?;
        if !self.indices.is_empty() {
            let names: Vec<&str> = self.indices.iter().map(|index| index.text.as_str()).collect();
            write!(f, "({})", names.join(", "))?;
        }
        write!(f, " {} {}", self.assign.symbol(), self.value)?;
        if let Some((name, arguments)) = &self.equivalent {
            write!(f, " <=> {}({})", name.text, listed(arguments))?;
        }
        match self.clauses.is_empty() {
            true => Ok(()),
            false => write!(f, " where {}", listed(&self.clauses)),
        }
    }
}

impl Display for Clause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Clause::Range { index, low, high } => {
                write!(f, "{} in ", index.text)?;
                print(low, 1, f)?;
                write!(f, ":{high}")
            }
            Clause::Let { name, value } => write!(f, "{} = {value}", name.text),
            Clause::Exists(value) => write!(f, "exists {value}"),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print(self, 0, f)
    }
}

fn listed<T: Display>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(T::to_string).collect();
    texts.join(", ")
}

/// The precedence of an expression: 0 for a choice, 7 for expressions that never need parentheses.
fn level(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Select(_) => 0,
        ExprKind::Binary(op, _) => op.level(),
        ExprKind::Unary(..) => 6,
        _ => 7,
    }
}

/// Prints an expression, in parentheses if its precedence is below `least`.
fn print(expr: &Expr, least: u8, f: &mut Formatter<'_>) -> fmt::Result {
    if level(expr) < least {
        f.write_char('(')?;
        print(expr, 0, f)?;
        return f.write_char(')');
    }
    match &expr.kind {
        ExprKind::Int(number) => write!(f, "{number}"),
        ExprKind::Float(number) => write!(f, "{number:?}"),
        ExprKind::Name(name) => f.write_str(&name.text),
        ExprKind::Size(name, dimension) => write!(f, "{}.{dimension}", name.text),
        ExprKind::Call(name, arguments) => write!(f, "{}({})", name.text, listed(arguments)),
        ExprKind::Cast(scalar, operand) => write!(f, "{}({operand})", scalar.name()),
        ExprKind::Unary(op, operand) => {
            f.write_char(if *op == Unary::Neg { '-' } else { '!' })?;
            print(operand, 6, f)
        }
        ExprKind::Binary(op @ (Binary::Min | Binary::Max), operands) => {
            write!(f, "{}({}, {})", op.symbol(), operands[0], operands[1])
        }
        ExprKind::Binary(op, operands) => {
            print(&operands[0], op.level(), f)?;
            write!(f, " {} ", op.symbol())?;
            print(&operands[1], op.level() + 1, f)
        }
        ExprKind::Select(operands) => {
            print(&operands[0], 1, f)?;
            f.write_str(" ? ")?;
            print(&operands[1], 0, f)?;
            f.write_str(" : ")?;
            print(&operands[2], 0, f)
        }
    }
}
