//! Operands of operations in C++.

use warploom_lang::affine::Interval;
use warploom_lang::{Type, Value};

use super::text::Text;

#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    /// Its C++ expression.
    pub(super) text: &'a Text,
    /// Its type in the language.
    pub(super) ty: Type,
    /// Its value range, if it is an integer.
    pub(super) range: Interval,
    /// Its value, if it is a constant.
    pub(super) constant: Option<Value>,
}

impl Operand<'_> {
    /// Its value, if it is an integer constant.
    pub(super) fn int(&self) -> Option<i64> {
        self.constant.and_then(Value::as_int)
    }

    /// The operand converted to `unsigned`.
    pub(super) fn unsigned(&self) -> Text {
        match self.int() {
            Some(int) if int >= 0 => Text::atom(format!("{int}u")),
            _ => self.text.as_unsigned(),
        }
    }
}
