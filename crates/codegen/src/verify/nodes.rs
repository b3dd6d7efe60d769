//! Checks on a kernel's arrays and nodes that do not depend on where they are used: every reference
//! exists, and types match.

use smallvec::SmallVec;
use warploom_lang::Type;

use super::error::{Fault, Missing};
use crate::ir::{ArrayId, Kernel, KernelNode, Leaf, NARROW_ELEMENTS, NodeId, NodeKind, Program, Space};

/// The tables of a kernel: its arrays, and its nodes with their operands.
pub(super) struct Tables<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    /// The counts of the loops around the kernel's launches.
    pub around: &'a [u32],
}

impl Tables<'_> {
    pub fn check(&self) -> Result<(), Fault> {
        let Kernel { grid, threads, .. } = *self.kernel;
        if grid.iter().chain([&threads]).any(|size| *size == 0 || i32::try_from(*size).is_err()) {
            return Err(Fault::Launch { grid, threads });
        }
        self.kernel.arrays.keys().try_for_each(|array| self.array(array))?;
        self.kernel.exprs.nodes().iter().try_for_each(|(id, node)| self.node(id, node))
    }

    /// Checks that an array in global memory matches its buffer.
    fn array(&self, id: ArrayId) -> Result<(), Fault> {
        let array = &self.kernel.arrays[id];
        let Space::Global(buffer) = array.space else { return Ok(()) };
        let decl = self.program.buffers.get(buffer).ok_or(Fault::Missing(Missing::Buffer(buffer)))?;
        match (decl.ty, decl.elements()) == (array.ty, array.elements) {
            true => Ok(()),
            false => Err(Fault::Buffer { array: array.name.clone() }),
        }
    }

    /// Checks that operands come first and have types that the operation accepts.
    fn node(&self, id: NodeId, node: &KernelNode) -> Result<(), Fault> {
        if let Some(&operand) = node.args.iter().find(|arg| **arg >= id) {
            return Err(Fault::Order { node: id, operand });
        }
        if !matches!(node.kind, NodeKind::Load(_)) {
            node.args.iter().try_for_each(|arg| self.value(*arg))?;
        }
        let operands: SmallVec<[Type; 3]> = node.args.iter().map(|arg| self.kernel.exprs[*arg].ty).collect();
        match node.kind {
            NodeKind::Leaf(leaf) => self.leaf(leaf, node.ty),
            NodeKind::Op(op) => match op.result_type(&operands) == Ok(node.ty) {
                true => Ok(()),
                false => Err(Fault::Operation { node: id, op, operands: operands.to_vec(), ty: node.ty }),
            },
            NodeKind::Load(array) => match node.args[..] {
                [index] => self.access(array, node.ty, index),
                _ => Err(Fault::Indices { node: id, indices: node.args.len() }),
            },
            NodeKind::Offset(strides) => {
                let own = self.kernel.exprs.strides().get(strides);
                let strides = own.ok_or(Fault::Missing(Missing::Strides(strides)))?.strides.len();
                match strides == operands.len() && operands.iter().all(|ty| *ty == Type::I32) {
                    true => Ok(()),
                    false => Err(Fault::Terms { node: id, strides, terms: operands.to_vec() }),
                }
            }
        }
    }

    /// Checks that a leaf exists and has the right type. The type of a variable is checked where it
    /// is bound.
    fn leaf(&self, leaf: Leaf, found: Type) -> Result<(), Fault> {
        let missing = |what| Err(Fault::Missing(what));
        let expected = match leaf {
            Leaf::Block(dimension) if dimension > 2 => return missing(Missing::BlockDimension(dimension)),
            Leaf::Iteration(level) if usize::from(level) >= self.around.len() => {
                return missing(Missing::Iteration(level));
            }
            Leaf::Size(position) if position as usize >= self.kernel.scalars.len() => {
                return missing(Missing::Scalar(position));
            }
            Leaf::Thread | Leaf::Block(_) | Leaf::Iteration(_) | Leaf::Size(_) => Type::I32,
            Leaf::Var(var) if self.kernel.vars.get(var).is_none() => return missing(Missing::Var(var)),
            Leaf::Var(_) => found,
            Leaf::Param(position) => match self.program.params.get(position as usize) {
                Some((_, ty)) => *ty,
                None => return missing(Missing::Param(position)),
            },
        };
        if expected == found { Ok(()) } else { Err(Fault::LeafType { leaf, expected, found }) }
    }

    /// A node, which must exist.
    pub fn get(&self, id: NodeId) -> Result<&KernelNode, Fault> {
        self.kernel.exprs.nodes().get(id).ok_or(Fault::Missing(Missing::Node(id)))
    }

    /// Checks that a node exists and is not an offset: an offset can only be an index.
    pub fn value(&self, id: NodeId) -> Result<(), Fault> {
        match self.get(id)?.kind {
            NodeKind::Offset(_) => Err(Fault::OffsetValue { node: id }),
            _ => Ok(()),
        }
    }

    /// Checks the type and the index of an access to an array.
    pub fn access(&self, array: ArrayId, found: Type, index: NodeId) -> Result<(), Fault> {
        let decl = self.kernel.arrays.get(array).ok_or(Fault::Missing(Missing::Array(array)))?;
        let (node, array) = (self.get(index)?, || decl.name.clone());
        if decl.ty != found {
            return Err(Fault::ElementType { array: array(), expected: decl.ty, found });
        }
        if node.ty != Type::I32 {
            return Err(Fault::IndexType { array: array(), found: node.ty });
        }
        if decl.elements > NARROW_ELEMENTS as usize && !matches!(node.kind, NodeKind::Offset(_)) {
            return Err(Fault::NarrowIndex { array: array(), elements: decl.elements });
        }
        Ok(())
    }
}
