//! The text form of rewrites: one line each.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::rewrite::{Rewrite, RewriteError, Side, StageName, VarName};

/// The words that rewrites start with.
pub(super) const WORDS: &[&str] = &["split", "factor", "cut", "chunk"];

impl Rewrite {
    /// Whether a line that starts with this word is a rewrite.
    pub fn starts_with(word: &str) -> bool {
        WORDS.contains(&word)
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.func, self.stage)
    }
}

impl fmt::Display for VarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.stage, self.var)
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Inner => "inner",
            Side::Outer => "outer",
        })
    }
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rewrite::Split { var, by } => write!(f, "split {var} by {by}"),
            Rewrite::Factor { var, side, by } => write!(f, "factor {var} {side} {by}"),
            Rewrite::Cut { func, at } => write!(f, "cut {func} at {at}"),
            Rewrite::Chunk { var, by } => write!(f, "chunk {var} {by}"),
        }
    }
}

impl FromStr for Rewrite {
    type Err = RewriteError;

    fn from_str(text: &str) -> Result<Rewrite, RewriteError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (rewrite, form) = match words.as_slice() {
            ["split", rest @ ..] => (split(rest), "split FUNC.STAGE.VAR by NUMBER"),
            ["factor", rest @ ..] => (factor(rest), "factor FUNC.STAGE.VAR inner|outer NUMBER"),
            ["cut", rest @ ..] => (cut(rest), "cut FUNC at NUMBER"),
            ["chunk", rest @ ..] => (chunk(rest), "chunk FUNC.STAGE.VAR NUMBER"),
            _ => (None, "one that starts with split, factor, cut or chunk"),
        };
        rewrite.ok_or_else(|| RewriteError::Text { text: text.to_string(), form })
    }
}

fn split(words: &[&str]) -> Option<Rewrite> {
    let [var, "by", by] = words else { return None };
    Some(Rewrite::Split { var: var_name(var)?, by: by.parse().ok()? })
}

fn factor(words: &[&str]) -> Option<Rewrite> {
    let [var, side, by] = words else { return None };
    let side = match *side {
        "inner" => Side::Inner,
        "outer" => Side::Outer,
        _ => return None,
    };
    let by: NonZeroU32 = by.parse().ok()?;
    Some(Rewrite::Factor { var: var_name(var)?, side, by })
}

fn cut(words: &[&str]) -> Option<Rewrite> {
    let [func, "at", at] = words else { return None };
    Some(Rewrite::Cut { func: func.to_string(), at: at.parse().ok()? })
}

fn chunk(words: &[&str]) -> Option<Rewrite> {
    let [var, by] = words else { return None };
    Some(Rewrite::Chunk { var: var_name(var)?, by: by.parse().ok()? })
}

/// `blur.1`. Names of Funcs contain dots, so the stage is the last part.
fn stage_name(text: &str) -> Option<StageName> {
    let (func, stage) = text.rsplit_once('.')?;
    Some(StageName { func: func.to_string(), stage: stage.parse().ok()? })
}

/// `blur.1.rx`
fn var_name(text: &str) -> Option<VarName> {
    let (stage, var) = text.rsplit_once('.')?;
    Some(VarName { stage: stage_name(stage)?, var: var.to_string() })
}
