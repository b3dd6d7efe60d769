//! The rules of the kernel IR.

use ahash::AHashSet;
use thiserror::Error;
use warploom_lang::{Id, Type};

use crate::ir::{ArrayId, Kernel, Leaf, NARROW_ELEMENTS, NodeId, NodeKind, Program, Space, Stmt, VarId};

/// A kernel that breaks the rules of the IR: always a mistake of the compiler.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("the kernel `{kernel}` is malformed: {what}; this is a bug in Warploom")]
pub struct VerifyError {
    /// The kernel.
    pub kernel: String,
    /// The rule it breaks.
    pub what: String,
}

/// Checks every kernel of a program.
pub fn verify(program: &Program) -> Result<(), VerifyError> {
    for kernel in program.kernels.values() {
        let mut verifier = Verifier { program, kernel, bound: AHashSet::new(), varying: AHashSet::new() };
        verifier
            .nodes()
            .and_then(|()| verifier.body(&kernel.body, true))
            .map_err(|what| VerifyError { kernel: kernel.name.clone(), what })?;
    }
    Ok(())
}

struct Verifier<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    /// Variables that have a value here.
    bound: AHashSet<VarId>,
    /// Variables whose value can differ between the threads of a block.
    varying: AHashSet<VarId>,
}

impl Verifier<'_> {
    /// Operands come first and have the types their operation takes.
    fn nodes(&self) -> Result<(), String> {
        for (id, node) in self.kernel.exprs.nodes().iter() {
            if node.args.iter().any(|arg| *arg >= id) {
                return Err(format!("{id:?} comes before its operands"));
            }
            if !matches!(node.kind, NodeKind::Load(_)) {
                node.args.iter().try_for_each(|arg| self.value(*arg))?;
            }
            let types: Vec<Type> = node.args.iter().map(|arg| self.kernel.exprs[*arg].ty).collect();
            match node.kind {
                NodeKind::Op(op) if op.result_type(&types) != Ok(node.ty) => {
                    return Err(format!("{id:?} ({}) has operands of types {types:?}", op.name()));
                }
                NodeKind::Load(array) => match node.args[..] {
                    [index] => self.array(array, node.ty, index)?,
                    _ => return Err(format!("{id:?} is a load with {} indices", node.args.len())),
                },
                NodeKind::Offset(strides) => {
                    let strides = self.kernel.exprs.strides().get(strides).map(|own| own.strides.len());
                    if strides != Some(types.len()) || types.iter().any(|ty| *ty != Type::I32) {
                        return Err(format!("the offset {id:?} has terms of types {types:?}"));
                    }
                }
                NodeKind::Leaf(Leaf::Param(position)) => {
                    let param = self.program.params.get(position as usize);
                    if param.is_none_or(|(_, ty)| *ty != node.ty) {
                        return Err(format!("{id:?} reads a scalar that the program does not have"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An offset of 64 bits is an index, and nothing else.
    fn value(&self, id: NodeId) -> Result<(), String> {
        match self.kernel.exprs.is_offset(id) {
            true => Err(format!("the offset {id:?} is used as a value")),
            false => Ok(()),
        }
    }

    fn array(&self, array: ArrayId, ty: Type, index: NodeId) -> Result<(), String> {
        let exprs = &self.kernel.exprs;
        match self.kernel.arrays.get(array) {
            None => Err(format!("{array:?} does not exist")),
            Some(decl) if decl.ty != ty => Err(format!("`{}` holds {}, not {ty}", decl.name, decl.ty)),
            Some(decl) if exprs[index].ty != Type::I32 => {
                Err(format!("an index of `{}` is no i32", decl.name))
            }
            Some(decl) if decl.elements > NARROW_ELEMENTS as usize && !exprs.is_offset(index) => {
                Err(format!("an index of `{}` cannot count its {} elements", decl.name, decl.elements))
            }
            Some(decl) => match decl.space {
                Space::Global(buffer) if buffer.index() >= self.program.buffers.len() => {
                    Err(format!("`{}` is no buffer of the program", decl.name))
                }
                _ => Ok(()),
            },
        }
    }

    fn body(&mut self, body: &[Stmt], uniform: bool) -> Result<(), String> {
        let before = self.bound.clone();
        for stmt in body {
            match stmt {
                Stmt::Let(var, value) => {
                    self.value(*value)?;
                    if self.differs(*value)? {
                        self.varying.insert(*var);
                    }
                    self.bind(*var)?;
                }
                Stmt::Store { array, index, value } | Stmt::Atomic { array, index, value, .. } => {
                    self.differs(*index)?;
                    self.differs(*value)?;
                    self.value(*value)?;
                    self.array(*array, self.kernel.exprs[*value].ty, *index)?;
                }
                Stmt::For { var, count, body, .. } => {
                    if *count == 0 {
                        return Err("a loop runs no time".into());
                    }
                    self.bind(*var)?;
                    self.body(body, uniform)?;
                    self.bound.remove(var);
                }
                Stmt::If { condition, body, otherwise } => {
                    if self.kernel.exprs[*condition].ty != Type::Bool {
                        return Err("a condition is no truth value".into());
                    }
                    let differs = self.differs(*condition)?;
                    self.body(body, uniform && !differs)?;
                    self.body(otherwise, uniform && !differs)?;
                }
                Stmt::Barrier if !uniform => {
                    return Err("a barrier stands where threads may differ".into());
                }
                Stmt::Barrier => {}
            }
        }
        self.bound = before;
        Ok(())
    }

    fn bind(&mut self, var: VarId) -> Result<(), String> {
        if var.index() >= self.kernel.vars.len() || !self.bound.insert(var) {
            return Err(format!("{var:?} is bound twice or not declared"));
        }
        Ok(())
    }

    /// Whether an expression can differ between threads; an error if it uses a variable without a value.
    fn differs(&self, root: NodeId) -> Result<bool, String> {
        let mut differs = false;
        for id in self.kernel.exprs.reachable([root]) {
            match self.kernel.exprs[id].kind {
                NodeKind::Leaf(Leaf::Var(var)) if !self.bound.contains(&var) => {
                    return Err(format!("`{}` has no value here", self.kernel.vars[var]));
                }
                NodeKind::Leaf(Leaf::Var(var)) => differs |= self.varying.contains(&var),
                NodeKind::Leaf(Leaf::Thread) | NodeKind::Load(_) => differs = true,
                _ => {}
            }
        }
        Ok(differs)
    }
}
