//! Parses sizes, structure parameters and Params from the command line.

use warploom::app::{App, Setting, Settings};
use warploom::lang::Pipeline;

use crate::error::Error;
use crate::names::{Kind, find_setting, unknown};

pub(crate) use warploom::app::MAX_SIZE;

/// The largest structure parameter; a pipeline with more levels or stencils than that is a typo.
pub(crate) const MAX_STRUCTURE: f64 = 1024.0;

/// The sizes that `640x480` sets, if the app has them.
const PICTURE: [&str; 2] = ["W", "H"];

/// Sets structure parameters from `NAME=VALUE`.
pub(crate) fn set_structure(app: &App, settings: &mut Settings, given: &[String]) -> Result<(), Error> {
    for (name, text) in assignments(Kind::Structure, given)? {
        let setting = find_setting(app, Kind::Structure, name)?;
        set_structure_value(app, settings, setting, number(text), text)?;
    }
    Ok(())
}

/// Sets a structure parameter to `value`, which was written as `text`.
pub(crate) fn set_structure_value(
    app: &App,
    settings: &mut Settings,
    setting: &Setting,
    value: Option<f64>,
    text: &str,
) -> Result<(), Error> {
    let (app_name, name, text) = (app.name.clone(), setting.name.clone(), text.to_owned());
    let Some(value) = value.filter(|value| 0.0 < *value && *value <= MAX_STRUCTURE) else {
        return Err(Error::Structure { app: app_name, name, text });
    };
    if value.fract() != 0.0 && setting.whole {
        return Err(Error::Fraction { app: app_name, name, text });
    }
    change(settings, &name, value);
    Ok(())
}

/// Sets Params from `NAME=VALUE`.
pub(crate) fn set_params(
    app: &App,
    pipeline: &Pipeline,
    settings: &mut Settings,
    given: &[String],
) -> Result<(), Error> {
    for (name, text) in assignments(Kind::Param, given)? {
        // A Param without a default is no setting of the app.
        if pipeline.param_named(name).is_none() {
            find_setting(app, Kind::Param, name)?;
        }
        let no_number =
            || Error::NoNumber { app: app.name.clone(), name: name.to_owned(), text: text.to_owned() };
        settings.give(name, number(text).ok_or_else(no_number)?);
    }
    Ok(())
}

/// Sets sizes from `W=640,H=480` or `640x480`. Returns the names of the sizes that were set.
pub(crate) fn set_sizes(app: &App, settings: &mut Settings, given: &[String]) -> Result<Vec<String>, Error> {
    let mut fixed: Vec<String> = Vec::new();
    for item in given.iter().flat_map(|text| text.split(',')) {
        let sizes = match item.split_once('=') {
            Some((name, text)) => vec![(find_setting(app, Kind::Size, name.trim())?.name.clone(), text)],
            None => by_position(app, item)?,
        };
        for (name, text) in sizes {
            let size = text.trim().parse().ok().filter(|size| (1..=MAX_SIZE).contains(size));
            let no_size = || Error::Size { app: app.name.clone(), name: name.clone(), text: text.to_owned() };
            let size: i64 = size.ok_or_else(no_size)?;
            if fixed.contains(&name) {
                return Err(Error::Repeated { kind: Kind::Size.noun(), name });
            }
            change(settings, &name, size as f64);
            fixed.push(name);
        }
    }
    Ok(fixed)
}

/// Parses sizes without names: width and height if the app has them, otherwise all its sizes in
/// order.
fn by_position<'a>(app: &App, item: &'a str) -> Result<Vec<(String, &'a str)>, Error> {
    let named = |name: &str| app.sizes.iter().find(|size| size.name == name);
    let picture: Vec<&Setting> = PICTURE.iter().filter_map(|name| named(name)).collect();
    let sizes = if picture.len() == PICTURE.len() { picture } else { app.sizes.iter().collect() };
    if sizes.is_empty() {
        return Err(unknown(app, Kind::Size, item, &[]));
    }
    let texts: Vec<&str> = item.split('x').collect();
    if texts.len() != sizes.len() {
        let names: Vec<&str> = sizes.iter().map(|size| size.name.as_str()).collect();
        let examples: Vec<String> = sizes.iter().map(|size| size.default.to_string()).collect();
        let (form, example) = (names.join("x"), examples.join("x"));
        return Err(Error::SizeForm { app: app.name.clone(), text: item.to_owned(), form, example });
    }
    Ok(sizes.iter().map(|size| size.name.clone()).zip(texts).collect())
}

/// Splits each `NAME=VALUE`. Returns an error if a name is repeated.
fn assignments(kind: Kind, given: &[String]) -> Result<Vec<(&str, &str)>, Error> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for text in given {
        let no_value = || Error::NoValue { flag: kind.flag(), text: text.clone() };
        let (name, value) = text.split_once('=').ok_or_else(no_value)?;
        if found.iter().any(|(known, _)| *known == name) {
            return Err(Error::Repeated { kind: kind.noun(), name: name.to_owned() });
        }
        found.push((name, value));
    }
    Ok(found)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Sets a setting that the app is known to have.
pub(crate) fn change(settings: &mut Settings, name: &str, value: f64) {
    let known = settings.set(name, value);
    debug_assert!(known, "`{name}` was found among the app's settings");
}
