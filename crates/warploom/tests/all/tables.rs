//! The page of a file that has a table of modules names each module of that file in it.

use std::fs;
use std::path::Path;

use crate::layering::files;

/// What the column of modules is called at the head of such a table.
const HEADS: [&str; 4] = ["file", "module", "modules", "pass"];

/// The modules that a file declares, each at the start of a line.
fn modules(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let declaration =
            line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
        declaration.strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// The modules of a file that its table of modules does not name, but those of tests. `None` if it has no such table.
fn missing(text: &str) -> Option<Vec<&str>> {
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("//! |")).collect();
    let is_head = |row: &str| row.split('|').any(|cell| HEADS.contains(&cell.trim()));
    let lists_modules = |pair: &[&str]| is_head(pair[0]) && pair[1].starts_with("//! | ---");
    if !rows.windows(2).any(lists_modules) {
        return None;
    }
    let is_named = |module: &str| rows.iter().any(|row| row.contains(&format!("`{module}`")));
    Some(modules(text).filter(|module| *module != "tests" && !is_named(module)).collect())
}

#[test]
fn tables_of_modules_are_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut tables, mut found) = (0, Vec::new());
    for path in ["crates", "apps", "training"].iter().flat_map(|folder| files(&root.join(folder))) {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        if !name.contains("/src/") || !name.ends_with(".rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let Some(modules) = missing(&text) else { continue };
        tables += 1;
        found.extend(modules.iter().map(|module| format!("{name}: `{module}`")));
    }
    assert!(tables >= 10, "only {tables} tables of modules were found");
    assert!(found.is_empty(), "not in the table at the top of their file:\n{}", found.join("\n"));
}

#[test]
fn a_module_outside_its_table_is_found() {
    let table = "//! | pass | what it does |\n//! | --- | --- |\n//! | `a`, [`b`] | both |\n";
    let of = |table: &str| {
        format!("//! Passes.\n//!\n{table}\nmod a;\npub mod b;\npub(crate) mod c;\nmod tests;\n")
    };
    assert_eq!(missing(&of(table)), Some(vec!["c"]));
    assert_eq!(missing(&of(&format!("{table}//! | `c` | more |\n"))), Some(Vec::new()));
    assert_eq!(missing(&of("")), None);
    assert_eq!(missing(&of("//! | sizes | a file |\n//! | --- | --- |\n//! | 1 | file |\n")), None);
}
