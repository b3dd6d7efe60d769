//! A small page, rendered as a whole.

use warploom_report::chart::{Curve, CurvePoint, Line};
use warploom_report::{
    AppTime, Baseline, Column, Fact, Farm, Iteration, Kernel, Listing, Page, Run, RunnerUp, Section,
    Strategies, Suite, Table, Trial, TriedSubject, Tuned,
};

/// Markup that may occur in a file and must not reach a page unescaped.
const HOSTILE: &str = "</pre><script>alert('1')</script>&<img src=x onerror=\"alert(1)\">";

fn trial(number: i64, predicted: f64, measured: Option<f64>) -> Trial {
    let (status, message) = if measured.is_some() { ("ok", "") } else { ("spilled", "8 bytes") };
    Trial {
        number,
        status: status.to_owned(),
        message: message.to_owned(),
        predicted_us: Some(predicted),
        measured_us: measured,
        retimed_us: None,
    }
}

fn tuned() -> Tuned {
    let trials = vec![trial(1, 20.0, Some(30.0)), trial(2, 21.0, None), trial(3, 25.0, Some(24.0))];
    let best = Table {
        columns: vec![Column::numbers("trial"), Column::text("check")],
        rows: ["3", "1"].map(|number| vec![number.to_owned(), "ok".to_owned()]).to_vec(),
    };
    let runner_up = RunnerUp {
        number: 1,
        us: 30.0,
        decisions: Ok(vec!["remove output".to_owned(), "put 0\n  kernel output".to_owned()]),
        schedule: "blur\n  kernel output flat\n".to_owned(),
        best: "blur\n  kernel output\n".to_owned(),
    };
    let kernel = |name: &str, predicted_us| Kernel { name: name.to_owned(), predicted_us };
    let listing = Listing {
        title: "The winner".to_owned(),
        nest: Ok("kernel output\n  block x 32\n".to_owned()),
        schedule: "blur\n  kernel output\n".to_owned(),
    };
    Tuned {
        title: "blur at 64x48".to_owned(),
        facts: vec![Fact::new("device", "H200")],
        trials,
        winner: Some(3),
        iterations: vec![Iteration { name: "1".to_owned(), trials: 2 }],
        best,
        default_us: Some(48.0),
        predicted_speedup: Some(2.5),
        floor_us: Some(6.0),
        kernels: vec![kernel("rows", 15.0), kernel("output", 10.0)],
        runner_up: Some(runner_up),
        listing: Some(listing),
    }
}

fn suite() -> Suite {
    let app = |app: &str, us: f64, other: f64| AppTime {
        app: app.to_owned(),
        us: Some(us),
        floor_us: Some(5.0),
        baselines: vec![Baseline { name: "Halide".to_owned(), us: other }],
    };
    let run = |name: &str, apps| Run { name: name.to_owned(), apps, ..Run::default() };
    let runs = vec![
        run("one-shot", vec![app("harris", 20.0, 30.0), app("unsharp", 40.0, 20.0)]),
        run("top5", vec![app("harris", 15.0, 30.0), app("unsharp", 20.0, 20.0)]),
    ];
    Suite { title: "The suite".to_owned(), runs }
}

fn strategies() -> Strategies {
    let curve = |name: &str, places: &[(usize, f64, f64)]| {
        let place = |&(at, value, deviation): &(usize, f64, f64)| CurvePoint { at, value, deviation };
        Curve { name: name.to_owned(), places: places.iter().map(place).collect() }
    };
    let table = |rows: &[[&str; 2]]| Table {
        columns: vec![Column::text("strategy"), Column::numbers("after 25")],
        rows: rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect(),
    };
    Strategies {
        title: "Strategies on H200".to_owned(),
        facts: vec![Fact::new("command", "warploom suite")],
        trials: 40,
        caption: "Mean ± deviation.".to_owned(),
        subjects: vec![TriedSubject {
            name: "blur at 64x48".to_owned(),
            curves: vec![
                curve("random", &[(2, 40.0, 8.0), (7, 24.0, 5.0), (30, 20.0, 1.5)]),
                curve("opevo", &[(1, 30.0, 0.0), (12, 16.0, 2.0)]),
            ],
            table: table(&[["random", "24.00 ± 5.00"], ["opevo", "16.00 ± 2.00"]]),
            optimum: None,
            notes: Vec::new(),
        }],
        about_speeds: "Speed relative to `random`.".to_owned(),
        speeds: table(&[["random", "1.00x"], ["opevo", "1.50x"]]),
    }
}

fn farm() -> Farm {
    let line = |name: &str, rate| Line { name: name.to_owned(), points: vec![(0.5, rate), (1.5, rate)] };
    let place = |at, value| CurvePoint { at, value, deviation: 0.0 };
    Farm {
        title: "The farm at farm.json".to_owned(),
        headline: "120 trials of 1 problem by 2 workers in 2.0 hours".to_owned(),
        facts: vec![Fact::new("server", "farm.json")],
        unit: "hours".to_owned(),
        rates: vec![line("all workers", 12.0), line("worker 1 on gpu1", 8.0)],
        workers: Table {
            columns: vec![Column::text("host"), Column::numbers("spilled")],
            rows: vec![vec!["gpu1".to_owned(), "3".to_owned()]],
        },
        seconds: 7200,
        bests: vec![Curve { name: "blur".to_owned(), places: vec![place(1, 2.5), place(900, 1.0)] }],
    }
}

fn page(sections: Vec<Section>) -> Page {
    Page {
        title: "Warploom on H200".to_owned(),
        facts: vec![Fact::new("measured", "2026-01-31")],
        sources: Table { columns: vec![Column::text("file")], rows: vec![vec!["tuning.db".to_owned()]] },
        sections,
        live: false,
    }
}

