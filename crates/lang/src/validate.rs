//! The rules that every pipeline obeys, whether it was written in Rust or read from a file.

use ahash::AHashSet;

use crate::error::{Diagnostic, Fault, PipelineError};
use crate::expr::{MAX_DEPTH, explain};
use crate::files::TABLES;
use crate::ids::{ExprId, FuncId, Id, IdVec};
use crate::ir::{FuncDecl, MAX_TABLE, Node, NodeKind, Stage, TableDecl, within};
use crate::naming::{check_meanings, check_names};
use crate::pipeline::Pipeline;
use crate::types::Type;

/// Checks all rules. After this, every table index in the pipeline is in range.
pub(crate) fn validate(pipeline: &Pipeline) -> Result<(), PipelineError> {
    check_names(pipeline)?;
    check_tables(pipeline)?;
    check_nodes(pipeline)?;
    check_meanings(pipeline)?;
    let mut diagnostics = Vec::new();
    for (id, func) in pipeline.funcs.iter() {
        if let [only] = func.stages.as_slice()
            && only.values.is_empty()
        {
            let fault = Fault::NeverDefined { func: func.name.clone() };
            diagnostics.push(Diagnostic { fault, place: only.place });
        }
        for number in 0..func.stages.len() {
            let stage = &func.stages[number];
            if let Err(fault) = (StageRules { pipeline, id, func, number, stage }).check() {
                diagnostics.push(Diagnostic { fault, place: stage.place });
            }
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(PipelineError { diagnostics }) }
}

fn malformed(what: String) -> Fault {
    Fault::Malformed { what }
}

fn check_tables(pipeline: &Pipeline) -> Result<(), Fault> {
    if pipeline.exprs.len() > MAX_TABLE || pipeline.funcs.len() > MAX_TABLE {
        return Err(malformed(format!("it has more than {MAX_TABLE} entries")));
    }
    if pipeline.outputs.is_empty() {
        return Err(Fault::NoOutputs { pipeline: pipeline.name.clone() });
    }
    if let Some(output) = pipeline.outputs.iter().find(|output| !within(**output, pipeline.funcs.len())) {
        return Err(malformed(format!("output {output:?} does not exist")));
    }
    for func in pipeline.funcs.values() {
        if func.stages.is_empty() || func.types.is_empty() {
            return Err(malformed(format!("`{}` has no definition", func.name)));
        }
        for stage in &func.stages {
            if let Some(id) = stage.all_roots().find(|id| !within(*id, pipeline.exprs.len())) {
                return Err(malformed(format!("`{}` uses {id:?}, which does not exist", func.name)));
            }
        }
    }
    check_constants(pipeline)?;
    for input in pipeline.inputs.values() {
        check_order(&input.name, &input.storage_order, input.dimensions)?;
    }
    for func in pipeline.funcs.values() {
        if let Some(order) = &func.stored {
            check_order(&func.name, order, func.dims.len())?;
        }
    }
    Ok(())
}

/// Checks that constant tables are complete and small enough to be part of a kernel.
fn check_constants(pipeline: &Pipeline) -> Result<(), Fault> {
    for table in pipeline.tables().values() {
        if !table.is_complete() {
            return Err(malformed(format!("`{}` has not as many values as its extents say", table.name)));
        }
        if table.values().is_empty() {
            return Err(Fault::EmptyTable { table: table.name.clone() });
        }
    }
    let bytes = pipeline.tables().values().map(TableDecl::bytes).sum();
    match pipeline.tables().values().max_by_key(|table| table.bytes()) {
        Some(largest) if bytes as u64 > TABLES.most => {
            let (pipeline, largest) = (pipeline.name.clone(), largest.name.clone());
            Err(Fault::LargeTables { pipeline, bytes, largest })
        }
        _ => Ok(()),
    }
}

/// Checks that a storage order has each dimension once.
fn check_order(name: &str, order: &[usize], dimensions: usize) -> Result<(), Fault> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    match sorted.into_iter().eq(0..dimensions) {
        true => Ok(()),
        false => Err(Fault::StorageOrder { input: name.to_string(), order: order.to_vec(), dimensions }),
    }
}

/// Checks that every node is well typed and not nested too deeply.
fn check_nodes(pipeline: &Pipeline) -> Result<(), Fault> {
    let mut depths: IdVec<ExprId, u32> = IdVec::new();
    for (id, node) in pipeline.exprs.nodes().iter() {
        check_node(pipeline, id, node)?;
        let depth = node.args.iter().map(|arg| depths[*arg] + 1).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return Err(Fault::TooDeep { limit: MAX_DEPTH });
        }
        depths.push(depth);
    }
    Ok(())
}

