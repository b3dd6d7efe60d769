//! Reads inputs from files and derives sizes from them.

use warploom::app::{App, Settings, Subject};
use warploom::interp::buffer::Buffer;
use warploom::interp::picture;
use warploom::lang::{Pipeline, Type};

use crate::channels;
use crate::error::Error;
use crate::folder::placed;
use crate::layout::Layout;
use crate::names::{Kind, unknown};
use crate::settings::change;
use crate::show;

/// An input from a file.
pub(crate) struct Given {
    /// The input's name in the pipeline.
    pub(crate) name: String,
    /// The path as given on the command line.
    pub(crate) file: String,
    /// The content, converted to the input's type.
    pub(crate) buffer: Buffer,
}

/// The content of the file of an input, if it has one.
pub(crate) fn given(all: &[Given], name: &str) -> Option<Buffer> {
    all.iter().find(|given| given.name == name).map(|given| given.buffer.clone())
}

/// Splits each `[NAME=]FILE`. A file without a name is assigned to the first name that is still
/// free.
pub(crate) fn assign<'a, 'n>(
    app: &App,
    kind: Kind,
    names: &[&'n str],
    given: &'a [String],
) -> Result<Vec<(&'n str, &'a str)>, Error> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut unnamed = Vec::new();
    for text in given {
        let Some((name, file)) = text.split_once('=') else {
            unnamed.push(text.as_str());
            continue;
        };
        let known = names.iter().find(|known| **known == name);
        let known = *known.ok_or_else(|| unknown(app, kind, name, names))?;
        if found.iter().any(|(taken, _)| *taken == known) {
            return Err(Error::Repeated { kind: kind.noun(), name: name.to_owned() });
        }
        found.push((known, file));
    }
    for file in unnamed {
        let free = names.iter().find(|name| found.iter().all(|(taken, _)| taken != *name));
        let count = show::count(names.len(), kind.noun());
        let too_many = || Error::TooManyFiles { app: app.name.clone(), file: file.to_owned(), count };
        found.push((*free.ok_or_else(too_many)?, file));
    }
    Ok(found)
}

/// Reads the input files; images are converted to the input's type.
pub(crate) fn read(
    app: &App,
    settings: &Settings,
    pipeline: &Pipeline,
    names: &[&str],
    given: &[String],
) -> Result<Vec<Given>, Error> {
    let mut found = Vec::new();
    for (name, file) in assign(app, Kind::Input, names, given)? {
        let Some(id) = pipeline.input_named(name) else { continue };
        let decl = &pipeline.inputs()[id];
        let ty = decl.ty;
        let (buffer, file, is_converted) = channels::read(file)?;
        let other_type = |found: Type| Error::InputType {
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
                buffer.exactly(ty).map_err(|value| Error::InputValue {
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
pub(crate) fn laid_out(app: &str, layout: &Layout<'_>, file: &str, buffer: Buffer) -> Result<Buffer, Error> {
    // The channels of a pixel lie side by side.
    let order: &[usize] = match buffer.region().dimensions() {
        3 if !is_array(file) => &[2, 0, 1],
        dimensions => &(0..dimensions).collect::<Vec<_>>(),
    };
    layout.fit(buffer, order)?.map_err(|misfit| Error::InputLayout {
        app: app.to_owned(),
        file: file.to_owned(),
        input: layout.name().to_owned(),
        misfit: Box::new(misfit),
    })
}

/// Whether a file holds an array, as opposed to a picture.
pub(crate) fn is_array(file: &str) -> bool {
    file.to_lowercase().ends_with(".npy")
}

/// Derives the sizes that are not `fixed` from the files.
///
/// Each size is derived from the first extent of a given input that grows by one when the size
/// grows by one. The size changes by the difference between the file's extent and the current
/// extent.
pub(crate) fn solve_sizes(app: &App, settings: &mut Settings, fixed: &[String], given: &[Given]) {
    for size in app.sizes.iter().filter(|size| !fixed.contains(&size.name)) {
        let value = settings.number(&size.name);
        let mut larger = settings.clone();
        change(&mut larger, &size.name, value + 1.0);
        let (here, there) = (app.shapes_at(settings), app.shapes_at(&larger));
        let difference = given.iter().find_map(|given| {
            let (here, there) = (here.input(&given.name)?, there.input(&given.name)?);
            let extents = here.0.iter().zip(&there.0).zip(&given.buffer.region().0);
            let mut grows = extents.filter(|((here, there), _)| there.extent - here.extent == 1);
            grows.next().map(|((here, _), file)| file.extent - here.extent)
        });
        if let Some(difference) = difference {
            change(settings, &size.name, (value + difference as f64).max(1.0));
        }
    }
}

/// Moves the files' contents to the boxes of their inputs. The extents must match.
pub(crate) fn fit(subject: &Subject, given: Vec<Given>) -> Result<Vec<Given>, Error> {
    let shapes = subject.shapes();
    let fitted = given.into_iter().map(|given| {
        let Given { name, file, buffer } = given;
        let region = shapes.input(&name).unwrap_or(buffer.region()).clone();
        if buffer.region().extents() != region.extents() {
            return Err(Error::InputShape {
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
