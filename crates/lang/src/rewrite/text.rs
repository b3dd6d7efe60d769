//! The text form of rewrites: one line each.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::naming::split_reduction;
use crate::rewrite::{Rewrite, RewriteError, Side, StageName, VarName};

impl Rewrite {
    /// The words that rewrites start with.
    pub const WORDS: [&'static str; 13] = [
        "split", "factor", "cut", "chunk", "tree", "clone", "join", "gather", "permute", "unroll",
        "separate", "tabulate", "expand",
    ];

    /// The word that it starts with.
    pub fn word(&self) -> &'static str {
        let text = self.to_string();
        Rewrite::WORDS.into_iter().find(|word| text.split(' ').next() == Some(word)).unwrap_or_default()
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
            Rewrite::Tree { stage } => write!(f, "tree {stage}"),
            Rewrite::Clone { func, reader } => write!(f, "clone {func} for {reader}"),
            Rewrite::Join { one, other } => write!(f, "join {one}, {other}"),
            Rewrite::Gather { stage } => write!(f, "gather {stage}"),
            Rewrite::Permute { stage, vars } => write!(f, "permute {stage} {}", vars.join(", ")),
            Rewrite::Unroll { var } => write!(f, "unroll {var}"),
            Rewrite::Separate { func, dim } => write!(f, "separate {func} along {dim}"),
            Rewrite::Tabulate { func } => write!(f, "tabulate {func}"),
            Rewrite::Expand { stage } => write!(f, "expand {stage}"),
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
            ["tree", rest @ ..] => (tree(rest), "tree FUNC.STAGE"),
            ["clone", rest @ ..] => (clone(rest), "clone FUNC for FUNC"),
            ["join", rest @ ..] => (join(rest), "join FUNC, FUNC"),
            ["gather", rest @ ..] => (gather(rest), "gather FUNC.STAGE"),
            ["permute", rest @ ..] => (permute(rest), "permute FUNC.STAGE VAR, VAR"),
            ["unroll", rest @ ..] => (unroll(rest), "unroll FUNC.STAGE.VAR"),
            ["separate", rest @ ..] => (separate(rest), "separate FUNC along DIMENSION"),
            ["tabulate", rest @ ..] => (tabulate(rest), "tabulate FUNC"),
            ["expand", rest @ ..] => (expand(rest), "expand FUNC.STAGE"),
            _ => (
                None,
                "one that starts with split, factor, cut, chunk, tree, clone, join, gather, permute, unroll, separate, tabulate or expand",
            ),
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

fn tree(words: &[&str]) -> Option<Rewrite> {
    let [stage] = words else { return None };
    Some(Rewrite::Tree { stage: stage_name(stage)? })
}

fn clone(words: &[&str]) -> Option<Rewrite> {
    let [func, "for", reader] = words else { return None };
    Some(Rewrite::Clone { func: func.to_string(), reader: reader.to_string() })
}

fn join(words: &[&str]) -> Option<Rewrite> {
    let [one, other] = <[String; 2]>::try_from(names(words)?).ok()?;
    Some(Rewrite::Join { one, other })
}

fn gather(words: &[&str]) -> Option<Rewrite> {
    let [stage] = words else { return None };
    Some(Rewrite::Gather { stage: stage_name(stage)? })
}

fn permute(words: &[&str]) -> Option<Rewrite> {
    let [stage, vars @ ..] = words else { return None };
    Some(Rewrite::Permute { stage: stage_name(stage)?, vars: names(vars)? })
}

fn unroll(words: &[&str]) -> Option<Rewrite> {
    let [var] = words else { return None };
    Some(Rewrite::Unroll { var: var_name(var)? })
}

fn separate(words: &[&str]) -> Option<Rewrite> {
    let [func, "along", dim] = words else { return None };
    Some(Rewrite::Separate { func: func.to_string(), dim: dim.to_string() })
}

fn tabulate(words: &[&str]) -> Option<Rewrite> {
    let [func] = words else { return None };
    Some(Rewrite::Tabulate { func: func.to_string() })
}

fn expand(words: &[&str]) -> Option<Rewrite> {
    let [stage] = words else { return None };
    Some(Rewrite::Expand { stage: stage_name(stage)? })
}

/// `rx, ry`, a name in each word.
fn names(words: &[&str]) -> Option<Vec<String>> {
    let text = words.join(" ");
    let name = |name: &str| {
        Some(name.trim()).filter(|name| !name.is_empty() && !name.contains(' ')).map(str::to_string)
    };
    text.split(',').map(name).collect()
}

/// `blur.1`. Names of Funcs contain dots, so the stage is the last part.
fn stage_name(text: &str) -> Option<StageName> {
    let (func, stage) = text.rsplit_once('.')?;
    Some(StageName { func: func.to_string(), stage: stage.parse().ok()? })
}

/// `blur.1.rx`
fn var_name(text: &str) -> Option<VarName> {
    let (stage, var) = split_reduction(text)?;
    Some(VarName { stage: stage_name(stage)?, var: var.to_string() })
}
