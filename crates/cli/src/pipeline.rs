//! The choice of a pipeline at some sizes: an app, or a file.

use warploom::app::{App, Settings};
use warploom::fuzz::{Case, CaseError};
use warploom::lang::dynamic::{DynamicRequest, SizeRange};
use warploom::lang::files;
use warploom::lang::{BoundsError, Pipeline, Range, Realisation, Region, Value, infer};

use crate::error::Error;
use crate::names::find_app;
use crate::settings::{build, param_values, set_params, set_sizes, set_structure};
use crate::sizes::Sizes;

/// Which pipeline, at which sizes.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The app (`warploom apps` lists them), or a *.json file with a pipeline
    #[arg(value_name = "APP|FILE")]
    app: String,
    /// Sizes in points, as W=1536,H=2560 or 1536x2560; other sizes are the app's defaults
    ///
    /// For a file: one size for all inputs and outputs, as 1536x2560x3 (those with fewer dimensions use the first extents),
    /// or one box for each, as input=1536x2560x3,output=1536x2560; -1:1538 is a dimension with minimum -1 and extent 1538.
    #[arg(
        long,
        value_name = "SIZES",
        allow_hyphen_values = true,
        help_heading = "Pipeline",
        verbatim_doc_comment
    )]
    size: Vec<String>,
    /// The value of a Param; other Params have the app's defaults. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pipeline")]
    param: Vec<String>,
    /// The value of a structure parameter; others have the app's defaults. Can be repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Pipeline")]
    set: Vec<String>,
}

/// A pipeline with everything needed to build its kernels.
pub(crate) struct Subject {
    /// The name in reports.
    pub(crate) name: String,
    pub(crate) sizes: Sizes,
    pub(crate) pipeline: Pipeline,
    pub(crate) request: Realisation,
    /// The app and its settings; `None` for a pipeline from a file.
    pub(crate) app: Option<(App, Settings)>,
}

impl Subject {
    /// The request with sizes that every run gives. The pipeline is scheduled for its own sizes.
    pub(crate) fn dynamic(&self, ranges: Vec<SizeRange>) -> Result<DynamicRequest, Error> {
        let pipeline = &self.pipeline;
        let unknown = |known: Vec<String>| {
            let name = ranges.iter().find(|range| !known.contains(&range.name))?.name.clone();
            Some(Error::NoSizeNamed { app: self.name.clone(), name, known: known.join(", ") })
        };
        let Some((app, settings)) = &self.app else {
            let first = self.request.inputs.values().chain(&self.request.outputs).flatten().next();
            let extents: Vec<i64> = first.map(Region::extents).unwrap_or_default();
            if let Some(error) = unknown((0..extents.len()).map(|d| format!("d{d}")).collect()) {
                return Err(error);
            }
            let dims: Vec<usize> =
                ranges.iter().filter_map(|range| range.name.strip_prefix('d')?.parse().ok()).collect();
            let typical: Vec<i64> = dims.iter().map(|d| extents[*d]).collect();
            let at = |sizes: &[i64]| grown(&self.request, &dims, &typical, sizes);
            return Ok(DynamicRequest::fit(pipeline, ranges, &typical, at)?);
        };
        match unknown(app.sizes.iter().map(|size| size.name.to_owned()).collect()) {
            Some(error) => Err(error),
            None => {
                let whole = || Error::NoDefault { app: app.name, name: "a Param".to_owned() };
                Ok(app.dynamic(pipeline, settings, ranges).ok_or_else(whole)??)
            }
        }
    }
}

/// A request in which some dimensions have other extents: those of all inputs and outputs that are as long as `typical`.
fn grown(request: &Realisation, dims: &[usize], typical: &[i64], sizes: &[i64]) -> Realisation {
    let mut grown = request.clone();
    let regions = grown.inputs.values_mut().chain(&mut grown.outputs).flatten();
    for region in regions {
        for ((d, typical), size) in dims.iter().zip(typical).zip(sizes) {
            if let Some(range) = region.0.get_mut(*d).filter(|range| range.extent == *typical) {
                range.extent = *size;
            }
        }
    }
    grown
}

impl Which {
    /// The pipeline at the requested sizes.
    pub(crate) fn realise(&self, apps: &[App]) -> Result<Subject, Error> {
        match self.app.ends_with(".json") {
            true => self.of_file(),
            false => self.of_app(find_app(apps, &self.app)?),
        }
    }

