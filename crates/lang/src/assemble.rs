//! Turns user-written Funcs into the tables of a pipeline: resolves names, shares equal expressions
//! and puts producers first.

use std::collections::hash_map::Entry;
use std::panic::Location;
use std::sync::OnceLock;

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;

use crate::error::{Diagnostic, Fault, PipelineError};
use crate::expr::{Expr, Term, TermKind};
use crate::func::{Definition, Func, FuncData, FuncName};
use crate::ids::{ExprId, FuncId, Id, IdVec, InputId, ParamId, TableId};
use crate::input::{Input, Param};
use crate::ir::{Exprs, FuncDecl, InputDecl, Node, NodeKind, ParamDecl, ReductionVar, Stage};
use crate::pipeline::Pipeline;
use crate::rdom::RVar;
use crate::table::Table;

/// The tables of a pipeline, and the set of its Funcs that are boundary conditions.
pub(crate) fn assemble(
    name: String,
    outputs: Vec<Func>,
) -> Result<(Pipeline, AHashSet<FuncId>), PipelineError> {
    if outputs.is_empty() {
        return Err(Fault::NoOutputs { pipeline: name }.into());
    }
    let order = producers_first(&outputs);
    let names = settle_names(&order);
    let mut assembler = Assembler::default();
    for (func, name) in order.iter().zip(names) {
        assembler.add_func(func, name);
    }
    if !assembler.diagnostics.is_empty() {
        return Err(PipelineError { diagnostics: assembler.diagnostics });
    }
    let outputs = outputs.iter().map(|output| assembler.func_ids[&output.address()]).collect();
    let boundaries = order.iter().filter(|func| func.data().is_boundary);
    let boundaries = boundaries.map(|func| assembler.func_ids[&func.address()]).collect();
    let Assembler { inputs, params, funcs, exprs, .. } = assembler;
    let (rewrites, by_name) = (Vec::new(), OnceLock::new());
    Ok((Pipeline { name, inputs, params, funcs, outputs, exprs, rewrites, by_name }, boundaries))
}

/// The Funcs that a Func's expressions call, in order of appearance.
fn callees(func: &Func) -> Vec<Func> {
    let mut found = Vec::new();
    let mut seen = AHashSet::new();
    let mut stack: Vec<Expr> = func.data().stages.iter().rev().flat_map(stage_exprs).collect();
    while let Some(expr) = stack.pop() {
        let Ok(term) = expr.term() else { continue };
        if !seen.insert(expr.address()) {
            continue;
        }
        if let TermKind::Call(callee, _) = &term.kind {
            found.push(callee.clone());
        }
        stack.extend(term.args.iter().rev().cloned());
    }
    found
}

/// All expressions of a stage in reverse order, for use as a stack.
fn stage_exprs(stage: &Definition) -> Vec<Expr> {
    let mut exprs: Vec<Expr> = Vec::new();
    if let Some(domain) = &stage.domain {
        exprs.extend(domain.ranges.iter().flat_map(|range| [range.min.clone(), range.extent.clone()]));
        exprs.extend(domain.predicate.clone());
    }
    exprs.extend(stage.indices.iter().chain(&stage.values).cloned());
    exprs.reverse();
    exprs
}

/// Every Func that the outputs need, in topological order.
fn producers_first(outputs: &[Func]) -> Vec<Func> {
    enum Visit {
        Enter(Func),
        Leave(Func),
    }
    let mut order = Vec::new();
    let mut seen = AHashSet::new();
    let mut visits: Vec<Visit> = outputs.iter().rev().cloned().map(Visit::Enter).collect();
    while let Some(visit) = visits.pop() {
        match visit {
            Visit::Enter(func) if seen.insert(func.address()) => {
                let below = callees(&func);
                visits.push(Visit::Leave(func));
                visits.extend(below.into_iter().rev().map(Visit::Enter));
            }
            Visit::Enter(_) => {}
            Visit::Leave(func) => order.push(func),
        }
    }
    order
}

