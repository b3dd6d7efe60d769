//! Compares JSON with its description in `docs/json.md`, which lists every field of every report.
//!
//! A heading ``## `warploom.X/N` `` describes a report, and ``### `name` `` a type that reports share. Below it stands a table
//! of fields, or one line `Type: ...`. Reports also have an example.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value as Json};

/// The page.
const PAGE: &str = "docs/json.md";

/// The row that adds all fields of another type.
const ALL_FIELDS: &str = "all fields of";

pub struct Documented {
    /// Reports and types by name.
    types: BTreeMap<String, Described>,
    /// The examples of each report.
    examples: BTreeMap<String, Vec<Json>>,
}

enum Described {
    Fields(Vec<(String, String)>),
    Same(String),
}

/// What was compared so far.
#[derive(Default)]
pub struct Compared {
    pub faults: Vec<String>,
    /// The rows that were found, as `type: field`.
    pub seen: BTreeSet<String>,
}

impl Documented {
    pub fn read() -> Documented {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
        Documented::parse(&std::fs::read_to_string(page).unwrap())
    }

    pub fn parse(text: &str) -> Documented {
        let mut page = Documented { types: BTreeMap::new(), examples: BTreeMap::new() };
        let (mut name, mut example): (Option<String>, Option<String>) = (None, None);
        for line in text.lines() {
            if let Some(so_far) = &mut example {
                if line != "```" {
                    *so_far += line;
                    continue;
                }
                let json: Json = serde_json::from_str(so_far).unwrap_or_else(|error| {
                    panic!("{PAGE}: an example of {name:?} is not JSON: {error}\n{so_far}")
                });
                page.examples.entry(schema_of(&json)).or_default().push(json);
                example = None;
            } else if line == "```json" {
                example = Some(String::new());
            } else if line.starts_with('#') {
                name = quoted(line).map(str::to_owned);
            } else if let Some(name) = &name {
                page.line(name, line);
            }
        }
        page
    }

    fn line(&mut self, name: &str, line: &str) {
        if let Some(same) = line.strip_prefix("Type: ") {
            self.types.insert(name.to_owned(), Described::Same(plain(same.trim_end_matches('.'))));
            return;
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let [field, ty, _unit, _meaning] = cells.as_slice() else { return };
        let field = field.trim_start_matches("| ").trim();
        let field = match quoted(field) {
            Some(field) => field,
            None if field == ALL_FIELDS => field,
            None => return,
        };
        let row = (field.to_owned(), plain(ty));
        match self.types.entry(name.to_owned()).or_insert_with(|| Described::Fields(Vec::new())) {
            Described::Fields(rows) => rows.push(row),
            Described::Same(_) => panic!("{PAGE}: `{name}` has a type and a table"),
        }
    }

    /// The reports that have a section.
    pub fn reports(&self) -> BTreeSet<&str> {
        self.types.keys().map(|name| name.split(' ').next().unwrap()).filter(|name| is_schema(name)).collect()
    }

    /// All rows, as `type: field`.
    pub fn rows(&self) -> BTreeSet<String> {
        let rows = |(name, described): (&String, &Described)| match described {
            Described::Fields(rows) => {
                let named = rows.iter().filter(|(field, _)| field != ALL_FIELDS);
                named.map(|(field, _)| format!("{name}: {field}")).collect()
            }
            Described::Same(_) => Vec::new(),
        };
        self.types.iter().flat_map(rows).collect()
    }

    pub fn examples(&self, schema: &str) -> &[Json] {
        self.examples.get(schema).map(Vec::as_slice).unwrap_or_default()
    }

    /// Fails unless a report is as the page says.
    pub fn check(&self, report: &Json) -> BTreeSet<String> {
        let mut compared = Compared::default();
        self.report(report, &mut compared);
        let Compared { faults, seen } = compared;
        assert!(
            faults.is_empty(),
            "{PAGE} does not describe this output:\n- {}\n\n{report:#}",
            faults.join("\n- ")
        );
        seen
    }

    /// Compares a report with the section that its schema names.
    pub fn report(&self, report: &Json, compared: &mut Compared) {
        let schema = schema_of(report);
        // The objects of a stream have a table for each event.
        let name = match report["event"].as_str() {
            Some(event) => format!("{schema} {event}"),
            None => schema,
        };
        match self.types.contains_key(&name) {
            true => self.named(&name, report, "", compared),
            false => compared
                .faults
                .push(format!("there is no section `{name}`; add one, with a table and an example")),
        }
    }

    fn named(&self, name: &str, value: &Json, at: &str, compared: &mut Compared) {
        match self.types.get(name) {
            Some(Described::Same(ty)) => self.value(ty, value, at, compared),
            Some(Described::Fields(_)) => match value.as_object() {
                Some(object) => self.object(name, object, at, compared),
                None => compared.faults.push(format!("`{at}` is {}, not an object `{name}`", kind(value))),
            },
            None => compared.faults.push(format!("`{at}` has the type `{name}`, which has no section")),
        }
    }

    fn object(&self, name: &str, object: &Map<String, Json>, at: &str, compared: &mut Compared) {
        let rows = self.fields(name);
        for (field, value) in object.iter().filter(|(field, _)| !at.is_empty() || *field != "schema") {
            let at = if at.is_empty() { field.clone() } else { format!("{at}.{field}") };
            match rows.iter().find(|(_, known, _)| *known == field) {
                Some((owner, _, ty)) => {
                    compared.seen.insert(format!("{owner}: {field}"));
                    self.value(ty, value, &at, compared);
                }
                None => compared.faults.push(format!(
                    "the output has `{at}`, but the table of `{name}` has no row `{field}`; add the row, and the field to the \
                     example (the version stays)"
                )),
            }
        }
        for (_, field, _) in rows.iter().filter(|(_, field, _)| !object.contains_key(*field)) {
            let place = if at.is_empty() { String::new() } else { format!(" in `{at}`") };
            compared.faults.push(format!(
                "the table of `{name}` has a row `{field}`, but the output has no such field{place}; remove the row, and raise \
                 the version of the schema"
            ));
        }
    }

    /// The fields of a type, each with the type whose table lists it.
    fn fields<'a>(&'a self, name: &'a str) -> Vec<(&'a str, &'a String, &'a String)> {
        let Some(Described::Fields(rows)) = self.types.get(name) else { return Vec::new() };
        rows.iter()
            .flat_map(|(field, ty)| match field == ALL_FIELDS {
                true => self.fields(ty),
                false => vec![(name, field, ty)],
            })
            .collect()
    }

