//! Smaller boxes and simpler values of Params.

use warploom_lang::{InputId, ParamId, Range, Region, Regions, Value};

use crate::case::Case;
use crate::reduce::pipelines::simplest;

/// One way to make sizes smaller or values simpler.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum BoxEdit {
    /// Less of an output.
    Output(usize, usize, Range),
    /// Less of an input.
    Input(InputId, usize, Range),
    /// No more of each input than is read.
    Fit,
    /// Another value of a Param.
    Param(ParamId, Value),
}

/// All there are for a case, those that may save most first.
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

/// Parts of a box, with the dimension in which it is smaller: one point, a half, all but an end; and the same
/// moved to 0.
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
    /// The case at the smaller size.
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
