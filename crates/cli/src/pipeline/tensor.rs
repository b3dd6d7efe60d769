//! Definitions in the notation of Tensor Comprehensions.

use warploom::app::{App, AppError, Settings, Subject};
use warploom::inputs::{Given, Layout, content, fit};
use warploom::interp::buffer::Buffer;
use warploom::lang::ir::InputDecl;
use warploom::lang::{Pipeline, Region, files, infer};
use warploom::tensor::ast::{Declared, Dim};
use warploom::tensor::{self, Definition};

use super::file::{param, refused};
use super::{Purpose, Values, fill};
use crate::error::Error;
use crate::inputs;
use crate::names::Kind;
use crate::settings::MAX_SIZE;

/// Sizes by name.
type Sizes = Vec<(String, i64)>;

/// The definition of a file at the requested sizes, or at those of the input files.
pub(super) fn realise(
    file: &str,
    values: &Values,
    inputs: &[String],
    purpose: Purpose,
) -> Result<(Subject, Vec<Given>), Error> {
    let definition = read(file, values)?;
    let mut sizes = requested(&definition, values)?;
    for (name, size) in sizes_of_files(&definition, inputs)? {
        if sizes.iter().all(|(known, _)| *known != name) {
            sizes.push((name, size));
        }
    }
    let (app, unset) = app(file, definition, &sizes, values, purpose)?;
    let settings = Settings::defaults(&app);
    let subject = Subject { unset, ..Subject::new(&app, settings.clone())? };
    let names: Vec<&str> = subject.pipeline.inputs().values().map(|input| input.name.as_str()).collect();
    let given = inputs::read(&app, &settings, &subject.pipeline, &names, inputs)?;
    let given = fit(&subject, given)?;
    Ok((subject, given))
}

/// The definition of a file at the sizes of some arrays, as an app.
pub(super) fn at_arrays<'a>(
    file: &str,
    arrays: impl Iterator<Item = (&'a str, &'a Region)>,
) -> Result<App, Error> {
    let values = Values::sized(None);
    let definition = read(file, &values)?;
    let shapes: Vec<(&str, Vec<i64>)> = arrays.map(|(name, region)| (name, shape(region))).collect();
    let sizes = sizes_of(&definition, &shapes)?;
    Ok(app(file, definition, &sizes, &values, Purpose::Run)?.0)
}

fn read(file: &str, values: &Values) -> Result<Definition, Error> {
    if !values.set.is_empty() {
        return Err(Error::SetInFile { file: file.to_owned() });
    }
    let text = files::read_text(file)?;
    let program = tensor::parse(file, &text).map_err(Error::TensorFile)?;
    Ok(program.define(values.def.as_deref())?)
}

/// The sizes of `--size`, as in `M=1024,N=512`.
fn requested(definition: &Definition, values: &Values) -> Result<Sizes, Error> {
    let known = definition.sizes();
    let mut sizes: Sizes = Vec::new();
    for item in values.size.iter().flat_map(|text| text.split(',')) {
        let size = item.split_once('=').and_then(|(name, text)| {
            let (name, size) = (name.trim(), text.trim().parse::<i64>().ok()?);
            let least = if is_scalar(definition, name) { -MAX_SIZE } else { 1 };
            (least..=MAX_SIZE).contains(&size).then_some((name, size))
        });
        let example = known.iter().map(|name| format!("{name}=1024")).collect::<Vec<_>>().join(",");
        let (name, size) = size.ok_or(Error::TensorSize { text: item.to_owned(), example })?;
        if !known.contains(&name) {
            let (app, known) = (definition.name().to_owned(), known.join(", "));
            return Err(AppError::NoSize { app, name: name.to_owned(), known }.into());
        }
        if sizes.iter().any(|(given, _)| given == name) {
            return Err(Error::Repeated { kind: Kind::Size.noun(), name: name.to_owned() });
        }
        sizes.push((name.to_owned(), size));
    }
    Ok(sizes)
}

/// Whether a name is that of a scalar, such as a stride or a padding, which may be 0.
fn is_scalar(definition: &Definition, name: &str) -> bool {
    definition.tree().params.iter().any(|param| param.name.text == name && param.ty.dims.is_empty())
}

/// The sizes that follow from the input files. Their contents are read later, when the pipeline says which types it needs.
fn sizes_of_files(definition: &Definition, files: &[String]) -> Result<Sizes, Error> {
    let names = definition.inputs();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // There is no pipeline before the sizes are known, and so nothing that another flag could set.
    let unbuilt = App::new(definition.name(), |_| Pipeline::new("", []));
    let mut shapes = Vec::new();
    for (name, file) in inputs::assign(&unbuilt, Kind::Input, &names, files)? {
        let tensors = definition.tree().params.iter().filter(|param| !param.ty.dims.is_empty());
        let tensor = tensors.zip(definition.inputs()).find(|(_, known)| known == name);
        if let Some(tensor) = tensor {
            shapes.push((name, shape(of_file(definition, tensor, file)?.region())));
        }
    }
    sizes_of(definition, &shapes)
}

/// The content of a file with the dimensions of a tensor, whose declaration may have numbers.
fn of_file(definition: &Definition, (param, name): (&Declared, String), file: &str) -> Result<Buffer, Error> {
    // The last index of the notation is the first.
    let known = param.ty.dims.iter().rev().map(|dim| match dim {
        Dim::Number(number, _) => Some(*number),
        Dim::Name(_) => None,
    });
    let known: Vec<Option<i64>> = known.collect();
    let (ty, dimensions) = (param.ty.scalar.lang(), known.len());
    let input = InputDecl { name, ty, dimensions, storage_order: (0..dimensions).collect() };
    Ok(content(definition.name(), &Layout::of_tensor(&input, known), file)?)
}

fn sizes_of(definition: &Definition, shapes: &[(&str, Vec<i64>)]) -> Result<Sizes, Error> {
    let shapes: Vec<(&str, &[i64])> = shapes.iter().map(|(name, shape)| (*name, shape.as_slice())).collect();
    definition.sizes_of(&shapes).map_err(Error::Tensor)
}

/// The extents of a box in the notation's order, in which the last index is the fastest.
fn shape(region: &Region) -> Vec<i64> {
    region.extents().into_iter().rev().collect()
}

/// A definition at some sizes as an app whose sizes can still change, as long as the pipeline stays what it is.
/// Returns the Params without a value too.
fn app(
    file: &str,
    definition: Definition,
    sizes: &Sizes,
    values: &Values,
    purpose: Purpose,
) -> Result<(App, Vec<String>), Error> {
    let mut sizes = sizes.clone();
    for name in definition.sizes() {
        if let (true, Some(default)) =
            (sizes.iter().all(|(known, _)| known != name), definition.default_of(name))
        {
            sizes.push((name.to_owned(), default));
        }
    }
    let missing = definition.sizes().into_iter().find(|name| sizes.iter().all(|(known, _)| known != name));
    if let Some(missing) = missing {
        let example = definition.sizes().iter().map(|name| format!("{name}=1024")).collect::<Vec<_>>();
        let (file, name, example) = (file.to_owned(), missing.to_owned(), example.join(","));
        return Err(Error::NoTensorSize { file, name, example });
    }
    let at: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let (pipeline, mut request) = definition.realise(&at).map_err(Error::Tensor)?;
    for item in &values.param {
        let (name, value) = param(&pipeline, item)?;
        request = request.param(name, value);
    }
    let unset = fill(&pipeline, &mut request, purpose);
    infer(&pipeline, &request).map_err(|error| refused(file, &pipeline, error))?;
    Ok((App::of_definition(definition, &at, &pipeline, &request), unset))
}
