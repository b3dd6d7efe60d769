//! Constant tables: static arrays inside the kernels that read them.

use warploom_lang::affine::interval::Interval;
use warploom_lang::ir::TableDecl;
use warploom_lang::op::Op;
use warploom_lang::{Type, Value};

use super::expr::Printer;
use super::literal::literal;
use super::operand::Operand;
use super::text::{Text, c_type};
use crate::ir::{Program, Role, Space};

/// The table that an array is; `None` for all other arrays.
pub(super) fn of(program: &Program, space: Space) -> Option<&TableDecl> {
    let Space::Global(buffer) = space else { return None };
    match program.buffers.get(buffer)?.role {
        Role::Table(table) => program.tables.get(table),
        _ => None,
    }
}

/// The type that a table is stored as. Infinities and NaNs have no literals, nor have floats of 16 bits, so
/// that such tables are stored as bit patterns.
fn stored(table: &TableDecl) -> Type {
    let finite = || table.values().iter().all(|value| value.as_f64().is_finite());
    match table.ty {
        Type::F16 | Type::BF16 => Type::U16,
        Type::F32 if !finite() => Type::U32,
        Type::F64 if !finite() => Type::U64,
        ty => ty,
    }
}

/// The lines that declare a table.
pub(super) fn declaration(table: &TableDecl, name: &str, width: usize) -> Vec<String> {
    let ty = stored(table);
    let mut lines = vec![format!("static const {} {name}[{}] = {{", c_type(ty), table.values().len())];
    let mut line = String::new();
    for value in table.values() {
        let value = if ty == table.ty { *value } else { Value::from_bits(ty, value.bits()) };
        let text = literal(value).code;
        if line.len() + text.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        line.push_str(if line.is_empty() { "    " } else { " " });
        line.push_str(&text);
        line.push(',');
    }
    lines.push(line);
    lines.push("};".to_string());
    lines
}

/// The value of an element, of the table's own type.
pub(super) fn element(printer: &mut Printer<'_>, table: &TableDecl, text: Text) -> Text {
    let ty = stored(table);
    if ty == table.ty {
        return text;
    }
    let operand = Operand { text: &text, ty, range: Interval::of_type(ty), constant: None };
    printer.op(Op::Reinterpret(table.ty), table.ty, &[operand])
}
