//! What the page of JSON calls types that are declared elsewhere than in reports of the program.

use warploom::sim::{Counters, KernelCounters};
use warploom::target::Device;
use warploom::tune::explain::Explanation;
use warploom::tune::records::ProblemId;
use warploom_results::explained::{Against, Ranges};
use warploom_results::golden::Checked;
use warploom_results::search;
use warploom_results::trials::TrialReport;

use super::Declared;

#[macro_use]
#[path = "../../../results/src/report/described.rs"]
mod described;

pub(crate) use described::{Described, Row, Rows, is_on_the_page};

called! {
    "integer": ProblemId;
    "not in JSON": Counters;
    "device": Device;
    "explanation": Explanation;
    "simulated kernel": KernelCounters;
    "compared schedule": Against;
    "ranges": Ranges;
    "search": search::Report;
    "verified app": Checked;
    "trial": TrialReport;
}

#[cfg(feature = "train")]
called! {
    "evaluation": warploom_training::evaluate::Evaluation;
    "left out": warploom_training::data::LeftOut;
    "score": warploom_training::score::Score;
}

#[test]
fn json_stays_what_it_is_and_shows_everything() {
    let name = "a\u{1b}\u{9b}\u{202e}\u{e0041}ö\n\"";
    let mut out = Vec::new();
    super::json(&mut out, "test/1", &serde_json::json!({ "name": name })).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !warploom::lang::is_invisible(c)), "{text}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["name"], name);
}
