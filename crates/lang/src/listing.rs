//! The human-readable listing of a pipeline.

use std::fmt;

use ahash::AHashMap;

use crate::ids::{ExprId, Id};
use crate::ir::{FuncDecl, NodeKind, Stage};
use crate::op::{BinaryOp, Op, UnaryOp};
use crate::pipeline::Pipeline;

/// An expression with more nodes than this is split into named subexpressions.
const LONG: u64 = 300;

/// The number of values of a table that are listed.
const SHOWN: usize = 8;

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pipeline {}", self.name)?;
        for input in self.inputs.values() {
            let dims: Vec<String> = (0..input.dimensions).map(|d| format!("d{d}")).collect();
            write!(f, "  input  {}({}): {}", input.name, dims.join(", "), input.ty)?;
            if !input.storage_order.iter().copied().eq(0..input.dimensions) {
                write!(f, " stored {:?}", input.storage_order)?;
            }
            writeln!(f)?;
        }
        for param in self.params.values() {
            write!(f, "  param  {}: {}", param.name, param.ty)?;
            if let Some((low, high)) = &param.range {
                write!(f, " in {low}..={high}")?;
            }
            match &param.default {
                Some(value) => writeln!(f, " = {value}")?,
                None => writeln!(f)?,
            }
        }
        for table in self.tables().values() {
            let dims: Vec<String> = table.extents.iter().map(|extent| extent.to_string()).collect();
            let values: Vec<String> = table.values().iter().take(SHOWN).map(|v| v.to_string()).collect();
            let more = if table.values().len() > SHOWN { ", ..." } else { "" };
            writeln!(
                f,
                "  table  {}[{}]: {} = {}{more}",
                table.name,
                dims.join(", "),
                table.ty,
                values.join(", ")
            )?;
        }
        for func in self.funcs.values() {
            for stage in &func.stages {
                StageText::new(self, func, stage).write(f)?;
            }
            if let Some(order) = &func.stored {
                writeln!(f, "  {} stored {order:?}", func.name)?;
            }
        }
        Ok(())
    }
}

struct StageText<'a> {
    pipeline: &'a Pipeline,
    func: &'a FuncDecl,
    stage: &'a Stage,
    /// Names of subexpressions that are listed once and used several times.
    parts: AHashMap<ExprId, String>,
}

/// Operator precedence, for parentheses.
mod binding {
    pub const OR: u8 = 1;
    pub const XOR: u8 = 2;
    pub const AND: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const SHIFT: u8 = 5;
    pub const SUM: u8 = 6;
    pub const PRODUCT: u8 = 7;
    pub const PREFIX: u8 = 8;
    pub const ATOM: u8 = 9;
}

