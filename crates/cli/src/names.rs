//! Resolves names that the user gives. For an unknown name, the error suggests the nearest one and
//! lists all.

use clap::ValueEnum;
use warploom::app::{App, Setting};

use crate::error::Error;
use crate::show;

/// The kinds of names that the command line takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Size,
    Structure,
    Param,
    Input,
    Output,
}

impl Kind {
    /// The kinds with numeric values.
    const SETTINGS: [Kind; 3] = [Kind::Size, Kind::Structure, Kind::Param];

    /// The word for it in messages.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Kind::Size => "size",
            Kind::Structure => "structure parameter",
            Kind::Param => "Param",
            Kind::Input => "input",
            Kind::Output => "output",
        }
    }

    /// The command-line flag that sets it.
    pub(crate) const fn flag(self) -> &'static str {
        match self {
            Kind::Size => "--size",
            Kind::Structure => "--set",
            Kind::Param => "--param",
            Kind::Input => "--input",
            Kind::Output => "--output",
        }
    }

    /// The app's settings of this kind.
    pub(crate) fn settings(self, app: &App) -> &[Setting] {
        match self {
            Kind::Size => &app.sizes,
            Kind::Structure => &app.structure,
            Kind::Param => app.param_settings(),
            Kind::Input | Kind::Output => &[],
        }
    }
}

/// How a value of a flag is written on the command line.
pub(crate) fn written(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Refuses two apps with one name.
pub(crate) fn check(apps: &[App]) -> Result<(), Error> {
    for (number, app) in apps.iter().enumerate() {
        if let Some(first) = apps[..number].iter().find(|first| first.name == app.name) {
            let (first, second) = (first.place(), app.place());
            return Err(Error::TwoApps { name: app.name.clone(), first, second });
        }
    }
    Ok(())
}

pub(crate) fn find_app<'a>(apps: &'a [App], name: &str) -> Result<&'a App, Error> {
    apps.iter().find(|app| app.name == name).ok_or_else(|| {
        let known: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
        Error::UnknownApp { name: name.to_owned(), hint: hint(name, &known), known: known.join(", ") }
    })
}

pub(crate) fn find_setting<'a>(app: &'a App, kind: Kind, name: &str) -> Result<&'a Setting, Error> {
    let settings = kind.settings(app);
    settings.iter().find(|setting| setting.name == name).ok_or_else(|| {
        let known: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
        unknown(app, kind, name, &known)
    })
}

/// The error for a name that is not among `known`.
pub(crate) fn unknown(app: &App, kind: Kind, name: &str, known: &[&str]) -> Error {
    let elsewhere = Kind::SETTINGS
        .into_iter()
        .find(|other| *other != kind && other.settings(app).iter().any(|setting| setting.name == name));
    let hint = match elsewhere {
        Some(other) => format!(" (it is a {}: use {} {name}=VALUE)", other.noun(), other.flag()),
        None => hint(name, known),
    };
    let known = match known {
        [] => format!("it has {}", show::count(0, kind.noun())),
        known => format!("it has {}", known.join(", ")),
    };
    Error::UnknownName { app: app.name.clone(), kind: kind.noun(), name: name.to_owned(), hint, known }
}

/// ` (did you mean ...?)` if a known name is similar.
fn hint(name: &str, known: &[&str]) -> String {
    nearest(name, known).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

/// The known name that `name` is most likely a typo of.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase());
    let near = known.iter().map(|known| (distance(known), *known)).min()?;
    (near.0 <= 1.max(name.chars().count() / 3) && near.0 < name.chars().count()).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_hand_are_understood() {
        let known = ["harris", "hist", "unsharp", "W"];
        assert_eq!(nearest("haris", &known), Some("harris"));
        assert_eq!(nearest("ahrris", &known), Some("harris"));
        assert_eq!(nearest("UNSHARP", &known), Some("unsharp"));
        assert_eq!(nearest("w", &known), Some("W"));
        assert_eq!(nearest("x", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest("blur", &known), None);
        assert_eq!(nearest("blur", &[]), None);
    }
}