/// Checks types and arity of one node, assuming that the nodes before it are valid.
fn check_node(pipeline: &Pipeline, id: ExprId, node: &Node) -> Result<(), Fault> {
    if node.args.iter().any(|arg| *arg >= id) {
        return Err(malformed(format!("{id:?} uses an expression that does not come before it")));
    }
    let types: Vec<Type> = node.args.iter().map(|arg| pipeline.exprs[*arg].ty).collect();
    let missing = |what: &str| malformed(format!("{id:?} uses {what} that does not exist"));
    let (callee, dimensions, ty) = match node.kind {
        NodeKind::Op(op) => {
            let ty = op.result_type(&types).map_err(|fault| explain(op, fault))?;
            return same_type(id, node.ty, ty);
        }
        NodeKind::Var(_) | NodeKind::RVar(_) => ("a variable", 0, Type::I32),
        NodeKind::Param(param) => {
            let param = pipeline.params.get(param).ok_or_else(|| missing("a Param"))?;
            (param.name.as_str(), 0, param.ty)
        }
        NodeKind::InputMin(input, d) | NodeKind::InputExtent(input, d) => {
            let input = pipeline.inputs.get(input).ok_or_else(|| missing("an input"))?;
            if d as usize >= input.dimensions {
                return Err(missing("a dimension"));
            }
            (input.name.as_str(), 0, Type::I32)
        }
        NodeKind::Load(input) => {
            let input = pipeline.inputs.get(input).ok_or_else(|| missing("an input"))?;
            (input.name.as_str(), input.dimensions, input.ty)
        }
        NodeKind::Table(table) => {
            let table = pipeline.tables().get(table).ok_or_else(|| missing("a table"))?;
            (table.name.as_str(), table.extents.len(), table.ty)
        }
        NodeKind::Call(func, value) => {
            let func = pipeline.funcs.get(func).ok_or_else(|| missing("a Func"))?;
            let ty = *func.types.get(value as usize).ok_or_else(|| missing("a value"))?;
            (func.name.as_str(), func.dims.len(), ty)
        }
    };
    if node.args.len() != dimensions {
        let variables = match node.kind {
            NodeKind::Call(func, _) => pipeline.funcs[func].dims.clone(),
            _ => (0..dimensions).map(|d| format!("d{d}")).collect(),
        };
        return Err(Fault::Arity { callee: callee.to_owned(), got: node.args.len(), variables });
    }
    if let Some(dimension) = types.iter().position(|ty| *ty != Type::I32) {
        return Err(Fault::IndexType { callee: callee.to_owned(), dimension, ty: types[dimension] });
    }
    same_type(id, node.ty, ty)
}

fn same_type(id: ExprId, got: Type, expected: Type) -> Result<(), Fault> {
    if got == expected {
        return Ok(());
    }
    Err(malformed(format!("{id:?} is declared as {got} but is {expected}")))
}

struct StageRules<'a> {
    pipeline: &'a Pipeline,
    id: FuncId,
    func: &'a FuncDecl,
    number: usize,
    stage: &'a Stage,
}

