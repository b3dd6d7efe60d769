//! The files of inputs and outputs on the command line.

use warploom::app::{App, Settings};
use warploom::inputs::{self, Given};
use warploom::interp::buffer::Buffer;
use warploom::lang::Pipeline;

use crate::error::Error;
use crate::names::{Kind, unknown};
use crate::show;

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

/// Reads the input files, as `[NAME=]FILE`.
pub(crate) fn read(
    app: &App,
    settings: &Settings,
    pipeline: &Pipeline,
    names: &[&str],
    given: &[String],
) -> Result<Vec<Given>, Error> {
    Ok(inputs::read(app, settings, pipeline, &assign(app, Kind::Input, names, given)?)?)
}

#[cfg(test)]
mod tests {
    use warploom::inputs::Layout;

    use super::*;

    #[test]
    fn inputs_take_the_channels_of_their_app() {
        let taken = |name: &str, input: &str| {
            let app =
                warploom_apps::APPS.iter().chain(warploom_apps::BASICS.iter()).find(|app| app.name == name);
            let app = app.unwrap();
            let settings = Settings::defaults(app);
            let pipeline = app.pipeline(&settings).unwrap();
            let input = &pipeline.inputs()[pipeline.input_named(input).unwrap()];
            Layout::of(app, &settings, input).channels()
        };
        assert_eq!(taken("unsharp", "input"), Some(3));
        assert_eq!(taken("blur", "input"), Some(1));
        assert_eq!(taken("interpolate", "input"), Some(4));
        assert_eq!(taken("conv_layer", "input"), None);
    }
}
