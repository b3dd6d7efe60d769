//! Pipelines: the unit that is compiled and run.

use std::borrow::Cow;
use std::sync::OnceLock;

use ahash::AHashMap;

use crate::assemble::assemble;
use crate::error::{Fault, PipelineError};
use crate::func::Func;
use crate::hash::{names_hash, structural_hash};
use crate::ids::{FuncId, IdVec, InputId, ParamId, TableId};
use crate::ir::{Exprs, FuncDecl, InputDecl, Node, ParamDecl, TableDecl};
use crate::rewrite::{Rewrite, RewriteLineError};
use crate::specialise::specialised_params;
use crate::validate::validate;
use crate::write_out::write_out;

/// A validated pipeline. Its Funcs are in topological order, producers before consumers.
///
/// ```
/// use warploom_lang::*;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let double = func("double", (x, y), input.at((x, y)) * 2.0);
/// let pipeline = Pipeline::new("double", [double])?;
/// assert_eq!(pipeline.to_string(), "\
/// pipeline double
///   input  input(d0, d1): f32
///   double(x, y) = input(x, y) * 2.0
/// ");
/// # Ok::<(), PipelineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(crate) name: String,
    pub(crate) inputs: IdVec<InputId, InputDecl>,
    pub(crate) params: IdVec<ParamId, ParamDecl>,
    pub(crate) funcs: IdVec<FuncId, FuncDecl>,
    pub(crate) outputs: Vec<FuncId>,
    pub(crate) exprs: Exprs,
    /// The rewrites that made this pipeline out of the original one.
    pub(crate) rewrites: Vec<Rewrite>,
    /// The Funcs by name; filled on the first lookup.
    pub(crate) by_name: OnceLock<AHashMap<String, FuncId>>,
}

impl Pipeline {
    /// The pipeline that computes `outputs`. Reports every mistake in the definitions.
    pub fn new(
        name: impl Into<String>,
        outputs: impl IntoIterator<Item = Func>,
    ) -> Result<Pipeline, PipelineError> {
        let (pipeline, boundaries) = assemble(name.into(), outputs.into_iter().collect())?;
        validate(&pipeline)?;
        match write_out(&pipeline, &boundaries) {
            Some(pipeline) => validate(&pipeline).map(|()| pipeline),
            None => Ok(pipeline),
        }
    }

    /// The pipeline's name, as given to `Pipeline::new`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The inputs, in order of first use.
    pub fn inputs(&self) -> &IdVec<InputId, InputDecl> {
        &self.inputs
    }

    /// The scalar parameters, in order of first use.
    pub fn params(&self) -> &IdVec<ParamId, ParamDecl> {
        &self.params
    }

    /// The constant tables, in order of first use.
    pub fn tables(&self) -> &IdVec<TableId, TableDecl> {
        self.exprs.tables()
    }

    /// The Funcs, producers before consumers.
    pub fn funcs(&self) -> &IdVec<FuncId, FuncDecl> {
        &self.funcs
    }

    /// The output Funcs, in the order given to `Pipeline::new`.
    pub fn outputs(&self) -> &[FuncId] {
        &self.outputs
    }

    /// The names of all output values, one per output buffer.
    pub fn output_names(&self) -> Vec<String> {
        self.outputs.iter().flat_map(|id| self.funcs[*id].value_names()).collect()
    }

    /// The shared nodes of all expressions.
    pub fn exprs(&self) -> &Exprs {
        &self.exprs
    }

    /// The rewrites that made this pipeline out of the original one, in order. A pipeline that is read
    /// from a file is an original one.
    pub fn rewrites(&self) -> &[Rewrite] {
        &self.rewrites
    }

    /// The pipeline after some rewrites of the original one. A pipeline that starts with the same
    /// rewrites is continued.
    ///
    /// # Errors
    /// The first rewrite that cannot be applied.
    pub fn rewritten(&self, rewrites: &[Rewrite]) -> Result<Cow<'_, Pipeline>, RewriteLineError> {
        crate::rewrite::rewritten(self, rewrites)
    }

    /// The input with this name.
    pub fn input_named(&self, name: &str) -> Option<InputId> {
        self.inputs.iter().find(|(_, input)| input.name == name).map(|(id, _)| id)
    }

    /// The Param with this name.
    pub fn param_named(&self, name: &str) -> Option<ParamId> {
        self.params.iter().find(|(_, param)| param.name == name).map(|(id, _)| id)
    }

    /// The Func with this name.
    pub fn func_named(&self, name: &str) -> Option<FuncId> {
        let by_name = self
            .by_name
            .get_or_init(|| self.funcs.iter().map(|(id, func)| (func.name.clone(), id)).collect());
        by_name.get(name).copied()
    }

    /// For each Param, whether sizes or regions depend on it. Such a Param is fixed in a compiled
    /// pipeline, as the sizes are.
    pub fn specialised_params(&self) -> IdVec<ParamId, bool> {
        specialised_params(self)
    }

    /// A hash of the computation and of the external names (inputs, Params, outputs).
    ///
    /// It does not cover sizes or the names of variables and inner Funcs. It is the same on every
    /// machine.
    pub fn structural_hash(&self) -> u128 {
        structural_hash(self)
    }

    /// A hash of all names: the pipeline's own and those of inputs, Params, tables, Funcs and their variables. Two
    /// pipelines with the same [structure](Pipeline::structural_hash) and the same names hash give schedule texts the
    /// same meaning.
    pub fn names_hash(&self) -> u128 {
        names_hash(self)
    }

    /// Serialises the pipeline. This is the only form that can be read back.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// Reads a pipeline that [`Pipeline::to_json`] wrote, and validates it as [`Pipeline::new`]
    /// does.
    pub fn from_json(text: &str) -> Result<Pipeline, PipelineError> {
        let pipeline = crate::json::read(text)?;
        validate(&pipeline)?;
        Ok(pipeline)
    }

    pub(crate) fn from_parts(
        name: String,
        inputs: IdVec<InputId, InputDecl>,
        params: IdVec<ParamId, ParamDecl>,
        funcs: IdVec<FuncId, FuncDecl>,
        outputs: Vec<FuncId>,
        (tables, nodes): (IdVec<TableId, TableDecl>, Vec<Node>),
    ) -> Result<Pipeline, Fault> {
        let mut exprs = Exprs::with_tables(tables);
        for (position, node) in nodes.into_iter().enumerate() {
            let id = exprs.intern(node);
            if crate::ids::Id::index(id) != position {
                return Err(Fault::Malformed { what: format!("expression {position} is a duplicate") });
            }
        }
        let (rewrites, by_name) = (Vec::new(), OnceLock::new());
        Ok(Pipeline { name, inputs, params, funcs, outputs, exprs, rewrites, by_name })
    }
}
