//! `separate f along x`: a sum over a box of neighbours as two sums, first along one dimension and then along the
//! others. This is exact if the weights are an outer product and arithmetic wraps: 25 products become 10.

mod outer;
mod reduction;
mod sums;
mod taps;

use std::collections::BTreeSet;

use smallvec::SmallVec;

use crate::draft::Draft;
use crate::ids::{ExprId, FuncId};
use crate::ir::{Exprs, FuncDecl, Node, NodeKind, StageRef};
use crate::op::Op;
use crate::rewrite::{RewriteError, StageName};
use crate::types::Type;

/// Separates every separable sum of a Func: those of its pure definition, and its updates that are sums.
pub(super) fn separate(draft: &mut Draft, func: FuncId, dim: usize) -> Result<(), RewriteError> {
    let stages = draft.funcs[func].stages.len();
    let (mut refusal, mut done) = ((Refusal::NoTaps, 0), false);
    for stage in 0..stages {
        let at = StageRef { func, stage };
        let separated = match stage {
            0 => sums::separate(draft, at, dim),
            _ => reduction::separate(draft, at, dim),
        };
        match separated {
            Ok(()) => done = true,
            Err(why) => refusal = refusal.max((why, stage)),
        }
    }
    match refusal {
        _ if done => Ok(()),
        (Refusal::Order(ty), stage) => {
            let stage = StageName::of(draft, StageRef { func, stage });
            Err(RewriteError::OrderMatters { stage, op: "+", ty })
        }
        (why, _) => {
            let FuncDecl { name, dims, .. } = &draft.funcs[func];
            Err(RewriteError::NotSeparable { func: name.clone(), dim: dims[dim].clone(), why: why.clause() })
        }
    }
}

/// The reasons why a sum is not separable, from the farthest from the form to the nearest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    NoTaps,
    OneLine,
    Entangled,
    NotAProduct,
    Order(Type),
}

impl Refusal {
    fn clause(self) -> &'static str {
        match self {
            Refusal::NoTaps => {
                "it needs a sum of weighted values of one Func or input, at points a constant distance or a reduction variable apart"
            }
            Refusal::OneLine => {
                "the points that a sum reads must differ both along this dimension and along another one"
            }
            Refusal::Entangled => {
                "each other index in which the points differ must depend on one variable, and no further index may depend on that one"
            }
            Refusal::NotAProduct => {
                "the weights are not an outer product: each must be a factor for the position along this dimension times a factor for the rest"
            }
            Refusal::Order(_) => "the order of the sum matters",
        }
    }
}

/// The motion of a read over its source, seen from one dimension of the reading Func.
struct Reading {
    /// Whether each index depends on the dimension.
    along: Vec<bool>,
    /// The other indices in which points of the sum differ, each with the only variable that it depends on.
    across: Vec<(usize, u32)>,
    /// The variables of all indices: the dimensions that the first pass needs.
    vars: Vec<u32>,
}

impl Reading {
    /// `differs` lists the indices in which the points of the sum differ.
    fn new(
        exprs: &Exprs,
        indices: &[ExprId],
        dim: usize,
        differs: impl Fn(usize) -> bool,
    ) -> Result<Reading, Refusal> {
        let vars: Vec<BTreeSet<u32>> = indices.iter().map(|index| vars_of(exprs, *index)).collect();
        let along: Vec<bool> = vars.iter().map(|vars| vars.contains(&(dim as u32))).collect();
        let apart: Vec<usize> = (0..indices.len()).filter(|d| !along[*d] && differs(*d)).collect();
        if apart.is_empty() || !(0..indices.len()).any(|d| along[d] && differs(d)) {
            return Err(Refusal::OneLine);
        }
        let own = |d: usize| {
            let var = *vars[d].first().filter(|_| vars[d].len() == 1)?;
            let elsewhere = (0..indices.len()).any(|other| other != d && vars[other].contains(&var));
            (!elsewhere).then_some((d, var))
        };
        let across: Option<Vec<(usize, u32)>> = apart.into_iter().map(own).collect();
        let all: BTreeSet<u32> = vars.iter().flatten().copied().collect();
        Ok(Reading { along, across: across.ok_or(Refusal::Entangled)?, vars: all.into_iter().collect() })
    }

    /// The number of a variable among the dimensions of the first pass.
    fn position(&self, var: u32) -> u32 {
        self.vars.iter().position(|kept| *kept == var).unwrap_or_default() as u32
    }