/// The name of every Func: given, or derived from where the Func is used.
fn settle_names(order: &[Func]) -> Vec<String> {
    let mut names: AHashMap<usize, String> = AHashMap::new();
    let mut taken: AHashMap<String, usize> = AHashMap::new();
    for func in order {
        match &func.data().name {
            FuncName::Given(name) => drop(names.insert(func.address(), name.clone())),
            FuncName::Of(base, what) => {
                let stem = format!("{base}.{what}");
                let count = taken.entry(stem.clone()).or_default();
                let name = if *count == 0 { stem } else { format!("{stem}{count}") };
                *count += 1;
                names.insert(func.address(), name);
            }
            FuncName::Inside(_) => {}
        }
    }
    // Visit consumers first, so that a helper is named before its own helpers.
    for func in order.iter().rev() {
        let parent = names.get(&func.address()).cloned().unwrap_or_default();
        for helper in callees(func) {
            if let FuncName::Inside(what) = helper.data().name
                && !names.contains_key(&helper.address())
            {
                let stem = format!("{parent}.{what}");
                let count = taken.entry(stem.clone()).or_default();
                names.insert(helper.address(), format!("{stem}{count}"));
                *count += 1;
            }
        }
    }
    order.iter().map(|func| names.remove(&func.address()).unwrap_or_default()).collect()
}

#[derive(Default)]
struct Assembler {
    inputs: IdVec<InputId, InputDecl>,
    params: IdVec<ParamId, ParamDecl>,
    funcs: IdVec<FuncId, FuncDecl>,
    exprs: Exprs,
    func_ids: AHashMap<usize, FuncId>,
    input_ids: AHashMap<usize, InputId>,
    param_ids: AHashMap<usize, ParamId>,
    diagnostics: Vec<Diagnostic>,
    /// The texts of the diagnostics so far, to report each mistake once.
    reported: AHashSet<String>,
    /// Where each name was given.
    places: AHashMap<String, &'static Location<'static>>,
}

/// The stage that contains an expression; resolves its variables.
struct StageScope<'a> {
    id: FuncId,
    name: &'a str,
    func: &'a FuncData,
    stage: &'a Definition,
    /// Nodes of this stage that are already translated.
    known: AHashMap<usize, ExprId>,
}

impl Assembler {
    fn add_func(&mut self, func: &Func, name: String) {
        let id = FuncId::new(self.funcs.len());
        self.func_ids.insert(func.address(), id);
        let data = func.data();
        if let Some(start) = data.stages.first() {
            self.claim(&name, start.place);
        }
        let mut stages = Vec::new();
        for stage in &data.stages {
            let scope = StageScope { id, name: &name, func: data, stage, known: AHashMap::new() };
            match self.stage(scope) {
                Ok(stage) => stages.push(stage),
                // The same mistake can be reached from several places.
                Err(diagnostic) if !self.reported.insert(diagnostic.to_string()) => {}
                Err(diagnostic) => self.diagnostics.push(diagnostic),
            }
        }
        let dims = data.args.iter().map(|arg| arg.name().to_string()).collect();
        self.funcs.push(FuncDecl {
            name,
            dims,
            types: data.types.clone(),
            stages,
            stored: data.stored.clone(),
        });
    }