impl<'a> StageText<'a> {
    fn new(pipeline: &'a Pipeline, func: &'a FuncDecl, stage: &'a Stage) -> StageText<'a> {
        let mut text = StageText { pipeline, func, stage, parts: AHashMap::new() };
        text.name_parts();
        text
    }

    /// If the whole listing would be long, names every shared operation.
    fn name_parts(&mut self) {
        let exprs = &self.pipeline.exprs;
        let nodes = exprs.reachable(self.stage.roots());
        let mut size: AHashMap<ExprId, u64> = AHashMap::new();
        let mut uses: AHashMap<ExprId, u32> = AHashMap::new();
        for &id in &nodes {
            let mut total = 1u64;
            for arg in &exprs[id].args {
                total = total.saturating_add(size[arg]);
                *uses.entry(*arg).or_default() += 1;
            }
            size.insert(id, total);
        }
        let whole = self.stage.roots().map(|root| size[&root]).fold(0, u64::saturating_add);
        if whole <= LONG {
            return;
        }
        for id in nodes {
            if uses.get(&id).is_some_and(|n| *n > 1) && size[&id] > 3 {
                let name = format!("t{}", self.parts.len());
                self.parts.insert(id, name);
            }
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<(&ExprId, &String)> = self.parts.iter().collect();
        parts.sort_by_key(|(id, _)| id.index());
        for (id, name) in parts {
            writeln!(f, "    {name} = {}", self.operation(*id, 0))?;
        }
        let indices = self.list(&self.stage.indices);
        let values = match self.stage.values.len() {
            0 => "undef".to_string(),
            1 => self.expr(self.stage.values[0], 0),
            _ => format!("({})", self.list(&self.stage.values)),
        };
        write!(f, "  {}({indices}) = {values}", self.func.name)?;
        for (i, var) in self.stage.domain.iter().enumerate() {
            let (min, extent) = (self.expr(var.min, 0), self.expr(var.extent, 0));
            write!(f, "{} {} in ({min}, {extent})", if i == 0 { "  over" } else { "," }, var.name)?;
        }
        if let Some(predicate) = self.stage.predicate {
            write!(f, " where {}", self.expr(predicate, 0))?;
        }
        if self.stage.reassociate {
            write!(f, "  in any order")?;
        }
        writeln!(f)
    }

    fn list(&self, ids: &[ExprId]) -> String {
        ids.iter().map(|id| self.expr(*id, 0)).collect::<Vec<_>>().join(", ")
    }

    /// The text of an expression; in parentheses if it binds less tightly than `outer`.
    fn expr(&self, id: ExprId, outer: u8) -> String {
        match self.parts.get(&id) {
            Some(name) => name.clone(),
            None => self.operation(id, outer),
        }
    }

    fn operation(&self, id: ExprId, outer: u8) -> String {
        let (text, binds) = self.text(id);
        if binds < outer { format!("({text})") } else { text }
    }

    fn text(&self, id: ExprId) -> (String, u8) {
        let node = &self.pipeline.exprs[id];
        let input = |id| &self.pipeline.inputs[id].name;
        let call = |name: &str| format!("{name}({})", self.list(&node.args));
        let atom = match node.kind {
            NodeKind::Var(d) => self.func.dims[d as usize].clone(),
            NodeKind::RVar(r) => self.stage.domain[r as usize].name.clone(),
            NodeKind::Param(param) => self.pipeline.params[param].name.clone(),
            NodeKind::InputMin(id, d) => format!("{}.min({d})", input(id)),
            NodeKind::InputExtent(id, d) => format!("{}.extent({d})", input(id)),
            NodeKind::Load(id) => call(input(id)),
            NodeKind::Call(id, value) => {
                let func = &self.pipeline.funcs[id];
                let text = call(&func.name);
                if func.types.len() > 1 { format!("{text}[{value}]") } else { text }
            }
            NodeKind::Table(id) => call(&self.pipeline.tables()[id].name),
            NodeKind::Op(op) => return self.op_text(op, &node.args),
        };
        (atom, binding::ATOM)
    }

    fn is_constant(&self, id: ExprId) -> bool {
        self.pipeline.exprs.constant(id).is_some()
    }

    fn op_text(&self, op: Op, args: &[ExprId]) -> (String, u8) {
        use BinaryOp::*;
        let call = |name: &str| (format!("{name}({})", self.list(args)), binding::ATOM);
        match op {
            Op::Const(value) => {
                let binds = if value.as_f64() < 0.0 { binding::PREFIX } else { binding::ATOM };
                (value.to_string(), binds)
            }
            Op::Cast(ty) => call(ty.name()),
            Op::SaturatingCast(ty) => call(&format!("saturate_{ty}")),
            Op::Reinterpret(ty) => call(&format!("bits_as_{ty}")),
            Op::Select => call("select"),
            Op::Unary(op @ (UnaryOp::Neg | UnaryOp::Not)) => {
                (format!("{}{}", op.name(), self.expr(args[0], binding::ATOM)), binding::PREFIX)
            }
            Op::Unary(op) => call(op.name()),
            Op::Binary(op @ (Min | Max | Pow | Absd | Average | Atan2)) => call(op.name()),
            Op::Binary(op) => {
                let binds = match op {
                    Or => binding::OR,
                    Xor => binding::XOR,
                    And => binding::AND,
                    Eq | Ne | Lt | Le => binding::COMPARE,
                    Shl | Shr => binding::SHIFT,
                    Add | Sub => binding::SUM,
                    _ => binding::PRODUCT,
                };
                let (left, right) = (self.expr(args[0], binds), self.expr(args[1], binds + 1));
                // Print `a + -1` as `a - 1`.
                match right.strip_prefix('-') {
                    Some(positive) if op == Add && self.is_constant(args[1]) => {
                        (format!("{left} - {positive}"), binds)
                    }
                    _ => (format!("{left} {} {right}", op.name()), binds),
                }
            }
        }
    }
}
