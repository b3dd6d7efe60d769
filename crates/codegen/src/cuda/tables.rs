//! Constant tables: static arrays inside the kernels that read them.
//!
//! A static array is in global memory. If all threads read the same element, constant memory is faster: the element is
//! an operand of the instruction that uses it. Reads of different elements would be serialised there.

use warploom_lang::affine::interval::Interval;
use warploom_lang::ir::TableDecl;
use warploom_lang::op::Op;
use warploom_lang::{Type, Value};

use super::expr::Printer;
use super::literal::literal;
use super::operand::Operand;
use super::text::{Text, c_type};
use super::uniform::uniform;
use crate::ir::{ArrayId, Kernel, NodeKind, Program, Role, Space, every_stmt};

/// The constant table behind an array; `None` for all other arrays.
pub(super) fn of(program: &Program, space: Space) -> Option<&TableDecl> {
    let Space::Global(buffer) = space else { return None };
    match program.buffers.get(buffer)?.role {
        Role::Table(table) => program.tables.get(table),
        _ => None,
    }
}

/// The most bytes of constant memory that one translation unit takes: half of the hardware's.
const CONSTANT_BYTES: usize = 32 * 1024;

/// The constant memory that a translation unit has left.
pub(super) struct ConstantMemory {
    left: usize,
}

impl Default for ConstantMemory {
    fn default() -> ConstantMemory {
        ConstantMemory { left: CONSTANT_BYTES }
    }
}

impl ConstantMemory {
    /// Takes memory for the tables whose every read in the kernel has a uniform index. The others stay in global
    /// memory.
    pub(super) fn take(&mut self, program: &Program, kernel: &Kernel) -> Vec<ArrayId> {
        let tables = kernel.arrays.iter().filter_map(|(id, array)| Some((id, of(program, array.space)?)));
        let tables: Vec<(ArrayId, &TableDecl)> = tables.collect();
        if tables.is_empty() {
            return Vec::new();
        }
        let is_table = |array: ArrayId| tables.iter().any(|(table, _)| *table == array);
        let same = uniform(kernel, |node| matches!(node.kind, NodeKind::Load(array) if is_table(array)));
        let read = kernel.exprs.reachable(every_stmt(&kernel.body).flat_map(|stmt| stmt.operands()));
        let differs = |array: ArrayId| {
            read.iter().any(|id| kernel.exprs[*id].kind == NodeKind::Load(array) && !same[*id])
        };
        let mut taken = Vec::new();
        for (array, table) in tables {
            let bytes = table.values().len() * table.ty.bytes();
            if bytes <= self.left && !differs(array) {
                self.left -= bytes;
                taken.push(array);
            }
        }
        taken
    }
}

/// The type in which a table is stored. Infinities, NaNs and floats of 16 bits have no literals, so such tables are
/// stored as bit patterns.
fn stored(table: &TableDecl) -> Type {
    let finite = || table.values().iter().all(|value| value.as_f64().is_finite());
    match table.ty {
        Type::F16 | Type::BF16 => Type::U16,
        Type::F32 if !finite() => Type::U32,
        Type::F64 if !finite() => Type::U64,
        ty => ty,
    }
}

/// The lines that declare a table in constant or in global memory.
pub(super) fn declaration(table: &TableDecl, name: &str, is_constant: bool, width: usize) -> Vec<String> {
    let ty = stored(table);
    let memory = if is_constant { "__constant__ " } else { "" };
    let start = format!("static {memory}const {} {name}[{}] = {{", c_type(ty), table.values().len());
    let mut lines = vec![start];
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
