//! Pipelines from files.

use warploom::app::{App, Settings, Subject};
use warploom::fuzz::{Case, CaseError};
use warploom::inputs::{Given, fit};
use warploom::lang::files;
use warploom::lang::{BoundsError, Pipeline, Range, Realisation, Region, Value, infer};

use super::{Purpose, Values, fill, is_tensor, tensor};
use crate::error::Error;
use crate::inputs;

/// The pipeline of a file at the requested sizes, or at those of the input files.
pub(super) fn realise(
    file: &str,
    values: &Values,
    inputs: &[String],
    purpose: Purpose,
) -> Result<(Subject, Vec<Given>), Error> {
    let (pipeline, mut request) = read(file, values)?;
    for item in values.size.iter().flat_map(|text| text.split(',')) {
        request = sized(file, &pipeline, request, item)?;
    }
    for item in &values.param {
        let (name, value) = param(&pipeline, item)?;
        request = request.param(name, value);
    }
    let unset = fill(&pipeline, &mut request, purpose);
    let names: Vec<&str> = pipeline.inputs().values().map(|input| input.name.as_str()).collect();
    let app = App::of_pipeline(&pipeline, &request);
    let given = inputs::read(&app, &Settings::defaults(&app), &pipeline, &names, inputs)?;
    let request = with_files(&pipeline, request, &given);
    infer(&pipeline, &request).map_err(|error| refused(file, &pipeline, error))?;
    let app = App::of_pipeline(&pipeline, &request);
    let subject = Subject { unset, ..Subject::new(&app, Settings::defaults(&app))? };
    let given = fit(&subject, given)?;
    Ok((subject, given))
}

/// The pipeline of a file, whatever its sizes.
pub(super) fn pipeline(file: &str, values: &Values) -> Result<Pipeline, Error> {
    Ok(read(file, values)?.0)
}

/// The pipeline of a file as an app. Its boxes are not known yet; `arrays` are those of some inputs.
pub(crate) fn app_with<'a>(
    file: &str,
    arrays: impl Iterator<Item = (&'a str, &'a Region)>,
) -> Result<App, Error> {
    if is_tensor(file) {
        return tensor::at_arrays(file, arrays);
    }
    let (pipeline, request) = read(file, &Values::sized(None))?;
    Ok(App::of_pipeline(&pipeline, &request))
}

/// The request in which inputs without a box have that of their file, and outputs without a box that of the first input with as
/// many dimensions.
fn with_files(pipeline: &Pipeline, mut request: Realisation, given: &[Given]) -> Realisation {
    if given.is_empty() {
        return request;
    }
    for given in given {
        if let Some(id) = pipeline.input_named(&given.name) {
            request.inputs[id].get_or_insert_with(|| given.buffer.region().clone());
        }
    }
    let inputs: Vec<Region> = request.inputs.values().flatten().cloned().collect();
    for (region, id) in request.outputs.iter_mut().zip(pipeline.outputs()) {
        let dimensions = pipeline.funcs()[*id].dims.len();
        if region.is_none() {
            *region = inputs.iter().find(|input| input.dimensions() == dimensions).cloned();
        }
    }
    request
}

/// Reads a pipeline, or a case that `warploom fuzz` wrote, which also has sizes.
fn read(file: &str, values: &Values) -> Result<(Pipeline, Realisation), Error> {
    if !values.set.is_empty() {
        return Err(Error::SetInFile { file: file.to_owned() });
    }
    #[derive(serde::Deserialize)]
    struct Form {
        format: String,
    }
    let text = files::read_text(file)?;
    let form: Option<Form> = serde_json::from_str(&text).ok();
    if form.is_some_and(|form| form.format == "warploom-case") {
        let (case, _) = Case::parse(&text).map_err(|problem| {
            Error::Case(CaseError::Content { path: file.into(), problem: Box::new(problem) })
        })?;
        return Ok((case.pipeline, case.request));
    }
    let pipeline = Pipeline::from_json(&text);
    let pipeline = pipeline.map_err(|error| Error::PipelineFile { file: file.to_owned(), error })?;
    let mut request = Realisation::new(&pipeline);
    // A single point needs no size.
    for (region, id) in request.outputs.iter_mut().zip(pipeline.outputs()) {
        *region = pipeline.funcs()[*id].dims.is_empty().then(|| Region(Vec::new()));
    }
    Ok((pipeline, request))
}

