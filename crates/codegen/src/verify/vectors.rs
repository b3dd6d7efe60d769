//! Checks on vectors: their arrays, their length and their alignment.

use smallvec::{SmallVec, smallvec};
use warploom_lang::Value;
use warploom_lang::affine::gcd;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

use super::Verifier;
use super::error::Fault;
use crate::ir::{ArrayId, KernelExprs, NodeId, NodeKind, Role, Space, VECTOR_BYTES};

impl Verifier<'_> {
    /// Checks a move of `width` adjacent elements.
    pub(super) fn vector(
        &mut self,
        (to, at): (ArrayId, NodeId),
        (from, index): (ArrayId, NodeId),
        width: u32,
    ) -> Result<(), Fault> {
        let kernel = self.tables.kernel;
        let ty = kernel.arrays.get(to).map(|array| array.ty);
        for (array, index) in [(from, index), (to, at)] {
            let own = kernel.arrays.get(array).map(|array| array.ty);
            self.tables.access(array, ty.or(own).unwrap_or(warploom_lang::Type::I32), index)?;
            self.values.fact(index)?;
            self.values.check_bounds_of_all(array, index, width)?;
        }
        let spaces = [from, to].map(|array| kernel.arrays[array].space);
        let (buffer, start, is_written) = match spaces {
            [Space::Global(buffer), Space::Thread] => (buffer, index, false),
            [Space::Global(buffer), Space::Shared] => {
                self.copied_vector((to, at), from, width)?;
                (buffer, index, false)
            }
            [Space::Thread, Space::Global(buffer)] => (buffer, at, true),
            _ => return Err(self.malformed(to, width)),
        };
        let (decl, array) = (&self.tables.program.buffers[buffer], if is_written { to } else { from });
        let bytes = decl.ty.bytes().saturating_mul(width as usize);
        if matches!(decl.role, Role::Table(_))
            || !width.is_power_of_two()
            || width < 2
            || bytes > VECTOR_BYTES
        {
            return Err(self.malformed(array, width));
        }
        if is_written && decl.role.is_constant() {
            return Err(Fault::WritesInput { array: kernel.arrays[array].name.clone() });
        }
        if !is_multiple(&kernel.exprs, start, width) {
            return Err(Fault::Misaligned { array: kernel.arrays[array].name.clone(), width });
        }
        Ok(())
    }

    /// Checks the rules that only asynchronous copies have.
    fn copied_vector(&self, (to, at): (ArrayId, NodeId), from: ArrayId, width: u32) -> Result<(), Fault> {
        self.copy(to, Some(from))?;
        match is_multiple(&self.tables.kernel.exprs, at, width) {
            true => Ok(()),
            false => Err(Fault::Misaligned { array: self.tables.kernel.arrays[to].name.clone(), width }),
        }
    }

    fn malformed(&self, array: ArrayId, width: u32) -> Fault {
        Fault::Vector { array: self.tables.kernel.arrays[array].name.clone(), width }
    }
}

/// Whether an index is a multiple of a number in all threads, as far as its expression shows.
fn is_multiple(exprs: &KernelExprs, index: NodeId, number: u32) -> bool {
    let mut open: SmallVec<[(NodeId, i64); 8]> = smallvec![(index, number.into())];
    let known = |id: NodeId| match exprs[id].kind {
        NodeKind::Op(Op::Const(value)) => Value::as_int(value),
        _ => None,
    };
    while let Some((id, number)) = open.pop() {
        let node = &exprs[id];
        if number == 1 || known(id).is_some_and(|value| value % number == 0) {
            continue;
        }
        match node.kind {
            NodeKind::Op(Op::Unary(UnaryOp::Neg) | Op::Binary(BinaryOp::Add | BinaryOp::Sub)) => {
                open.extend(node.args.iter().map(|arg| (*arg, number)));
            }
            // One factor must supply what the other lacks.
            NodeKind::Op(Op::Binary(BinaryOp::Mul)) => match (known(node.args[0]), known(node.args[1])) {
                (_, Some(factor)) => open.push((node.args[0], number / gcd(number, factor))),
                (Some(factor), _) => open.push((node.args[1], number / gcd(number, factor))),
                _ => return false,
            },
            _ => return false,
        }
    }
    true
}
