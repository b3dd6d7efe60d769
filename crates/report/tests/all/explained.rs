//! A small page of an explanation, rendered as a whole.

use warploom_report::Fact;
use warploom_report::explained::{
    Comparison, Explained, Graph, GraphNode, KernelView, NestLine, Part, Role, SourceLine, Version,
};

/// Markup that may occur in a name and must not reach a page unescaped.
const HOSTILE: &str = "</pre></script><script>alert('1')</script>&<img src=x onerror=\"alert(1)\">";

fn source(text: &str, of: &[usize]) -> SourceLine {
    SourceLine { text: text.to_owned(), of: of.to_vec() }
}

fn kernel(name: &str) -> KernelView {
    let part = |name: &str, value: f64| Part { name: name.to_owned(), value, text: value.to_string() };
    KernelView {
        name: name.to_owned(),
        us: 12.0,
        time: "12.0 us".to_owned(),
        facts: vec![Fact::new("threads per block", "256")],
        bottleneck: "It is limited by DRAM: 8 MB.".to_owned(),
        limited_by: "DRAM".to_owned(),
        parts: vec![part("launch, us", 1.0), part("DRAM, us", 9.0)],
        memory: vec![part("reads", 4e6), part("writes", 4e6)],
        loops: vec!["4 blocks along x, 32 points each; the last has 4".to_owned()],
        lines: vec![
            NestLine { name: "gray".to_owned(), how: "flat".to_owned(), ..NestLine::default() },
            NestLine {
                depth: 1,
                name: "in".to_owned(),
                how: "inline".to_owned(),
                loops: vec!["for x: 3 times".to_owned()],
                remarks: vec!["computed 3 per point of gray".to_owned()],
            },
        ],
        source: vec![
            source("void gray() {", &[]),
            source("    for (;;)", &[0, 1]),
            source("        a < b && c;", &[0, 1]),
            source("}", &[]),
        ],
        differs: false,
    }
}

fn version(name: &str) -> Version {
    let node = |name: &str, role| GraphNode { name: name.to_owned(), role };
    Version {
        name: name.to_owned(),
        headline: "12.0 us predicted, 1 kernel".to_owned(),
        notes: vec!["most of the device is idle".to_owned()],
        graph: Graph {
            nodes: vec![node("input", Role::Input), node("in", Role::Inline), node("gray", Role::Kernel(1))],
            edges: vec![(0, 1), (1, 2)],
        },
        kernels: vec![kernel("gray")],
        schedule: "p\n  kernel gray\n".to_owned(),
        other_source: "// p\n".to_owned(),
    }
}

fn page(versions: Vec<Version>) -> Explained {
    let comparison = (versions.len() > 1).then(|| Comparison {
        sentence: "a is 2.0 us faster than b.".to_owned(),
        differences: vec!["gray: inlined into output, not in a kernel of its own".to_owned()],
        costs: vec!["launches: 1, not 2".to_owned()],
        changes: vec!["inline gray".to_owned()],
    });
    let facts = vec![Fact::new("device", "H200")];
    Explained { title: "p at W=64".to_owned(), facts, comparison, versions }
}

/// What lies between two tags.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = html.split_once(from).unwrap();
    rest.split_once(to).unwrap().0
}

#[test]
fn a_page_of_one_schedule() {
    let html = page(vec![version("default")]).to_html();
    insta::assert_snapshot!(between(&html, "<body>\n", "<script>"));
}

#[test]
fn lines_and_code_have_the_same_numbers() {
    let html = page(vec![version("default")]).to_html();
    assert!(html.contains("data-n=\"0\"") && html.contains("data-n=\"1\""));
    // Consecutive lines of one nest are one run.
    assert_eq!(html.matches("class=\"run\"").count(), 1);
    assert!(
        html.contains("data-n=\"0 1\">    for (;;)\n        a &lt; b &amp;&amp; c;</span>\n}\n</pre>"),
        "{html}"
    );
}

#[test]
fn two_schedules_are_beside_each_other() {
    let mut second = version("mine");
    second.kernels[0].differs = true;
    let html = page(vec![version("default"), second]).to_html();
    assert!(html.contains("<div class=\"versions several\">") && html.contains("a is 2.0 us faster than b."));
    assert_eq!(html.matches("<section class=\"version\"").count(), 2);
    assert_eq!(html.matches(">differs</span>").count(), 1);
    let ids: Vec<&str> = html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids, ["a", "a-kernel-1", "b", "b-kernel-1"]);
    for id in ids.iter().filter(|id| id.contains("kernel")) {
        assert!(html.contains(&format!("href=\"#{id}\"")), "{id}");
    }
}

#[test]
fn nothing_from_outside_is_markup() {
    let hostile = || HOSTILE.to_owned();
    let mut of = version(HOSTILE);
    of.headline = hostile();
    of.notes = vec![hostile()];
    of.schedule = hostile();
    of.other_source = hostile();
    of.graph.nodes.iter_mut().for_each(|node| node.name = hostile());
    let kernel = &mut of.kernels[0];
    kernel.name = hostile();
    kernel.time = hostile();
    kernel.bottleneck = hostile();
    kernel.limited_by = hostile();
    kernel.loops = vec![hostile()];
    kernel.facts = vec![Fact { name: hostile(), value: hostile() }];
    kernel.parts[0] = Part { name: hostile(), value: f64::NAN, text: hostile() };
    kernel.lines[0] = NestLine {
        depth: 0,
        name: hostile(),
        how: hostile(),
        loops: vec![hostile()],
        remarks: vec![hostile()],
    };
    kernel.source[0].text = hostile();
    let mut page = page(vec![of.clone(), of]);
    page.title = hostile();
    page.comparison = Some(Comparison {
        sentence: hostile(),
        differences: vec![hostile()],
        costs: vec![hostile()],
        changes: vec![hostile()],
    });
    let html = page.to_html();
    assert!(html.matches("&lt;script&gt;").count() > 30);
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    for markup in ["<img", "onerror=\"", "</pre>&", "alert('1')"] {
        assert!(!html.contains(markup), "{markup}");
    }
}

#[test]
fn a_page_needs_nothing_else_and_closes_every_tag() {
    let html = page(vec![version("default"), version("mine")]).to_html();
    for outside in ["http://", "https://", " src=", "url(", "@import", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let body = between(&html, "<body>\n", "<script>");
    let mut open: Vec<&str> = Vec::new();
    for tag in body.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        match tag {
            _ if tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name)),
            _ => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}