/// Sets the box of one input or output, as in `input=640x480`, or one size for all, as in
/// `640x480`. Inputs and outputs with fewer dimensions use its first extents.
fn sized(file: &str, pipeline: &Pipeline, request: Realisation, item: &str) -> Result<Realisation, Error> {
    let none = || Error::Box { text: item.to_owned(), example: boxes_of(pipeline) };
    if item.contains('=') {
        let (name, region) = named_box(item).ok_or_else(none)?;
        return Ok(match pipeline.input_named(name) {
            Some(_) => request.input(name, region),
            None => request.output(name, region),
        });
    }
    let all = ranges(item).ok_or_else(none)?;
    let cut = |name: &str, expected: usize| match all.get(..expected) {
        Some(ranges) => Ok(Region(ranges.to_vec())),
        None => {
            let (file, text, given) = (file.to_owned(), item.to_owned(), all.len());
            let example = boxes_of(pipeline);
            Err(Error::FewExtents { file, name: name.to_owned(), expected, text, given, example })
        }
    };
    let mut sized = request;
    for input in pipeline.inputs().values() {
        sized = sized.input(&input.name, cut(&input.name, input.dimensions)?);
    }
    for func in pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]) {
        sized = sized.output(&func.name, cut(&func.name, func.dims.len())?);
    }
    Ok(sized)
}

/// The error for sizes or values that don't fit the pipeline of a file.
pub(super) fn refused(file: &str, pipeline: &Pipeline, error: BoundsError) -> Error {
    let file = file.to_owned();
    match error {
        BoundsError::Missing { name, .. } if pipeline.param_named(&name).is_some() => {
            Error::NoParamValue { file, name }
        }
        BoundsError::Missing { name, .. } => Error::NoSize { file, name, example: boxes_of(pipeline) },
        error => Error::Request { file, error: Box::new(error) },
    }
}

/// Example boxes for all inputs and outputs of a pipeline, for error messages.
fn boxes_of(pipeline: &Pipeline) -> String {
    let usual = ["640", "480", "3"];
    let of = |name: &str, dimensions: usize| {
        let extents = (0..dimensions).map(|d| *usual.get(d).unwrap_or(&"1"));
        format!("{name}={}", extents.collect::<Vec<_>>().join("x"))
    };
    let inputs = pipeline.inputs().values().map(|input| of(&input.name, input.dimensions));
    let outputs = pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]);
    inputs.chain(outputs.map(|func| of(&func.name, func.dims.len()))).collect::<Vec<_>>().join(",")
}

/// Parses `input=640x480`, or `input=-1:642x0:480` for a box that does not start at the origin.
fn named_box(item: &str) -> Option<(&str, Region)> {
    let (name, extents) = item.split_once('=')?;
    Some((name.trim(), Region(ranges(extents)?)))
}

/// Parses `640x480`, or `-1:642x0:480`.
fn ranges(extents: &str) -> Option<Vec<Range>> {
    let range = |text: &str| {
        let (min, extent) = text.split_once(':').unwrap_or(("0", text));
        Some(Range { min: min.trim().parse().ok()?, extent: extent.trim().parse().ok()? })
    };
    extents.split('x').map(range).collect()
}

/// Parses `NAME=VALUE` in the Param's type.
pub(super) fn param<'a>(pipeline: &Pipeline, item: &'a str) -> Result<(&'a str, Value), Error> {
    let no_value = || Error::NoValue { flag: "--param", text: item.to_owned() };
    let (name, text) = item.split_once('=').ok_or_else(no_value)?;
    let unknown = || Error::NoParam { pipeline: pipeline.name().to_owned(), name: name.to_owned() };
    let ty = pipeline.params()[pipeline.param_named(name).ok_or_else(unknown)?].ty;
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    let value = number.and_then(|number| Value::from_number(ty, number));
    let wrong = || Error::FileParam { name: name.to_owned(), ty, text: text.to_owned() };
    Ok((name, value.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_names_and_may_start_anywhere() {
        assert_eq!(named_box("in=3x4"), Some(("in", Region::of_extents(&[3, 4]))));
        let moved = Region(vec![Range::new(-1, 66), Range::new(0, 48)]);
        assert_eq!(named_box("in=-1:66x48"), Some(("in", moved)));
        assert_eq!([named_box("3x4"), named_box("in=3xy"), named_box("in=")], [None, None, None]);
    }
}
