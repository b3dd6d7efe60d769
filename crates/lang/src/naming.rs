//! The rules for names, so that every text form that shows them can be read back.
//!
//! | name of | may be |
//! | --- | --- |
//! | a Func, input, Param or table | letters, digits, `_` and `.` of ASCII, starting with a letter or `_` |
//! | a variable | anything without white space, `,` and `#`; between dots, only the last part may be a number |
//! | a pipeline | words of anything but `,` and `#`, on one line |
//!
//! All have at most [`NAME`] bytes, those that the compiler derives (`blur.sum0`) too. Schedules call the
//! stages of a Func with updates `blur.0`, `blur.1`, ..., the copy of an input `input.stage`, and a reduction
//! variable `blur.1.rx`. No two things may have one name there, nor two buffers of outputs.

use ahash::{AHashMap, AHashSet};

use crate::brief::quoted;
use crate::error::Fault;
use crate::files::NAME;
use crate::ir::{FuncDecl, copy_name, stage_name};
use crate::pipeline::Pipeline;

/// Checks all names of a pipeline, and that no two things have the same.
pub(crate) fn check_names(pipeline: &Pipeline) -> Result<(), Fault> {
    check_pipeline_name(&pipeline.name)?;
    let mut seen = AHashSet::new();
    let inputs = pipeline.inputs.values().map(|input| &input.name);
    let params = pipeline.params.values().map(|param| &param.name);
    let tables = pipeline.tables().values().map(|table| &table.name);
    for name in inputs.chain(params).chain(tables).chain(pipeline.funcs.values().map(|func| &func.name)) {
        check_length(name)?;
        if !is_name(name) {
            return Err(Fault::BadName { name: name.clone() });
        }
        if !seen.insert(name) {
            return Err(Fault::Duplicate { name: name.clone(), first: None });
        }
    }
    pipeline.funcs.values().try_for_each(check_variables)
}

/// Checks that no name can be read in two ways. The tables of the pipeline are valid.
pub(crate) fn check_meanings(pipeline: &Pipeline) -> Result<(), Fault> {
    let mut outputs = AHashSet::new();
    if let Some(&twice) = pipeline.outputs.iter().find(|output| !outputs.insert(**output)) {
        return Err(Fault::Duplicate { name: pipeline.funcs[twice].name.clone(), first: None });
    }
    let mut meanings: AHashMap<String, String> = AHashMap::new();
    for input in pipeline.inputs.values() {
        meanings.insert(copy_name(&input.name), format!("the copy of the input `{}`", input.name));
    }
    for func in pipeline.funcs.values().filter(|func| func.stages.len() > 1) {
        for stage in 0..func.stages.len() {
            meanings.insert(stage_name(func, stage), format!("stage {stage} of `{}`", func.name));
        }
    }
    // Names of Funcs differ, so only a Func of one stage can have the name of something else.
    for func in pipeline.funcs.values().filter(|func| func.stages.len() == 1) {
        if let Some(other) = meanings.remove(&func.name) {
            return Err(Fault::TwoMeanings { name: func.name.clone(), other });
        }
    }
    let mut buffers = AHashSet::new();
    match pipeline.output_names().into_iter().find(|name| !buffers.insert(name.clone())) {
        Some(name) => Err(Fault::TwoMeanings { name, other: "a value of another output".to_string() }),
        None => Ok(()),
    }
}

fn check_length(name: &str) -> Result<(), Fault> {
    match name.len() as u64 > NAME.most {
        true => Err(Fault::LongName { name: quoted(name).into_owned(), bytes: name.len() }),
        false => Ok(()),
    }
}

fn check_pipeline_name(name: &str) -> Result<(), Fault> {
    check_length(name)?;
    match name.trim().is_empty() || name.contains([',', '#', '\n', '\r']) {
        true => Err(Fault::BadPipelineName { name: name.to_string() }),
        false => Ok(()),
    }
}

/// Whether a Func, input, Param or table can have a name. Generated code is made of these names.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let starts_well = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts_well && letters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

fn check_variables(func: &FuncDecl) -> Result<(), Fault> {
    let domains = func.stages.iter().flat_map(|stage| &stage.domain);
    for name in func.dims.iter().chain(domains.map(|var| &var.name)) {
        check_length(name)?;
        if !is_variable(name) {
            return Err(Fault::BadVariable { func: func.name.clone(), variable: name.clone() });
        }
    }
    Ok(())
}

/// Whether a dimension or reduction variable can have a name.
fn is_variable(name: &str) -> bool {
    let one_word = !name.contains(|c: char| c.is_whitespace() || c == ',' || c == '#');
    let before_last = name.rsplit('.').skip(1);
    !name.is_empty() && one_word && before_last.into_iter().all(|part| !is_number(part))
}

/// The stage and the variable in the name of a reduction variable: `blur.1` and `rx` in `blur.1.rx`. `None` if no
/// stage is named.
pub fn split_reduction(text: &str) -> Option<(&str, &str)> {
    let mut end = text.len();
    // The last part belongs to the variable, even if it is a number.
    for (dot, _) in text.rmatch_indices('.') {
        if end < text.len() && is_number(&text[dot + 1..end]) {
            return Some((&text[..end], &text[end + 1..]));
        }
        end = dot;
    }
    None
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_are_split_at_the_number_of_their_stage() {
        assert_eq!(split_reduction("blur.1.rx"), Some(("blur.1", "rx")));
        assert_eq!(split_reduction("a.0.1.2"), Some(("a.0.1", "2")));
        assert_eq!(split_reduction("a.0.1.x.2"), Some(("a.0.1", "x.2")));
        assert_eq!(split_reduction("a.3.x.y.z"), Some(("a.3", "x.y.z")));
        assert_eq!(split_reduction("a.3..x."), Some(("a.3", ".x.")));
        for text in ["", ".", "a", "a.1", "a.x", "blur.rx", "a..x"] {
            assert_eq!(split_reduction(text), None, "{text}");
        }
    }

    #[test]
    fn names_of_variables() {
        for good in ["x", "größe", "0", "x.0", "a.b.c", "\"q\"", ".", "x.", "all", "\u{202e}", "3d"] {
            assert!(is_variable(good), "{good}");
        }
        for bad in ["", "a b", "a\u{a0}b", "a\n", "a,b", "#", "0.x", "x.0.y"] {
            assert!(!is_variable(bad), "{bad}");
        }
    }
}
