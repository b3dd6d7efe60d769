//! Edits that shrink boxes and simplify Params.

use warploom_lang::{InputId, ParamId, Range, Region, Regions, Value};

use crate::case::Case;
use crate::reduce::pipelines::simplest;

/// An edit of a box or a Param.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum BoxEdit {
    /// Requests a smaller range of an output in one dimension.
    Output(usize, usize, Range),
    /// Shrinks an input in one dimension.
    Input(InputId, usize, Range),
    /// Shrinks each input to the region that is read.
    Fit,
    /// Changes the value of a Param.
    Param(ParamId, Value),
}

/// All edits of a case, the most effective first.
pub(crate) fn box_edits(case: &Case) -> Vec<BoxEdit> {
    let mut edits = Vec::new();
    for (output, region) in case.request.outputs.iter().enumerate() {
        let ranges = region.iter().flat_map(smaller);
        edits.extend(ranges.map(|(dimension, range)| BoxEdit::Output(output, dimension, range)));
    }
    edits.push(BoxEdit::Fit);
    for (input, region) in case.request.inputs.iter() {
        let ranges = region.iter().flat_map(smaller);
        edits.extend(ranges.map(|(dimension, range)| BoxEdit::Input(input, dimension, range)));
    }
    for (param, decl) in case.pipeline.params().iter() {
        edits.extend(simplest(decl.ty).map(|value| BoxEdit::Param(param, value)));
    }
    edits
}

/// Smaller ranges of a box, each with its dimension: one point, a half, all but an end, and the
/// same extent moved to 0.
fn smaller(region: &Region) -> Vec<(usize, Range)> {
    let parts = region.0.iter().enumerate().flat_map(|(dimension, &Range { min, extent })| {
        let parts = [
            Range::new(min, 1),
            Range::new(min, extent / 2),
            Range::new(min + extent / 2, extent - extent / 2),
            Range::new(min, extent - 1),
            Range::new(min + 1, extent - 1),
            Range::new(0, extent),
        ];
        let useful = move |range: &Range| !range.is_empty() && *range != Range { min, extent };
        parts.into_iter().filter(useful).map(move |range| (dimension, range))
    });
    parts.collect()
}

impl BoxEdit {
    /// The case with this edit applied.
    pub fn apply(self, case: &Case, regions: &Regions) -> Case {
        let mut changed = case.clone();
        let request = &mut changed.request;
        match self {
            BoxEdit::Output(output, dimension, range) => {
                replace(&mut request.outputs[output], dimension, range)
            }
            BoxEdit::Input(input, dimension, range) => replace(&mut request.inputs[input], dimension, range),
            BoxEdit::Fit => {
                let read = regions.inputs.iter().filter(|(_, region)| !region.is_empty());
                read.for_each(|(input, region)| request.inputs[input] = Some(region.clone()));
            }
            BoxEdit::Param(param, value) => request.params[param] = Some(value),
        }
        changed
    }
}

fn replace(region: &mut Option<Region>, dimension: usize, range: Range) {
    if let Some(Region(ranges)) = region {
        ranges[dimension] = range;
    }
}
