//! The structural hash: equal for pipelines with the same definitions, apart from internal names.

use xxhash_rust::xxh3::Xxh3;

use crate::ids::{ExprId, FuncId, IdVec, TableId};
use crate::ir::{FuncDecl, Node, NodeKind, Stage, TableDecl};
use crate::pipeline::Pipeline;

/// The bytes that a hash covers, encoded without ambiguity.
#[derive(Default)]
struct Digest(Xxh3);

impl Digest {
    fn number(&mut self, number: u128) -> &mut Digest {
        self.0.update(&number.to_le_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Digest {
        self.number(text.len() as u128).0.update(text.as_bytes());
        self
    }

    fn finish(&self) -> u128 {
        self.0.digest128()
    }
}

/// The hashes of the entries that nodes refer to.
struct Hashes {
    tables: IdVec<TableId, u128>,
    /// The Funcs so far.
    funcs: IdVec<FuncId, u128>,
}

pub(crate) fn structural_hash(pipeline: &Pipeline) -> u128 {
    let tables = pipeline.tables().values().map(hash_table).collect();
    let mut hashes = Hashes { tables, funcs: IdVec::new() };
    for (id, func) in pipeline.funcs.iter() {
        let hash = hash_func(pipeline, id, func, &hashes);
        hashes.funcs.push(hash);
    }
    let funcs = hashes.funcs;
    let mut digest = Digest::default();
    digest.text("warploom pipeline 1");
    for &output in &pipeline.outputs {
        digest.text(&pipeline.funcs[output].name).number(funcs[output]);
        if let Some(order) = &pipeline.funcs[output].stored {
            digest.text("stored");
            for &d in order {
                digest.number(d as u128);
            }
        }
    }
    digest.finish()
}

/// The hash of all names of a pipeline, its own too.
pub(crate) fn names_hash(pipeline: &Pipeline) -> u128 {
    let mut digest = Digest::default();
    digest.text("warploom names 1").text(&pipeline.name);
    let inputs = pipeline.inputs.values().map(|input| &input.name);
    let params = pipeline.params.values().map(|param| &param.name);
    let tables = pipeline.tables().values().map(|table| &table.name);
    for name in inputs.chain(params).chain(tables) {
        digest.text(name);
    }
    for func in pipeline.funcs.values() {
        digest.text(&func.name).number(func.dims.len() as u128);
        let domains = func.stages.iter().flat_map(|stage| &stage.domain);
        for name in func.dims.iter().chain(domains.map(|variable| &variable.name)) {
            digest.text(name);
        }
    }
    digest.finish()
}

/// The hash of a table's values; its name is internal.
fn hash_table(table: &TableDecl) -> u128 {
    let mut digest = Digest::default();
    digest.text(table.ty.name()).number(table.extents.len() as u128);
    for &extent in &table.extents {
        digest.number(extent as u128);
    }
    for value in table.values() {
        digest.number(value.bits().into());
    }
    digest.finish()
}

fn hash_func(pipeline: &Pipeline, id: FuncId, func: &FuncDecl, earlier: &Hashes) -> u128 {
    let mut digest = Digest::default();
    digest.number(func.dims.len() as u128).number(func.stages.len() as u128);
    for ty in &func.types {
        digest.text(ty.name());
    }
    for stage in &func.stages {
        digest.number(hash_stage(pipeline, id, stage, earlier));
    }
    digest.finish()
}

fn hash_stage(pipeline: &Pipeline, id: FuncId, stage: &Stage, earlier: &Hashes) -> u128 {
    let exprs = &pipeline.exprs;
    let nodes = exprs.reachable(stage.all_roots());
    let mut hashes: ahash::AHashMap<ExprId, u128> = ahash::AHashMap::new();
    for node in nodes {
        let mut digest = Digest::default();
        hash_kind(pipeline, id, &exprs[node], earlier, &mut digest);
        for arg in &exprs[node].args {
            digest.number(hashes[arg]);
        }
        hashes.insert(node, digest.finish());
    }
    let mut digest = Digest::default();
    digest.number(stage.values.len() as u128).number(stage.domain.len() as u128);
    digest.number(stage.predicate.is_some().into());
    for root in stage.all_roots() {
        digest.number(hashes[&root]);
    }
    if stage.reassociate {
        digest.text("reassociate");
    }
    digest.finish()
}

/// Hashes everything of a node except its arguments. Inputs and Params count by their external
/// declaration.
fn hash_kind(pipeline: &Pipeline, own: FuncId, node: &Node, earlier: &Hashes, digest: &mut Digest) {
    let mut input = |tag: &str, input, dimension: u32| {
        let input = &pipeline.inputs[input];
        digest.text(tag).text(&input.name).text(input.ty.name()).number(dimension.into());
        for &d in &input.storage_order {
            digest.number(d as u128);
        }
    };
    match node.kind {
        NodeKind::InputMin(id, d) => input("min", id, d),
        NodeKind::InputExtent(id, d) => input("extent", id, d),
        NodeKind::Load(id) => input("load", id, 0),
        NodeKind::Var(d) => drop(digest.text("var").number(d.into())),
        NodeKind::RVar(r) => drop(digest.text("rvar").number(r.into())),
        NodeKind::Param(id) => {
            let param = &pipeline.params[id];
            digest.text("param").text(&param.name).text(param.ty.name());
            if let Some((low, high)) = param.range {
                digest.number(low.bits().into()).number(high.bits().into());
            }
        }
        NodeKind::Call(func, value) if func == own => drop(digest.text("self").number(value.into())),
        NodeKind::Call(func, value) => {
            digest.text("call").number(earlier.funcs[func]).number(value.into());
        }
        NodeKind::Table(table) => drop(digest.text("table").number(earlier.tables[table])),
        NodeKind::Op(op) => match op {
            crate::op::Op::Const(value) => {
                digest.text("const").text(value.ty().name()).number(value.bits().into());
            }
            op => drop(digest.text(op.name()).text(node.ty.name()).number(node.args.len() as u128)),
        },
    }
}
