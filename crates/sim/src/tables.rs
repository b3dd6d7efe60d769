//! Checks the tables of a kernel: the types of its nodes, and its arrays.

use ahash::AHashSet;
use smallvec::SmallVec;
use warploom_codegen::ir::{
    Array, ArrayId, BufferId, Kernel, Leaf, NodeId, NodeKind, Program, Space, Stmt, every_stmt,
};
use warploom_lang::{Id, IdVec, Type, Value};
use warploom_target::Device;

use crate::code::{ArrayCode, Home};
use crate::error::Fault;
use crate::traffic::Geometry;

/// Checks the types of all nodes, and folds constants.
pub(crate) fn check_nodes(program: &Program, kernel: &Kernel) -> Result<IdVec<NodeId, Option<Value>>, Fault> {
    let nodes = kernel.exprs.nodes();
    let mut known: IdVec<NodeId, Option<Value>> = IdVec::new();
    for (id, node) in nodes.iter() {
        if node.args.iter().any(|arg| arg.index() >= id.index()) {
            return Err(Fault::Order { node: id.index() });
        }
        let operands: SmallVec<[Type; 3]> = node.args.iter().map(|arg| nodes[*arg].ty).collect();
        let (ty, operation) = match node.kind {
            NodeKind::Leaf(leaf) => (leaf_type(program, kernel, leaf, node.ty)?, "leaf"),
            NodeKind::Op(op) => (op.result_type(&operands).ok(), op.name()),
            NodeKind::Load(array) => {
                let missing = Fault::Missing { what: "array", number: array.index() };
                let array = kernel.arrays.get(array).ok_or(missing)?;
                ((operands[..] == [Type::I32]).then_some(array.ty), "load")
            }
            NodeKind::Offset(strides) => {
                let missing = Fault::Missing { what: "list of strides", number: strides.index() };
                let terms = kernel.exprs.strides().get(strides).ok_or(missing)?.strides.len();
                let fits = operands.len() == terms && operands.iter().all(|ty| *ty == Type::I32);
                (fits.then_some(Type::I32), "offset")
            }
        };
        if !matches!(node.kind, NodeKind::Load(_))
            && let Some(offset) = node.args.iter().find(|arg| kernel.exprs.is_offset(**arg))
        {
            return Err(Fault::Offset { node: offset.index() });
        }
        if ty != Some(node.ty) {
            return Err(Fault::Type { node: id.index(), operation: operation.to_string(), ty: node.ty });
        }
        let values: Option<SmallVec<[Value; 3]>> = node.args.iter().map(|arg| known[*arg]).collect();
        known.push(match (node.kind, values) {
            (NodeKind::Op(op), Some(values)) => Some(op.eval(&values)),
            _ => None,
        });
    }
    Ok(known)
}

/// The type of a leaf. An unbound variable has the declared type of its node.
fn leaf_type(program: &Program, kernel: &Kernel, leaf: Leaf, ty: Type) -> Result<Option<Type>, Fault> {
    let missing = |what, number| Err(Fault::Missing { what, number });
    match leaf {
        Leaf::Thread | Leaf::Iteration(_) => Ok(Some(Type::I32)),
        Leaf::Block(dimension) if dimension > 2 => missing("block dimension", usize::from(dimension)),
        Leaf::Block(_) => Ok(Some(Type::I32)),
        Leaf::Var(var) if kernel.vars.get(var).is_none() => missing("variable", var.index()),
        Leaf::Var(_) => Ok(Some(ty)),
        Leaf::Param(position) => match program.params.get(position as usize) {
            Some((_, ty)) => Ok(Some(*ty)),
            None => missing("Param", position as usize),
        },
        Leaf::Size(position) => {
            missing("size, because the program is not at any sizes yet:", position as usize)
        }
    }
}

pub(crate) fn arrays(program: &Program, kernel: &Kernel, device: &Device) -> Result<Vec<ArrayCode>, Fault> {
    let written: AHashSet<ArrayId> = every_stmt(&kernel.body).filter_map(Stmt::written).collect();
    if let Some(missing) = written.iter().find(|array| kernel.arrays.get(**array).is_none()) {
        return Err(Fault::Missing { what: "array", number: missing.index() });
    }
    let buffer = |array: &Array| if let Space::Global(buffer) = array.space { Some(buffer) } else { None };
    let written_buffers: AHashSet<BufferId> =
        written.iter().filter_map(|array| buffer(&kernel.arrays[*array])).collect();
    let (mut shared, mut private, mut base) = (0, 0, 0);
    let mut codes = Vec::new();
    for (id, array) in kernel.arrays.iter() {
        let Array { name, ty, space, elements, .. } = array.clone();
        let mut geometry = Geometry::new(device, ty, 0);
        let (home, written) = match space {
            Space::Global(buffer) => {
                let missing = Fault::Missing { what: "buffer", number: buffer.index() };
                let decl = program.buffers.get(buffer).ok_or(missing)?;
                if decl.ty != ty || decl.elements() != elements {
                    return Err(Fault::Array { array: name });
                }
                if decl.role.is_constant() && written.contains(&id) {
                    return Err(Fault::WritesInput { array: name });
                }
                (Home::Global(buffer), written_buffers.contains(&buffer))
            }
            Space::Shared => {
                geometry = Geometry::new(device, ty, base);
                base += (elements * ty.bytes()).next_multiple_of(16);
                shared += 1;
                (Home::Shared(shared - 1), true)
            }
            Space::Thread => {
                private += 1;
                (Home::Thread(private - 1), true)
            }
        };
        codes.push(ArrayCode { name, ty, elements, home, written, geometry });
    }
    Ok(codes)
}
