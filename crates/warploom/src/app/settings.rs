//! The named numbers of an app.

use std::collections::BTreeMap;

use super::App;

/// A named number of an app, with its default value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name to set it by; unique within an app.
    pub name: String,
    /// The value unless the user sets another.
    pub default: f64,
    /// Whether it must be a whole number, for counts such as pyramid levels or pixels.
    pub whole: bool,
}

/// A [`Setting`] that may be any number.
pub fn setting(name: impl Into<String>, default: f64) -> Setting {
    Setting { name: name.into(), default, whole: false }
}

/// A [`Setting`] that must be a whole number.
pub fn count(name: impl Into<String>, default: u32) -> Setting {
    Setting { name: name.into(), default: f64::from(default), whole: true }
}

/// The values of an app's sizes, structure parameters and Params.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: BTreeMap<String, f64>,
}

impl Settings {
    /// The default value of every setting of the app.
    pub fn defaults(app: &App) -> Settings {
        Settings::of([&app.sizes, &app.structure, app.param_settings()])
    }

    /// The default values of some settings.
    pub(super) fn of<const N: usize>(settings: [&[Setting]; N]) -> Settings {
        let all = settings.into_iter().flatten();
        Settings { values: all.map(|setting| (setting.name.clone(), setting.default)).collect() }
    }

    /// Sets one value. Returns `false` if the app has no such setting.
    #[must_use]
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        match self.values.get_mut(name) {
            Some(slot) => {
                *slot = value;
                true
            }
            None => false,
        }
    }

    /// Adds a value for a Param for which the app and its pipeline have none.
    pub fn give(&mut self, param: &str, value: f64) {
        self.values.insert(param.to_owned(), value);
    }

    /// The value of a setting.
    ///
    /// # Panics
    /// If the app declares no setting of that name, which is a bug in the app's own code.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(value) => *value,
            None => panic!("the app declares no setting `{name}`"),
        }
    }

    /// The value of a setting; `None` if the app declares none of that name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// The value of a whole-number setting; see [`Settings::number`].
    pub fn int(&self, name: &str) -> i64 {
        self.number(name) as i64
    }

    /// All names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }
}
