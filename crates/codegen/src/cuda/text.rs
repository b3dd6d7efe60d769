//! C++ expressions that know the precedence of their outermost operator.

use warploom_lang::Type;

/// Operator precedence levels. A larger number binds more tightly.
pub(super) mod level {
    pub(crate) const SELECT: u8 = 1;
    pub(crate) const OR: u8 = 2;
    pub(crate) const AND: u8 = 3;
    pub(crate) const BIT_OR: u8 = 4;
    pub(crate) const BIT_XOR: u8 = 5;
    pub(crate) const BIT_AND: u8 = 6;
    pub(crate) const EQUALITY: u8 = 7;
    pub(crate) const ORDER: u8 = 8;
    pub(crate) const SHIFT: u8 = 9;
    pub(crate) const SUM: u8 = 10;
    pub(crate) const PRODUCT: u8 = 11;
    pub(crate) const PREFIX: u8 = 12;
    pub(crate) const ATOM: u8 = 13;
}

/// The C++ type of 64-bit integers.
pub(super) const WIDE: &str = "long long";

/// A C++ expression and its precedence.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) code: String,
    /// The precedence level of the outermost operator.
    pub(super) level: u8,
    /// If this expression is only a cast from `unsigned`, the uncast expression.
    unsigned: Option<Box<Text>>,
}

impl Text {
    fn new(code: String, level: u8) -> Text {
        Text { code, level, unsigned: None }
    }

    /// An expression that never needs parentheses.
    pub(super) fn atom(code: impl Into<String>) -> Text {
        Text::new(code.into(), level::ATOM)
    }

    /// A number with a minus sign.
    pub(super) fn negative(code: impl Into<String>) -> Text {
        Text::new(code.into(), level::PREFIX)
    }

    pub(super) fn call<const N: usize>(function: &str, arguments: [&Text; N]) -> Text {
        Text::atom(format!("{function}({})", arguments.map(|argument| argument.code.as_str()).join(", ")))
    }

    pub(super) fn element(array: &str, index: &Text) -> Text {
        Text::atom(format!("{array}[{}]", index.code))
    }

    /// `left operator right`. Operators of equal precedence associate to the left.
    pub(super) fn infix(level: u8, left: &Text, operator: &str, right: &Text) -> Text {
        // Few readers know the relative precedence of shifts, bitwise and logical operators, so
        // parenthesise them.
        let clear = match level {
            level::BIT_OR | level::BIT_XOR | level::BIT_AND | level::SHIFT => level::PREFIX,
            level::OR => level::BIT_OR,
            _ => level,
        };
        let within = |text: &Text, same: bool| text.within(if same { level } else { clear.max(level + 1) });
        // `&&` and `||` are associative, so a chain needs no parentheses.
        let joins = matches!(level, level::AND | level::OR) && right.level == level;
        let groups = left.level == level;
        Text::new(format!("{} {operator} {}", within(left, groups), within(right, joins)), level)
    }

    /// `operator operand`.
    pub(super) fn prefix(operator: &str, operand: &Text) -> Text {
        let inner = operand.within(level::PREFIX);
        // Two consecutive minus signs would form a decrement operator.
        let clash = operator == "-" && inner.starts_with('-');
        let inner = if clash { format!("({inner})") } else { inner };
        Text::new(format!("{operator}{inner}"), level::PREFIX)
    }

    /// A cast to `ty`.
    pub(super) fn cast(ty: Type, operand: &Text) -> Text {
        Text::new(format!("({}){}", c_type(ty), operand.within(level::PREFIX)), level::PREFIX)
    }

    /// A cast to 64 bits.
    pub(super) fn wide(operand: &Text) -> Text {
        Text::new(format!("({WIDE}){}", operand.within(level::PREFIX)), level::PREFIX)
    }

    /// `condition ? a : b`.
    pub(super) fn select(condition: &Text, a: &Text, b: &Text) -> Text {
        let [condition, a] = [condition, a].map(|text| text.within(level::SELECT + 1));
        Text::new(format!("{condition} ? {a} : {}", b.within(level::SELECT)), level::SELECT)
    }

    /// Casts an `unsigned` expression to `int`.
    pub(super) fn wrapped_int(unsigned: Text) -> Text {
        Text { unsigned: Some(Box::new(unsigned.clone())), ..Text::cast(Type::I32, &unsigned) }
    }

    /// The same bits as `unsigned`.
    pub(super) fn as_unsigned(&self) -> Text {
        match &self.unsigned {
            Some(unsigned) => (**unsigned).clone(),
            None => Text::cast(Type::U32, self),
        }
    }

    /// The code, in parentheses if it binds less tightly than `level`.
    fn within(&self, level: u8) -> String {
        if self.level < level { format!("({})", self.code) } else { self.code.clone() }
    }
}

/// The C++ name of the type of a value.
pub(super) fn c_type(ty: Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "unsigned char",
        Type::U16 => "unsigned short",
        Type::U32 => "unsigned",
        Type::I8 => "signed char",
        Type::I16 => "short",
        Type::I32 => "int",
        Type::F32 | Type::F16 | Type::BF16 => "float",
        Type::F64 => "double",
        Type::I64 => WIDE,
        Type::U64 => "unsigned long long",
    }
}

/// The C++ name of the type of an array's elements.
pub(super) fn element_type(ty: Type) -> &'static str {
    if ty.is_half() { c_type(Type::U16) } else { c_type(ty) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_stand_only_where_they_must() {
        let [a, b, c] = ["a", "b", "c"].map(Text::atom);
        let sum = Text::infix(level::SUM, &a, "+", &b);
        assert_eq!(Text::infix(level::SUM, &sum, "+", &c).code, "a + b + c");
        assert_eq!(Text::infix(level::SUM, &c, "+", &sum).code, "c + (a + b)");
        assert_eq!(Text::infix(level::PRODUCT, &sum, "*", &c).code, "(a + b) * c");
        let product = Text::infix(level::PRODUCT, &a, "*", &b);
        assert_eq!(Text::infix(level::SUM, &c, "-", &product).code, "c - a * b");
        let both = Text::infix(level::AND, &a, "&&", &b);
        assert_eq!(Text::infix(level::AND, &c, "&&", &both).code, "c && a && b");
        let either = Text::infix(level::OR, &both, "||", &c);
        assert_eq!(either.code, "(a && b) || c");
        assert_eq!(Text::infix(level::SHIFT, &sum, ">>", &c).code, "(a + b) >> c");
        let chosen = Text::select(&a, &b, &c);
        assert_eq!(Text::select(&chosen, &a, &chosen).code, "(a ? b : c) ? a : a ? b : c");
        assert_eq!(Text::cast(Type::F32, &sum).code, "(float)(a + b)");
        assert_eq!(Text::prefix("-", &Text::negative("-1.0f")).code, "-(-1.0f)");
        assert_eq!(Text::prefix("-", &sum).code, "-(a + b)");
    }
}
