//! Settings of strategies as text.

use crate::Error;
use crate::space::Moves;
use std::ops::RangeInclusive;

/// Settings that text can change.
pub trait Settings: Clone {
    /// All settings, with references to their values.
    fn fields(&mut self) -> Vec<Field<'_>>;

    /// Whether the settings are consistent.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The same settings with changes from a text such as `q=0.3,parents=20`, separated by commas or spaces.
    fn parse(mut self, text: &str) -> Result<Self, Error> {
        let mut named: Vec<&str> = Vec::new();
        for pair in text.split([',', ' ']).filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Error::NotAPair { text: pair.to_owned() });
            };
            if named.contains(&name) {
                return Err(Error::Twice { name: name.to_owned() });
            }
            named.push(name);
            let mut fields = self.fields();
            let known = fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
            let Some(field) = fields.iter_mut().find(|field| field.name == name) else {
                return Err(Error::UnknownSetting { name: name.to_owned(), known });
            };
            field.value.set(value).map_err(|expected| Error::Value {
                name: name.to_owned(),
                value: value.to_owned(),
                expected,
            })?;
        }
        self.check()?;
        Ok(self)
    }

    /// All settings as text that [`Settings::parse`] reads, separated by spaces.
    fn text(&self) -> String {
        let mut settings = self.clone();
        let fields = settings.fields();
        fields
            .iter()
            .map(|field| format!("{}={}", field.name, field.value.text()))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// One setting.
pub struct Field<'a> {
    name: &'static str,
    value: Value<'a>,
}

enum Value<'a> {
    Count(&'a mut usize, RangeInclusive<usize>),
    Real(&'a mut f64, RangeInclusive<f64>),
    Word(&'a mut dyn Word),
}

impl<'a> Field<'a> {
    /// A number of things. If the range ends at [`usize::MAX`], `all` is allowed and stands for it.
    pub fn count(name: &'static str, at: &'a mut usize, allowed: RangeInclusive<usize>) -> Field<'a> {
        Field { name, value: Value::Count(at, allowed) }
    }

    /// A number.
    pub fn real(name: &'static str, at: &'a mut f64, allowed: RangeInclusive<f64>) -> Field<'a> {
        Field { name, value: Value::Real(at, allowed) }
    }

    /// One of some words.
    pub fn word(name: &'static str, at: &'a mut dyn Word) -> Field<'a> {
        Field { name, value: Value::Word(at) }
    }
}

impl Value<'_> {
    /// Sets a value, or returns the accepted values.
    fn set(&mut self, text: &str) -> Result<(), String> {
        match self {
            Value::Count(at, allowed) if text == "all" && *allowed.end() == usize::MAX => **at = usize::MAX,
            Value::Count(at, allowed) => {
                let fits = text.parse().ok().filter(|count| allowed.contains(count));
                **at = fits.ok_or_else(|| match *allowed.end() {
                    usize::MAX => format!("a whole number from {}, or all", allowed.start()),
                    end => format!("a whole number from {} to {end}", allowed.start()),
                })?;
            }
            Value::Real(at, allowed) => {
                let fits = text.parse().ok().filter(|number| allowed.contains(number));
                **at =
                    fits.ok_or_else(|| format!("a number from {} to {}", allowed.start(), allowed.end()))?;
            }
            Value::Word(word) => {
                if !word.set(text) {
                    return Err(format!("one of {}", word.words().join(", ")));
                }
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        match self {
            Value::Count(at, _) if **at == usize::MAX => "all".to_owned(),
            Value::Count(at, _) => at.to_string(),
            Value::Real(at, _) => at.to_string(),
            Value::Word(word) => word.word().to_owned(),
        }
    }
}

/// A setting that is one of some words.
pub trait Word {
    /// All words.
    fn words(&self) -> &'static [&'static str];

    /// The current word.
    fn word(&self) -> &'static str;

    /// Sets a word; returns false if it is unknown.
    fn set(&mut self, word: &str) -> bool;
}

impl Word for Moves {
    fn words(&self) -> &'static [&'static str] {
        &["prime", "double", "divisor"]
    }

    fn word(&self) -> &'static str {
        match self {
            Moves::Prime => "prime",
            Moves::Double => "double",
            Moves::Divisor => "divisor",
        }
    }

    fn set(&mut self, word: &str) -> bool {
        let found =
            [Moves::Prime, Moves::Double, Moves::Divisor].into_iter().find(|moves| moves.word() == word);
        *self = found.unwrap_or(*self);
        found.is_some()
    }
}
