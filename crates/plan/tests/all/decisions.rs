//! The table of decisions: every word has an entry, and the page on schedules lists it.

use warploom_plan::decisions::{DECISIONS, Facts};
use warploom_schedule::{KernelNumbers, NestNumbers};

#[test]
fn every_word_is_a_decision() {
    let mut words: Vec<&str> = DECISIONS.iter().map(|decision| decision.facts().word).collect();
    words.sort_unstable();
    let mut known = [KernelNumbers::WORDS, NestNumbers::WORDS].concat();
    known.sort_unstable();
    assert_eq!(words, known);
    for facts in DECISIONS.iter().map(|decision| decision.facts()) {
        assert!(facts.excludes.iter().all(|word| known.contains(word) && *word != facts.word));
    }
}

#[test]
fn the_page_on_schedules_lists_every_decision() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedules.md");
    let page = std::fs::read_to_string(path).unwrap();
    for Facts { word, about, .. } in DECISIONS.iter().map(|decision| decision.facts()) {
        let first = format!("| {}", about.replace('|', "\\|"));
        let row = page.lines().find(|line| line.starts_with(&first));
        assert!(row.is_some_and(|row| row.contains(word)), "no row says of `{word}`: {about}");
    }
}