    /// Compares a value with a type such as `array of string or null`.
    fn value(&self, ty: &str, value: &Json, at: &str, compared: &mut Compared) {
        let mut best: Option<Compared> = None;
        for one in ty.split(" or ") {
            let mut tried = Compared::default();
            let better = |best: &Compared, tried: &Compared| tried.faults.len() < best.faults.len();
            if self.one(one, value, at, &mut tried) && best.as_ref().is_none_or(|best| better(best, &tried)) {
                best = Some(tried);
            }
        }
        match best {
            Some(best) => {
                compared.faults.extend(best.faults);
                compared.seen.extend(best.seen);
            }
            None => compared.faults.push(format!("`{at}` is {}, but the table says {ty}", kind(value))),
        }
    }

    /// Compares a value with one alternative of a type. Returns whether it is that kind of JSON at all.
    fn one(&self, ty: &str, value: &Json, at: &str, compared: &mut Compared) -> bool {
        if let Some(of) = ty.strip_prefix("array of ") {
            let Some(items) = value.as_array() else { return false };
            items.iter().for_each(|item| self.value(of, item, &format!("{at}[]"), compared));
            return true;
        }
        if let Some(of) = ty.strip_prefix("map of ") {
            let Some(items) = value.as_object() else { return false };
            items.values().for_each(|item| self.value(of, item, &format!("{at}.*"), compared));
            return true;
        }
        match ty {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "report" => {
                let is_report = value["schema"].is_string();
                if is_report {
                    self.report(value, compared);
                }
                is_report
            }
            name => {
                let wanted = matches!(self.types.get(name), Some(Described::Same(_))) || value.is_object();
                if wanted {
                    self.named(name, value, at, compared);
                }
                wanted
            }
        }
    }
}

fn schema_of(report: &Json) -> String {
    report["schema"].as_str().unwrap_or("an object without a schema").to_owned()
}

fn is_schema(name: &str) -> bool {
    name.starts_with("warploom.") && name.contains('/')
}

/// The first text between backquotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

/// A type without links: `array of [region](#region)` is `array of region`.
fn plain(ty: &str) -> String {
    let mut plain = String::new();
    let mut rest = ty.trim();
    while let Some((before, link)) = rest.split_once('[') {
        let (text, after) = link.split_once(']').unwrap_or((link, ""));
        plain = plain + before + text;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}