impl StageRules<'_> {
    fn check(&self) -> Result<(), Fault> {
        self.check_indices()?;
        self.check_variables_differ()?;
        self.check_values()?;
        self.check_domain()?;
        for id in self.pipeline.exprs.reachable(self.stage.roots()) {
            self.check_use(&self.pipeline.exprs[id])?;
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.func.name.clone()
    }

    fn check_indices(&self) -> Result<(), Fault> {
        let indices = &self.stage.indices;
        let exprs = &self.pipeline.exprs;
        if indices.len() != self.func.dims.len() {
            let variables = self.func.dims.clone();
            return Err(Fault::Arity { callee: self.name(), got: indices.len(), variables });
        }
        if let Some(dimension) = indices.iter().position(|index| exprs[*index].ty != Type::I32) {
            return Err(Fault::IndexType {
                callee: self.name(),
                dimension,
                ty: exprs[indices[dimension]].ty,
            });
        }
        Ok(())
    }

    /// Checks number and types of the values and of the predicate, and that stage 0 is pure.
    fn check_values(&self) -> Result<(), Fault> {
        let Stage { indices, values, domain, predicate, .. } = self.stage;
        let exprs = &self.pipeline.exprs;
        let undefined_start = self.number == 0 && values.is_empty();
        if values.len() != self.func.types.len() && !undefined_start {
            return Err(Fault::ValueCount {
                func: self.name(),
                stage: self.number,
                got: values.len(),
                expected: self.func.types.len(),
            });
        }
        for (value, &expected) in values.iter().zip(&self.func.types) {
            let got = exprs[*value].ty;
            if got != expected {
                return Err(Fault::ValueType { func: self.name(), stage: self.number, got, expected });
            }
        }
        if let Some(ty) = predicate.map(|p| exprs[p].ty).filter(|ty| *ty != Type::Bool) {
            return Err(Fault::Condition { ty });
        }
        let pure = (0..indices.len()).all(|d| self.stage.is_pure(exprs, d));
        if self.number == 0 && (!pure || !domain.is_empty() || predicate.is_some()) {
            return Err(malformed(format!(
                "the first stage of `{}` is not a pure definition",
                self.func.name
            )));
        }
        Ok(())
    }

    /// Checks that no two loops of the stage share a name; schedules refer to loops by name.
    fn check_variables_differ(&self) -> Result<(), Fault> {
        let exprs = &self.pipeline.exprs;
        let runs = |d: usize| self.number == 0 || self.stage.is_pure(exprs, d);
        let pure = self.func.dims.iter().enumerate().filter(|(d, _)| runs(*d));
        let mut seen = AHashSet::new();
        for name in pure.map(|(_, name)| name).chain(self.stage.domain.iter().map(|var| &var.name)) {
            if !seen.insert(name) {
                return Err(Fault::RepeatedVar { func: self.name(), variable: name.clone() });
            }
        }
        Ok(())
    }

    /// Checks that the domain's bounds are `i32` and known before anything is computed.
    fn check_domain(&self) -> Result<(), Fault> {
        let exprs = &self.pipeline.exprs;
        for var in &self.stage.domain {
            let varies = exprs.reachable([var.min, var.extent]).into_iter().any(|id| {
                matches!(
                    exprs[id].kind,
                    NodeKind::Var(_)
                        | NodeKind::RVar(_)
                        | NodeKind::Load(_)
                        | NodeKind::Table(_)
                        | NodeKind::Call(..)
                )
            });
            let bounds_fit = [var.min, var.extent].iter().all(|bound| exprs[*bound].ty == Type::I32);
            if varies || !bounds_fit {
                return Err(Fault::DomainBound { func: self.name(), variable: var.name.clone() });
            }
        }
        Ok(())
    }

    /// Checks that a variable or call may appear in this stage.
    fn check_use(&self, node: &Node) -> Result<(), Fault> {
        match node.kind {
            NodeKind::Var(d) => self.check_var(d as usize),
            NodeKind::RVar(index) if index as usize >= self.stage.domain.len() => Err(Fault::NoSuchRVar {
                func: self.name(),
                index: index as usize,
                variables: self.stage.domain.len(),
            }),
            NodeKind::Call(func, _) if func == self.id => self.check_self_reference(node),
            NodeKind::Call(func, _) if func > self.id => {
                Err(Fault::UndefinedFunc { func: self.name(), number: func.index() })
            }
            _ => Ok(()),
        }
    }

    fn check_var(&self, d: usize) -> Result<(), Fault> {
        match self.func.dims.get(d) {
            None => Err(malformed(format!("`{}` has no variable {d}", self.func.name))),
            Some(_) if self.stage.is_pure(&self.pipeline.exprs, d) => Ok(()),
            Some(variable) => Err(Fault::ImpureVar {
                func: self.name(),
                update: self.number,
                variable: variable.clone(),
                arguments: self.func.dims.clone(),
            }),
        }
    }

    fn check_self_reference(&self, node: &Node) -> Result<(), Fault> {
        if self.number == 0 {
            return Err(Fault::SelfInPure { func: self.name() });
        }
        let exprs = &self.pipeline.exprs;
        let pure = (0..node.args.len()).filter(|d| self.stage.is_pure(exprs, *d));
        match pure.into_iter().find(|d| exprs[node.args[*d]].kind != NodeKind::Var(*d as u32)) {
            None => Ok(()),
            Some(dimension) => Err(Fault::SelfReference {
                func: self.name(),
                update: self.number,
                variable: self.func.dims[dimension].clone(),
                dimension,
            }),
        }
    }
}