    /// The Func of the first pass; a second sum over the same points shares it. Along `across`, its points are those of
    /// the read Func.
    fn add_pass(&self, draft: &mut Draft, at: StageRef, ty: Type, value: ExprId) -> FuncId {
        let FuncDecl { name, dims, stored, .. } = draft.funcs[at.func].clone();
        let stored = stored.filter(|_| self.vars.len() == dims.len());
        let dims: Vec<String> = self.vars.iter().map(|var| dims[*var as usize].clone()).collect();
        let stages = vec![draft.pure_stage(dims.len(), vec![value], draft.stage(at).place)];
        let known = draft.funcs.iter().find(|(_, func)| {
            let own = func.name.starts_with(&format!("{name}.pass"));
            own && func.dims == dims && func.types == [ty] && func.stages == stages
        });
        if let Some((known, _)) = known {
            return known;
        }
        let name = draft.free_name(format!("{name}.pass"));
        draft.funcs.push(FuncDecl { name, dims, types: vec![ty], stages, stored })
    }

    /// Expressions of the Func for the first pass: at its own variables, and with `accesses` reading its points along
    /// `across`. `rvars` are the new numbers of reduction variables.
    fn moved(
        &self,
        draft: &mut Draft,
        roots: &[ExprId],
        accesses: &BTreeSet<ExprId>,
        rvars: &[u32],
    ) -> Vec<ExprId> {
        let fresh: Vec<(usize, ExprId)> =
            self.across.iter().map(|(d, var)| (*d, draft.var(self.position(*var) as usize))).collect();
        let made = draft.rebuilt(roots.to_vec(), &mut |exprs, id, mut node| {
            match &mut node.kind {
                NodeKind::Var(var) => *var = self.position(*var),
                NodeKind::RVar(var) => *var = rvars.get(*var as usize).copied().unwrap_or_default(),
                _ if accesses.contains(&id) => fresh.iter().for_each(|(d, var)| node.args[*d] = *var),
                _ => {}
            }
            exprs.intern(node)
        });
        roots.iter().map(|root| made[root]).collect()
    }

    /// A read of the first pass at the point where an access reads.
    fn read_pass(&self, draft: &mut Draft, pass: FuncId, access: ExprId) -> ExprId {
        let args = draft.exprs[access].args.clone();
        let index = |var: &u32| match self.across.iter().find(|(_, own)| own == var) {
            Some((d, _)) => args[*d],
            None => draft.var(*var as usize),
        };
        let indices: Vec<ExprId> = self.vars.iter().map(index).collect();
        draft.call(pass, 0, &indices)
    }
}

/// The read of a tap: its only access that depends on variables. `None` if there is no such access, or if anything else
/// in the expression depends on variables.
fn access_of(exprs: &Exprs, tap: ExprId) -> Option<ExprId> {
    let is_access =
        |id: ExprId| matches!(exprs[id].kind, NodeKind::Load(_) | NodeKind::Call(..) | NodeKind::Table(_));
    let moves = |kind: NodeKind| matches!(kind, NodeKind::Var(_) | NodeKind::RVar(_));
    let first_to_move = |id: &ExprId| {
        let below = || exprs.reachable(exprs[*id].args.iter().copied()).into_iter();
        is_access(*id) && below().any(|id| moves(exprs[id].kind)) && !below().any(is_access)
    };
    let mut found = exprs.reachable([tap]).into_iter().filter(first_to_move);
    let access = found.next().filter(|_| found.next().is_none())?;
    let (mut left, mut seen) = (vec![tap], BTreeSet::new());
    while let Some(id) = left.pop() {
        if moves(exprs[id].kind) {
            return None;
        }
        if id != access && seen.insert(id) {
            left.extend(&exprs[id].args);
        }
    }
    Some(access)
}

fn vars_of(exprs: &Exprs, index: ExprId) -> BTreeSet<u32> {
    let kinds = exprs.reachable([index]).into_iter().map(|id| exprs[id].kind);
    kinds.filter_map(|kind| if let NodeKind::Var(var) = kind { Some(var) } else { None }).collect()
}

/// An expression as a value of another type.
fn cast(draft: &mut Draft, id: ExprId, ty: Type) -> ExprId {
    if draft.exprs[id].ty == ty {
        return id;
    }
    draft.exprs.intern(Node { kind: NodeKind::Op(Op::Cast(ty)), ty, args: SmallVec::from_slice(&[id]) })
}
