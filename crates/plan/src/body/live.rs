//! Which expressions of a stage are evaluated. A `select` with a constant condition is dropped; in interior blocks, so is
//! one whose condition differs only at the edges of the image.

use ahash::{AHashMap, AHashSet};
use warploom_lang::ExprId;
use warploom_lang::ir::{Exprs, NodeKind};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

use crate::body::flatten::Flattening;
use crate::body::form::Form;
use crate::body::value::Known;

/// The expressions that are evaluated.
pub(super) struct Live {
    /// The nodes, operands first.
    pub nodes: Vec<ExprId>,
    /// The arms of the `select`s whose outcome is known.
    pub arms: AHashMap<ExprId, ExprId>,
    /// Sums that decide choices between reads: away from the edges none is negative.
    pub edges: Vec<Form>,
}

impl Flattening<'_> {
    /// What is evaluated of some expressions.
    pub(super) fn live(&self, roots: &[ExprId], point: &[Known]) -> Live {
        let exprs = self.pipeline.exprs();
        let mut nodes = exprs.reachable(roots.iter().copied());
        let mut known: AHashMap<ExprId, Known> = AHashMap::with_capacity(nodes.len());
        let (mut arms, mut edges) = (AHashMap::new(), Vec::new());
        for id in &nodes {
            let value = self.opaque_value(*id, &known, point);
            let node = &exprs[*id];
            if let (NodeKind::Op(Op::Select), [condition, a, b]) = (node.kind, node.args.as_slice()) {
                let arm = |holds: bool| if holds { *a } else { *b };
                if let Some(holds) = known[condition].form.as_constant() {
                    arms.insert(*id, arm(holds != 0));
                } else if let Some(usual) = Usual::of(exprs, *condition, &known)
                    && self.reads(&[arm(!usual.holds)])
                {
                    edges.extend(usual.inside);
                    if self.inside {
                        arms.insert(*id, arm(usual.holds));
                    }
                }
            }
            known.insert(*id, value);
        }
        if !arms.is_empty() {
            let mut alive: AHashSet<ExprId> = roots.iter().copied().collect();
            for id in nodes.iter().rev() {
                if alive.contains(id) {
                    match arms.get(id) {
                        Some(arm) => _ = alive.insert(*arm),
                        None => alive.extend(exprs[*id].args.iter().copied()),
                    }
                }
            }
            nodes.retain(|id| alive.contains(id));
        }
        Live { nodes, arms, edges }
    }

    /// Whether expressions read a Func or an input.
    pub(super) fn reads(&self, roots: &[ExprId]) -> bool {
        let exprs = self.pipeline.exprs();
        let is_read = |id: &ExprId| matches!(exprs[*id].kind, NodeKind::Load(_) | NodeKind::Call(..));
        exprs.reachable(roots.iter().copied()).iter().any(is_read)
    }
}

/// The outcome of a condition at most points.
struct Usual {
    holds: bool,
    /// The condition has this outcome wherever none of these sums is negative.
    inside: Vec<Form>,
}

impl Usual {
    /// The outcome of a condition that only orders sums of variables. `known` has its operands.
    fn of(exprs: &Exprs, condition: ExprId, known: &AHashMap<ExprId, Known>) -> Option<Usual> {
        let holds = known[&condition].usual_outcome()?;
        let mut inside = Vec::new();
        let mut pending = vec![(condition, holds)];
        while let Some((id, holds)) = pending.pop() {
            let node = &exprs[id];
            match (node.kind, node.args.as_slice()) {
                _ if known[&id].form.as_constant().is_some() => {}
                (NodeKind::Op(Op::Unary(UnaryOp::Not)), [a]) => pending.push((*a, !holds)),
                (NodeKind::Op(Op::Binary(op @ (BinaryOp::And | BinaryOp::Or))), [a, b]) => {
                    if (op == BinaryOp::And) == holds {
                        pending.extend([(*a, holds), (*b, holds)]);
                    } else {
                        let enough = [a, b].into_iter().find(|id| known[*id].usual_outcome() == Some(holds));
                        pending.push((*enough?, holds));
                    }
                }
                (NodeKind::Op(Op::Binary(op @ (BinaryOp::Le | BinaryOp::Lt))), [a, b]) => {
                    let (small, large) = if holds { (a, b) } else { (b, a) };
                    let between = known[large].form.add(&known[small].form.scale(-1));
                    let less = i64::from((op == BinaryOp::Lt) == holds);
                    let room = between.add(&Form::constant(between.coefs.len(), -less));
                    inside.push(Some(room).filter(Form::is_affine)?);
                }
                _ => return None,
            }
        }
        Some(Usual { holds, inside })
    }
}