    fn of_app(&self, app: &App) -> Result<Subject, Error> {
        let mut settings = Settings::defaults(app);
        set_structure(app, &mut settings, &self.set)?;
        set_params(app, &mut settings, &self.param)?;
        set_sizes(app, &mut settings, &self.size)?;
        Which::of_settings(app, settings)
    }

    /// An app with these settings.
    pub(crate) fn of_settings(app: &App, settings: Settings) -> Result<Subject, Error> {
        let pipeline = build(app, &settings)?;
        let mut request = (app.shapes)(&settings).realisation(&pipeline);
        for (name, value) in param_values(app, &pipeline, &settings)? {
            request = request.param(&name, value);
        }
        let (name, sizes) = (app.name.to_owned(), Sizes::of_app(app, &settings));
        Ok(Subject { name, sizes, pipeline, request, app: Some((*app, settings)) })
    }

    fn of_file(&self) -> Result<Subject, Error> {
        let file = &self.app;
        if !self.set.is_empty() {
            return Err(Error::SetInFile { file: file.clone() });
        }
        let text = files::read_text(file)?;
        let (pipeline, mut request) = read(file, &text)?;
        for item in self.size.iter().flat_map(|text| text.split(',')) {
            request = self.sized(&pipeline, request, item)?;
        }
        for item in &self.param {
            let (name, value) = param(&pipeline, item)?;
            request = request.param(name, value);
        }
        infer(&pipeline, &request).map_err(|error| self.refused(&pipeline, error))?;
        let sizes = Sizes::of_boxes(&pipeline, &request);
        Ok(Subject { name: pipeline.name().to_owned(), sizes, pipeline, request, app: None })
    }

    /// Sets the box of one input or output, as in `input=640x480`, or one size for all, as in
    /// `640x480`. Inputs and outputs with fewer dimensions use its first extents.
    fn sized(&self, pipeline: &Pipeline, request: Realisation, item: &str) -> Result<Realisation, Error> {
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
                let (file, text, given) = (self.app.clone(), item.to_owned(), all.len());
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
    fn refused(&self, pipeline: &Pipeline, error: BoundsError) -> Error {
        let file = self.app.clone();
        match error {
            BoundsError::Missing { name, .. } if pipeline.param_named(&name).is_some() => {
                Error::NoParamValue { file, name }
            }
            BoundsError::Missing { name, .. } => Error::NoSize { file, name, example: boxes_of(pipeline) },
            error => Error::Request { file, error: Box::new(error) },
        }
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

/// Parses a pipeline, or a case that `warploom fuzz` wrote, which also has sizes.
fn read(file: &str, text: &str) -> Result<(Pipeline, Realisation), Error> {
    #[derive(serde::Deserialize)]
    struct Form {
        format: String,
    }
    let form: Option<Form> = serde_json::from_str(text).ok();
    if form.is_some_and(|form| form.format == "warploom-case") {
        let (case, _) = Case::parse(text).map_err(|problem| {
            Error::Case(CaseError::Content { path: file.into(), problem: Box::new(problem) })
        })?;
        return Ok((case.pipeline, case.request));
    }
    let pipeline = Pipeline::from_json(text);
    let pipeline = pipeline.map_err(|error| Error::PipelineFile { file: file.to_owned(), error })?;
    let request = Realisation::new(&pipeline);
    Ok((pipeline, request))
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
fn param<'a>(pipeline: &Pipeline, item: &'a str) -> Result<(&'a str, Value), Error> {
    let no_value = || Error::NoValue { flag: "--param", text: item.to_owned() };
    let (name, text) = item.split_once('=').ok_or_else(no_value)?;
    let unknown = || Error::NoParam { pipeline: pipeline.name().to_owned(), name: name.to_owned() };
    let ty = pipeline.params()[pipeline.param_named(name).ok_or_else(unknown)?].ty;
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    let value = number.and_then(|number| Value::from_number(ty, number));
    let wrong = || Error::FileParam { name: name.to_owned(), ty, text: text.to_owned() };
    Ok((name, value.ok_or_else(wrong)?))
}

/// Whether the error is about sizes or values that the user gave.
pub(crate) fn is_usage(error: &BoundsError) -> bool {
    use BoundsError::{Extent, Missing, ParamRange, ParamType, Rank, TooLarge, Unknown};
    matches!(
        error,
        Extent { .. }
            | Missing { .. }
            | ParamRange { .. }
            | ParamType { .. }
            | Rank { .. }
            | TooLarge { .. }
            | Unknown { .. }
    )
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