    fn stage(&mut self, mut scope: StageScope<'_>) -> Result<Stage, Diagnostic> {
        let stage = scope.stage;
        let mut all = |exprs: &[Expr], scope: &mut StageScope<'_>| -> Result<Vec<ExprId>, Diagnostic> {
            exprs.iter().map(|expr| self.expr(expr, scope)).collect()
        };
        let indices = all(&stage.indices, &mut scope)?;
        let values = all(&stage.values, &mut scope)?;
        let mut domain = Vec::new();
        let mut predicate = None;
        if let Some(reduction) = &stage.domain {
            for range in &reduction.ranges {
                let min = self.domain_bound(&range.min, range.name, &mut scope)?;
                let extent = self.domain_bound(&range.extent, range.name, &mut scope)?;
                domain.push(ReductionVar { name: range.name.to_string(), min, extent });
            }
            if let Some(condition) = &reduction.predicate {
                predicate = Some(self.expr(condition, &mut scope)?);
            }
        }
        let (reassociate, place) = (stage.reassociate, Some(stage.place));
        Ok(Stage { indices, values, domain, predicate, reassociate, place })
    }

    /// Translates a bound of a reduction domain. Variables are not allowed there.
    fn domain_bound(
        &mut self,
        bound: &Expr,
        variable: &str,
        scope: &mut StageScope<'_>,
    ) -> Result<ExprId, Diagnostic> {
        self.expr(bound, scope).map_err(|diagnostic| match diagnostic.fault {
            Fault::UnboundVar { func, .. } | Fault::ForeignRVar { func, .. } => {
                let fault = Fault::DomainBound { func, variable: variable.to_string() };
                Diagnostic { fault, ..diagnostic }
            }
            _ => diagnostic,
        })
    }

    /// Translates one expression, operands first.
    fn expr(&mut self, expr: &Expr, scope: &mut StageScope<'_>) -> Result<ExprId, Diagnostic> {
        let mut open: Vec<&Expr> = vec![expr];
        while let Some(&next) = open.last() {
            if scope.known.contains_key(&next.address()) {
                open.pop();
                continue;
            }
            let Term { kind, ty, args, .. } = next.term().map_err(Diagnostic::clone)?;
            let translated: Option<SmallVec<[ExprId; 3]>> =
                args.iter().map(|arg| scope.known.get(&arg.address()).copied()).collect();
            let Some(args) = translated else {
                open.extend(args.iter().rev());
                continue;
            };
            let kind = self.kind(kind, scope).map_err(|fault| Diagnostic::at(fault, scope.stage.place))?;
            let id = self.exprs.intern(Node { kind, ty: *ty, args });
            scope.known.insert(next.address(), id);
        }
        Ok(scope.known[&expr.address()])
    }

    fn kind(&mut self, kind: &TermKind, scope: &StageScope<'_>) -> Result<NodeKind, Fault> {
        Ok(match kind {
            TermKind::Var(var) => {
                let position = scope.func.args.iter().position(|arg| arg.name() == var.name());
                let unbound = || Fault::UnboundVar {
                    func: scope.name.to_string(),
                    variable: var.name().to_string(),
                    arguments: scope.func.args.iter().map(|arg| arg.name().to_string()).collect(),
                };
                NodeKind::Var(position.ok_or_else(unbound)? as u32)
            }
            TermKind::RVar(var) => NodeKind::RVar(reduction_var(*var, scope)?),
            TermKind::Param(param) => NodeKind::Param(self.param(param)),
            TermKind::InputMin(input, d) => NodeKind::InputMin(self.input(input), *d as u32),
            TermKind::InputExtent(input, d) => NodeKind::InputExtent(self.input(input), *d as u32),
            TermKind::Load(input) => NodeKind::Load(self.input(input)),
            TermKind::Call(func, value) => NodeKind::Call(self.func_ids[&func.address()], *value as u32),
            TermKind::Itself(value) => NodeKind::Call(scope.id, *value as u32),
            TermKind::Table(table) => NodeKind::Table(self.table(table)),
            TermKind::Op(op) => NodeKind::Op(*op),
        })
    }

    fn input(&mut self, input: &Input) -> InputId {
        if let Some(id) = self.input_ids.get(&input.address()) {
            return *id;
        }
        let data = input.data();
        self.claim(&data.name, data.place);
        let order = data.storage_order.clone().unwrap_or_else(|| (0..data.dimensions).collect());
        let id = self.inputs.push(InputDecl {
            name: data.name.clone(),
            ty: data.ty,
            dimensions: data.dimensions,
            storage_order: order,
        });
        self.input_ids.insert(input.address(), id);
        id
    }

    fn param(&mut self, param: &Param) -> ParamId {
        if let Some(id) = self.param_ids.get(&param.address()) {
            return *id;
        }
        let data = param.data();
        self.claim(&data.name, data.place);
        let (name, ty, range, default) = (data.name.clone(), data.ty, data.range, data.default);
        let id = self.params.push(ParamDecl { name, ty, range, default });
        self.param_ids.insert(param.address(), id);
        id
    }

    fn table(&mut self, table: &Table) -> TableId {
        let known = self.exprs.tables().len();
        let id = self.exprs.intern_table(table.decl());
        if self.exprs.tables().len() > known {
            self.claim(table.name(), table.place());
        }
        id
    }

    /// Reports a name that something else has.
    fn claim(&mut self, name: &str, place: &'static Location<'static>) {
        match self.places.entry(name.to_string()) {
            Entry::Vacant(free) => {
                free.insert(place);
            }
            Entry::Occupied(taken) => {
                let fault = Fault::Duplicate { name: name.to_string(), first: Some(taken.get()) };
                let diagnostic = Diagnostic::at(fault, place);
                if self.reported.insert(diagnostic.to_string()) {
                    self.diagnostics.push(diagnostic);
                }
            }
        }
    }
}

fn reduction_var(var: RVar, scope: &StageScope<'_>) -> Result<u32, Fault> {
    let func = || scope.name.to_string();
    match &scope.stage.domain {
        Some(domain) if domain.id() == var.domain => {
            let variables = domain.ranges.len();
            if var.index < variables {
                Ok(var.index as u32)
            } else {
                Err(Fault::NoSuchRVar { func: func(), index: var.index, variables })
            }
        }
        _ => Err(Fault::ForeignRVar { func: func(), variable: var.name().to_string() }),
    }
}
