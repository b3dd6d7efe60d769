//! Inputs from files: arrays and pictures with the types, channels and order of dimensions that a pipeline takes.

mod channels;
mod layout;

use thiserror::Error;
use warploom_interp::buffer::{Buffer, BufferError};
use warploom_interp::files::FileError;
use warploom_interp::picture::{self, Loss};
use warploom_lang::{Pipeline, Region, Type, Value};

use crate::app::{App, Settings, Subject};
use crate::show;

pub use layout::{Layout, Misfit};

/// Why a file is no input.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the words of the sentences")]
pub enum InputError {
    /// There is no such file.
    #[error("there is no file {file}; check its path")]
    NoFile { file: String },
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// An array that cannot be stored.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Another type.
    #[error("{file} has type {found}, but input `{input}` of `{app}` has type {expected}; {}", advice(file))]
    Type { app: String, file: String, input: String, found: Type, expected: Type },
    /// Other channels.
    #[error(
        "input `{input}` of `{app}` takes {channels}, and converting {file} would lose {lost}; write {file}:{suffix} to \
         convert it all the same"
    )]
    Channels {
        app: String,
        file: String,
        input: String,
        channels: &'static str,
        lost: Loss,
        suffix: &'static str,
    },
    /// A picture without channels.
    #[error(
        "{file} is a grey picture, but input `{input}` of `{app}` has 3 dimensions; write {file}:rgb to convert it"
    )]
    GreyPicture { app: String, file: String, input: String },
    /// A number that the input's type does not have.
    #[error(
        "the number {value} in {file} is not exactly representable in {expected}, the type of input `{input}`; \
         convert the array with astype before saving it"
    )]
    Value { file: String, input: String, value: Value, expected: Type },
    /// Other extents.
    #[error(
        "{file} has extents {found}, but input `{input}` of `{app}` has {expected}; give a file that fits"
    )]
    Shape { app: String, file: String, input: String, found: String, expected: String },
    /// Dimensions in another order.
    #[error("{}", misfit.sentence(file, input, app))]
    Layout { app: String, file: String, input: String, misfit: Box<Misfit> },
}

/// How to convert a file to the right type.
fn advice(file: &str) -> &'static str {
    if is_array(file) { "convert it with astype" } else { "give a .npy file" }
}

/// An input from a file.
pub struct Given {
    /// The input's name in the pipeline.
    pub name: String,
    /// The path as given on the command line.
    pub file: String,
    /// The content, converted to the input's type.
    pub buffer: Buffer,
}

/// The content of a file with the channels and dimensions of an input.
///
/// # Errors
/// If it cannot be read, or does not fit the input.
pub fn content(app: &str, layout: &Layout<'_>, file: &str) -> Result<Buffer, InputError> {
    let (buffer, file, is_converted) = channels::read(file)?;
    let buffer = match is_array(file) || is_converted {
        true => buffer,
        false => channels::fitted(buffer, file, app, layout)?,
    };
    laid_out(app, layout, file, buffer)
}

/// Reads the files of some inputs; pictures are converted to the input's type.
///
/// # Errors
/// If a file cannot be read, or does not fit its input.
pub fn read(
    app: &App,
    settings: &Settings,
    pipeline: &Pipeline,
    files: &[(&str, &str)],
) -> Result<Vec<Given>, InputError> {
    let mut found = Vec::new();
    for &(name, file) in files {
        let Some(id) = pipeline.input_named(name) else { continue };
        let decl = &pipeline.inputs()[id];
        let ty = decl.ty;
        let (buffer, file, is_converted) = channels::read(file)?;
        let other_type = |found: Type| InputError::Type {
            app: app.name.clone(),
            file: file.to_owned(),
            input: name.to_owned(),
            found,
            expected: ty,
        };
        let layout = Layout::of(app, settings, decl);
        let is_array = is_array(file);
        let buffer = match is_array || is_converted {
            true => buffer,
            false => channels::fitted(buffer, file, &app.name, &layout)?,
        };
        let buffer = match buffer.ty() {
            found if found == ty => buffer,
            // NumPy makes arrays of 64 bits where nothing else is said.
            found if is_array && found.is_wide() && found.is_float() == ty.is_float() && ty.bytes() == 4 => {
                buffer.exactly(ty).map_err(|value| InputError::Value {
                    file: file.to_owned(),
                    input: name.to_owned(),
                    value,
                    expected: ty,
                })?
            }
            found if is_array => return Err(other_type(found)),
            found => picture::convert(&buffer, ty).map_err(|_| other_type(found))?,
        };
        let buffer = laid_out(&app.name, &layout, file, buffer)?;
        found.push(Given { name: name.to_owned(), file: file.to_owned(), buffer });
    }
    Ok(found)
}