/// The page without its style sheets.
fn without_style(html: &str) -> String {
    let (before, rest) = html.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    format!("{before}<style></style>{after}")
}

#[test]
fn a_page_of_both_kinds() {
    let html = page(vec![Section::Suite(suite()), Section::Tuned(Box::new(tuned()))]).to_html();
    insta::assert_snapshot!(without_style(&html));
}

#[test]
fn a_page_of_strategies() {
    let html = page(vec![Section::Strategies(Box::new(strategies()))]).to_html();
    insta::assert_snapshot!(without_style(&html));
}

#[test]
fn a_page_of_a_farm() {
    let html = page(vec![Section::Farm(Box::new(farm()))]).to_html();
    insta::assert_snapshot!(without_style(&html));
}

#[test]
fn a_page_of_five_trials() {
    let mut tuned = tuned();
    tuned.trials = [30.0, 30.4, 29.9, 30.1, 30.2]
        .iter()
        .zip(1..)
        .map(|(time, number)| trial(number, 25.0, Some(*time)))
        .collect();
    tuned.best.rows = (1..=5).map(|number| vec![number.to_string(), "ok".to_owned()]).collect();
    let html = page(vec![Section::Tuned(Box::new(tuned))]).to_html();
    insta::assert_snapshot!(without_style(&html));
}

#[test]
fn a_problem_without_trials_is_on_the_page() {
    let none = Tuned { title: "blur at 9x9".to_owned(), ..Tuned::default() };
    let html = page(vec![Section::Tuned(Box::new(none)), Section::Tuned(Box::new(tuned()))]).to_html();
    assert!(html.contains("<h2>blur at 9x9</h2>\n<p class=\"headline\">no trials yet</p>"), "{html}");
    assert!(html.contains("Nothing has been measured for this problem yet."));
    assert!(html.contains("<a href=\"#section-1\">blur at 9x9</a></td><td colspan=\"5\">no trials yet</td>"));
}

#[test]
fn a_live_page_loads_itself_again() {
    let mut page = page(vec![Section::Tuned(Box::new(tuned()))]);
    assert!(!page.to_html().contains("location.reload"));
    page.live = true;
    let html = page.to_html();
    assert!(html.contains("location.reload()") && html.contains("script-src 'unsafe-inline'"));
    assert_eq!(html.matches("<script").count(), 1);
}

#[test]
fn nothing_from_outside_is_markup() {
    let hostile = || HOSTILE.to_owned();
    let mut tuned = tuned();
    tuned.title = hostile();
    tuned.facts = vec![Fact { name: hostile(), value: hostile() }];
    tuned.trials[1].status = hostile();
    tuned.trials[1].message = hostile();
    tuned.iterations[0].name = hostile();
    tuned.best.columns[0].title = hostile();
    tuned.best.rows[0][0] = hostile();
    tuned.listing = Some(Listing { title: hostile(), nest: Err(hostile()), schedule: hostile() });
    tuned.kernels[0].name = hostile();
    let runner_up = tuned.runner_up.as_mut().unwrap();
    runner_up.decisions = Ok(vec![hostile()]);
    (runner_up.schedule, runner_up.best) = (hostile(), format!("{HOSTILE}\n{HOSTILE}"));
    let mut suite = suite();
    suite.title = hostile();
    for run in &mut suite.runs {
        run.name = hostile();
        run.notes = vec![hostile()];
        run.apps[0].app = hostile();
        run.apps[0].baselines[0].name = hostile();
        run.listings = vec![Listing { title: hostile(), nest: Ok(hostile()), schedule: hostile() }; 2];
    }
    let mut strategies = strategies();
    (strategies.title, strategies.caption, strategies.about_speeds) = (hostile(), hostile(), hostile());
    strategies.subjects[0].name = hostile();
    strategies.subjects[0].curves[0].name = hostile();
    let mut farm = farm();
    (farm.title, farm.headline, farm.unit) = (hostile(), hostile(), hostile());
    (farm.rates[0].name, farm.bests[0].name, farm.workers.rows[0][0]) = (hostile(), hostile(), hostile());
    let sections = vec![
        Section::Suite(suite),
        Section::Tuned(Box::new(tuned)),
        Section::Strategies(Box::new(strategies)),
        Section::Farm(Box::new(farm)),
    ];
    let mut page = page(sections);
    page.title = hostile();
    page.facts = vec![Fact { name: hostile(), value: hostile() }];
    page.sources.rows[0][0] = hostile();
    let html = page.to_html();
    assert!(html.matches("&lt;script&gt;").count() > 20);
    for markup in ["<script", "<img", "onerror=\"", "</pre>&", "alert('1')"] {
        assert!(!html.contains(markup), "{markup}");
    }
}

#[test]
fn a_page_needs_nothing_else() {
    let html = page(vec![Section::Suite(suite()), Section::Tuned(Box::new(tuned()))]).to_html();
    for outside in ["http://", "https://", " src=", "url(", "@import", "<link", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
}

#[test]
fn every_tag_is_closed() {
    let sections = vec![
        Section::Suite(suite()),
        Section::Tuned(Box::new(tuned())),
        Section::Strategies(Box::new(strategies())),
        Section::Farm(Box::new(farm())),
    ];
    let html = page(sections).to_html();
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        match tag {
            "!doctype html" => {}
            _ if name == "meta" || tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name)),
            _ => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn every_link_leads_somewhere() {
    let html = page(vec![Section::Suite(suite()), Section::Tuned(Box::new(tuned()))]).to_html();
    let links: Vec<&str> =
        html.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(links.iter().any(|link| link.starts_with("trial-")), "{links:?}");
    for link in links {
        assert_eq!(html.matches(&format!("id=\"{link}\"")).count(), 1, "{link}");
    }
}
