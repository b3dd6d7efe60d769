//! The documents as a site: `docs/SUMMARY.md` lists every page, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages that are not part of the site: the list itself, and what a registry shows of a crate.
const APART: [&str; 2] = ["docs/SUMMARY.md", "crates/README.md"];

#[test]
fn every_page_is_listed_once() {
    let listed = links(&read("docs/SUMMARY.md"));
    let listed: Vec<PathBuf> = listed.iter().map(|link| resolved("docs/SUMMARY.md", link)).collect();
    let once: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "docs/SUMMARY.md lists a page twice");
    let pages = pages().into_iter().filter(|page| !APART.iter().any(|apart| page == Path::new(apart)));
    let pages: BTreeSet<PathBuf> = pages.collect();
    let unlisted: Vec<&PathBuf> = pages.difference(&once).collect();
    assert!(unlisted.is_empty(), "add these pages to docs/SUMMARY.md: {unlisted:?}");
    let missing: Vec<&PathBuf> = once.difference(&pages).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md lists what is no page: {missing:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 40, "{pages:?}");
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|page| (page, anchors(&read(page)))).collect();
    let (mut broken, mut count) = (Vec::new(), 0);
    for page in &pages {
        for link in links(&read(page)) {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { resolved(page, path) };
            let exists = repository().join(&target).exists();
            let known = anchor.is_empty() || anchors.get(&target).is_some_and(|known| known.contains(anchor));
            if !exists || !known {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(count > 200, "only {count} links were found");
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn links_and_anchors_are_found() {
    let text = "[a](b.md) ![c](d.png)\n`[no](no.md)`\n```sh\n[no](no.md)\n```\n| [e](#f) | [g](h.md#i) |\n";
    assert_eq!(links(text), ["b.md", "d.png", "#f", "h.md#i"]);
    let text = "# A `b.c/1` title, too\n## Again\n```\n# no\n```\n### Again\n##no\n#### A_b-c\n";
    let expected = ["a-bc1-title-too", "again", "again-1", "a_b-c"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert_eq!(resolved("docs/results/fuzz.md", "../../apps/x.rs"), Path::new("apps/x.rs"));
}

/// All pages of the repository, relative to it.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type().unwrap());
            let own = |name: &str| !name.starts_with('.') && !["target", "shared"].contains(&name);
            if kind.is_dir() && entry.file_name().to_str().is_some_and(own) {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The targets of all links and pictures.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        // What is between backquotes is code.
        let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(targets.map(|(target, _)| target.to_owned()));
    }
    links
}

/// The names of all headings in links. Both GitHub and mdbook make them so.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        let Some(title) = title.strip_prefix(' ').filter(|_| (1..=6).contains(&level)) else { continue };
        let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
        let name: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// The file that a link of a page leads to, relative to the repository.
fn resolved(page: impl AsRef<Path>, link: &str) -> PathBuf {
    let mut path = page.as_ref().parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{link} leads out of the repository"),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

fn read(page: impl AsRef<Path>) -> String {
    fs::read_to_string(repository().join(page)).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