/// The content of a file with the dimensions of its input.
fn laid_out(app: &str, layout: &Layout<'_>, file: &str, buffer: Buffer) -> Result<Buffer, InputError> {
    // The channels of a pixel lie side by side.
    let order: &[usize] = match buffer.region().dimensions() {
        3 if !is_array(file) => &[2, 0, 1],
        dimensions => &(0..dimensions).collect::<Vec<_>>(),
    };
    layout.fit(buffer, order)?.map_err(|misfit| InputError::Layout {
        app: app.to_owned(),
        file: file.to_owned(),
        input: layout.name().to_owned(),
        misfit: Box::new(misfit),
    })
}

/// Whether a file holds an array, as opposed to a picture.
fn is_array(file: &str) -> bool {
    file.to_lowercase().ends_with(".npy")
}

/// Derives the sizes that are not `fixed` from the files.
///
/// Each size is derived from the first extent of a given input that grows by one when the size
/// grows by one. The size changes by the difference between the file's extent and the current
/// extent.
pub fn solve_sizes(app: &App, settings: &mut Settings, fixed: &[String], given: &[Given]) {
    for size in app.sizes.iter().filter(|size| !fixed.contains(&size.name)) {
        let value = settings.number(&size.name);
        let mut larger = settings.clone();
        let _known = larger.set(&size.name, value + 1.0);
        let (here, there) = (app.shapes_at(settings), app.shapes_at(&larger));
        let difference = given.iter().find_map(|given| {
            let (here, there) = (here.input(&given.name)?, there.input(&given.name)?);
            let extents = here.0.iter().zip(&there.0).zip(&given.buffer.region().0);
            let mut grows = extents.filter(|((here, there), _)| there.extent - here.extent == 1);
            grows.next().map(|((here, _), file)| file.extent - here.extent)
        });
        if let Some(difference) = difference {
            let _known = settings.set(&size.name, (value + difference as f64).max(1.0));
        }
    }
}

/// Moves the files' contents to the boxes of their inputs.
///
/// # Errors
/// If the extents differ.
pub fn fit(subject: &Subject, given: Vec<Given>) -> Result<Vec<Given>, InputError> {
    let shapes = subject.shapes();
    let fitted = given.into_iter().map(|given| {
        let Given { name, file, buffer } = given;
        let region = shapes.input(&name).unwrap_or(buffer.region()).clone();
        if buffer.region().extents() != region.extents() {
            return Err(InputError::Shape {
                app: subject.name.clone(),
                file,
                input: name,
                found: show::extents(buffer.region()),
                expected: format!("{}{}", show::extents(&region), subject.sizes),
            });
        }
        Ok(Given { name, file, buffer: placed(buffer, &region)? })
    });
    fitted.collect()
}

/// Moves a buffer to the origin of a box with the same extents.
///
/// # Errors
/// If its order of storage cannot be kept.
pub fn placed(buffer: Buffer, region: &Region) -> Result<Buffer, BufferError> {
    let min: Vec<i64> = region.0.iter().map(|range| range.min).collect();
    buffer.translated(&min)
}
