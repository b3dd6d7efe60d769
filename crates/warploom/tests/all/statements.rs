//! No `match` over the statements of kernel IR has an arm for "all others": such an arm would pass over a new statement.

use std::path::{Path, PathBuf};

/// The arms for all others in a file that is formatted by rustfmt: in the lists of arms that name statements, the lines that
/// bind whatever else there is.
fn catch_alls(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let names_statement = |line: &str| line.trim_start().trim_start_matches("| ").starts_with("Stmt::");
    let binds_all = |line: &&str| {
        let Some((pattern, _)) = line.split_once(" =>") else { return false };
        let pattern = pattern.trim().split(" if ").next().unwrap_or_default();
        let name = pattern.trim_start_matches("ref ").trim_start_matches("mut ");
        name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| names_statement(line)) {
        let inside = |other: &&&str| depth(other) >= depth(line);
        let (before, after) = (lines[..at].iter().rev(), lines[at..].iter());
        let block = before.take_while(inside).chain(after.take_while(inside));
        found.extend(block.filter(|other| depth(other) == depth(line)).copied().filter(binds_all));
    }
    found.dedup();
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn no_match_over_statements_passes_over_new_ones() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    assert!(files.len() > 100, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let found = catch_alls(&text);
        assert!(found.is_empty(), "{}: name the other statements in place of {found:#?}", file.display());
    }
}

#[test]
fn arms_for_all_others_are_found() {
    let of = |arm: &str| {
        format!(
            "    match stmt {{\n        Stmt::Barrier => {{\n            x\n        }}\n        {arm}\n    }}\n"
        )
    };
    for arm in ["_ => {}", "ref other => other.clone(),", "other => made.push(other),", "_ if wide => 2,"] {
        assert_eq!(catch_alls(&of(arm)), [format!("        {arm}")]);
    }
    for arm in ["Stmt::Commit | Stmt::Wait(_) => {}", "Stmt::Let(var, _) => Some(var),"] {
        assert!(catch_alls(&of(arm)).is_empty());
    }
}
