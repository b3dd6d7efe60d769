//! Reads of undefined points: points of an undefined start that no update writes.

use thiserror::Error;

use crate::bounds::analysis::Analysis;
use crate::bounds::error::at;
use crate::bounds::regions::{Regions, StageEnvironment, StageRegions};
use crate::ids::{ExprId, FuncId};
use crate::ir::{NodeKind, Stage, stage_name};
use crate::pipeline::Pipeline;
use crate::region::{Range, Region};

/// A box cut into more pieces than this is treated as covered.
const MAX_PIECES: usize = 4096;

/// A pipeline that can run but is probably wrong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Warning {
    /// Points that are read but have no value.
    #[error("`{func}` has no value at {points}, which {reader}: its initial value is `undef` and no update writes there; give it an initial value, or updates that cover these points{}", at(.place))]
    Undefined {
        /// Name of the Func with undefined points.
        func: String,
        /// A box of such points; there may be more.
        points: Region,
        /// The reader, as a clause: "`scan.2` reads".
        reader: String,
        /// Source location of the stage that reads them, or of the Func's last stage.
        place: Option<String>,
    },
}

/// Probable mistakes of a pipeline at the sizes that `regions` were inferred for; at most one
/// warning per Func.
///
/// ```
/// use warploom_lang::*;
/// let x = vars!(x);
/// let r = rdom([(1, 9)]);
/// let steps = func("steps", x, undef(Type::I32)).over(&r, |f| f.set(r.x, f.at(r.x - 1) * 2));
/// let pipeline = Pipeline::new("p", [steps])?;
/// let request = Realisation::new(&pipeline).output("steps", Region::of_extents(&[10]));
/// let found = warnings(&pipeline, &infer(&pipeline, &request)?);
/// assert!(found[0].to_string().starts_with("`steps` has no value at [0, 1), which `steps.1` reads"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn warnings(pipeline: &Pipeline, regions: &Regions) -> Vec<Warning> {
    pipeline.funcs.keys().filter_map(|id| undefined(pipeline, regions, id)).collect()
}

/// The first points of a Func that are read but never written.
fn undefined(pipeline: &Pipeline, regions: &Regions, id: FuncId) -> Option<Warning> {
    let (func, found) = (&pipeline.funcs[id], &regions.funcs[id]);
    if !found.needed || !func.stages[0].values.is_empty() {
        return None;
    }
    let warning = |points: Region, reader: String, stage: &Stage| Warning::Undefined {
        func: func.name.clone(),
        points,
        reader,
        place: stage.place_text(),
    };
    let mut written: Vec<Region> = Vec::new();
    for (number, (stage, loops)) in func.stages.iter().zip(&found.stages).enumerate().skip(1) {
        if loops.is_idle() {
            continue;
        }
        let (writes, reads) = own_accesses(pipeline, regions, id, stage, loops);
        // A self-reference may read results of an earlier iteration of the same stage.
        written.push(writes);
        if let Some(points) = reads.iter().find_map(|read| uncovered(read, &written)) {
            return Some(warning(points, format!("`{}` reads", stage_name(func, number)), stage));
        }
    }
    let (last, needed) = (func.stages.last()?, &found.stages.last()?.needed);
    let points = uncovered(needed, &written)?;
    Some(warning(points, "is requested or read".to_string(), last))
}

/// The box that a stage writes of its own Func, and the boxes that it reads of it.
fn own_accesses(
    pipeline: &Pipeline,
    regions: &Regions,
    id: FuncId,
    stage: &Stage,
    loops: &StageRegions,
) -> (Region, Vec<Region>) {
    let facts = &regions.facts;
    let environment = StageEnvironment {
        inputs: &facts.inputs,
        varying: &facts.varying,
        params: &facts.params,
        values: &facts.values,
        vars: &loops.needed.0,
        rvars: &loops.domain,
    };
    let exprs = &pipeline.exprs;
    let analysis = Analysis::new(exprs, &environment, stage.roots());
    let range = |index: &ExprId| {
        let span = analysis.int(*index);
        Range::inclusive(span.min, span.max)
    };
    let boxed = |indices: &[ExprId]| Region(indices.iter().map(range).collect());
    let nodes = exprs.reachable(stage.roots()).into_iter().map(|node| &exprs[node]);
    let own = nodes.filter(|node| matches!(node.kind, NodeKind::Call(callee, _) if callee == id));
    (boxed(&stage.indices), own.map(|node| boxed(&node.args)).collect())
}

/// A part of a box that none of the other boxes covers.
fn uncovered(needed: &Region, others: &[Region]) -> Option<Region> {
    let mut left: Vec<Region> = (!needed.is_empty()).then(|| needed.clone()).into_iter().collect();
    for other in others {
        left = left.iter().flat_map(|part| without(part, other)).collect();
        if left.len() > MAX_PIECES {
            return None;
        }
    }
    left.into_iter().next()
}

/// The difference of two boxes, as disjoint boxes.
fn without(part: &Region, other: &Region) -> Vec<Region> {
    let meet = |a: Range, b: Range| (a.min.max(b.min), a.last().min(b.last()));
    let common: Vec<(i64, i64)> = part.0.iter().zip(&other.0).map(|(a, b)| meet(*a, *b)).collect();
    if common.iter().any(|(first, last)| first > last) {
        return vec![part.clone()];
    }
    let mut pieces = Vec::new();
    let mut inner = part.clone();
    for (d, (first, last)) in common.into_iter().enumerate() {
        for (from, to) in [(inner[d].min, first - 1), (last + 1, inner[d].last())] {
            if from <= to {
                let mut piece = inner.clone();
                piece.0[d] = Range::inclusive(from, to);
                pieces.push(piece);
            }
        }
        inner.0[d] = Range::inclusive(first, last);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_without_others() {
        let of =
            |ranges: &[(i64, i64)]| Region(ranges.iter().map(|(a, b)| Range::inclusive(*a, *b)).collect());
        let whole = of(&[(0, 9), (0, 4)]);
        assert_eq!(without(&whole, &whole), []);
        assert_eq!(without(&whole, &of(&[(10, 12), (0, 4)])), std::slice::from_ref(&whole));
        let around = without(&whole, &of(&[(3, 5), (4, 8)]));
        assert_eq!(around, [of(&[(0, 2), (0, 4)]), of(&[(6, 9), (0, 4)]), of(&[(3, 5), (0, 3)])]);
        let halves = [of(&[(0, 4), (-7, 7)]), of(&[(5, 20), (0, 4)])];
        assert_eq!(uncovered(&whole, &halves), None);
        assert_eq!(uncovered(&whole, &halves[..1]), Some(of(&[(5, 9), (0, 4)])));
    }
}
