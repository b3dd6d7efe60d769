//! The rules of schedules at many sizes, for trees that no text describes, and for very many
//! violations. The violations of single schedules are in the filetests of `codegen`, in `legality`.

use warploom_lang::*;
use warploom_plan::*;
use warploom_schedule::LoopKind;
use warploom_schedule::*;
use warploom_target::{Device, Features};

use crate::pipelines::at_size;

/// A pipeline at a size on a device.
struct Case {
    problem: Problem,
}

impl Case {
    fn new(outputs: impl IntoIterator<Item = Func>, sizes: &[(&str, &[i64])]) -> Case {
        Case { problem: at_size::problem("p", outputs, sizes) }
    }

    /// Parses the lines below the pipeline's name.
    fn read(&self, lines: &str) -> Schedule {
        let text = format!("p {lines}");
        Schedule::parse(&text, self.problem.pipeline()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn check(&self, schedule: &Schedule) -> Result<(), Vec<Violation>> {
        self.problem.check(schedule).map(drop)
    }

    fn accepts(&self, lines: &str) {
        if let Err(violations) = self.check(&self.read(lines)) {
            let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("{}", text.join("\n\n"));
        }
    }
}

/// A schedule that is legal if several threads share a dimension stays legal if the dimension has one
/// point, or is all in one thread.
#[test]
fn private_accumulators_at_any_size() {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("a", 2), Input::f32("b", 2));
    let r = rdom!(r: (0, 24));
    let sum = func("sum", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((r.x, y)) * b.at((x, r.x))));
    // `near` needs one more column of the sum than `out`.
    let near = func("near", (x, y), sum.at((x, y)) * 2.0);
    let out = func("out", (x, y), near.at((x, y)) + near.at((x + 1, y)) + sum.at((x, y)));
    for [width, height] in [[133, 65], [133, 1], [1, 133], [1, 1], [2, 3], [3, 4], [4, 5], [17, 5]] {
        let inputs = [("a", &[24, height][..]), ("b", &[width + 1, 24])];
        let case = Case::new([out.clone()], &[inputs[0], inputs[1], ("out", &[width, height])]);
        let threads = "threads x 8, y 4 serial x 4, y 2";
        case.accepts(&format!(
            "\n  kernel out block x 32, y 8\n    sum.0 {threads} private\n    over sum.1.r 8\n      a.stage flat shared\n      sum.1 {threads} private\n    near {threads} shared\n    out {threads}\n"
        ));
        let rows = "threads y 8, x 32";
        case.accepts(&format!(
            "\n  kernel out block x 31, y 8\n    sum.0 {rows} private\n    sum.1 {rows} private\n    near {rows} shared\n    out {rows}\n"
        ));
    }
    // A reader that splits one thread's points over two threads is rejected at small sizes too.
    let small = Case::new([out], &[("a", &[24, 5]), ("b", &[10, 24]), ("out", &[9, 5])]);
    let refused = small.check(&small.read(
        "\n  kernel out block x 32, y 8\n    sum.0 threads x 8 serial x 4, y all private\n    sum.1 threads x 8 serial x 4, y all private\n    near flat shared\n    out threads x 8 serial x 2, y all\n",
    ));
    assert!(
        refused.is_err_and(|found| found.iter().any(|found| matches!(found.rule, Rule::PrivateRead { .. })))
    );
}

#[test]
fn trees_that_no_text_describes() {
    let x = vars!(x);
    let case = Case::new([func("out", x, x + 1)], &[("out", &[64])]);
    let mut schedule = case.read("\n  kernel out block x 4 flat\n");
    let mut broken = |tile: Tile| {
        schedule.kernels_mut().next().unwrap().block[0] = tile;
        let violations = case.check(&schedule).unwrap_err();
        violations.iter().map(|violation| violation.rule.to_string()).collect::<Vec<_>>()
    };
    let nothing = broken(Tile { dim: LoopKind::Pure(0), size: Size::Of(0) });
    assert_eq!(nothing, ["`x` has size 0; write a positive number or `all`"]);
    let unknown = broken(Tile { dim: LoopKind::Reduction(0), size: Size::Of(2) });
    assert_eq!(unknown, ["`out` has no loop over `<variable 0>`; use one of its own variables"]);
}

#[test]
fn many_violations_are_found_in_time() {
    let x = vars!(x);
    let funcs: Vec<Func> = (0..5_000).map(|number| func(format!("f{number}"), x, x + number)).collect();
    let sizes: Vec<(String, [i64; 1])> = (0..5_000).map(|number| (format!("f{number}"), [64])).collect();
    let sizes: Vec<(&str, &[i64])> = sizes.iter().map(|(name, size)| (name.as_str(), &size[..])).collect();
    let case = Case::new(funcs, &sizes);
    let started = std::time::Instant::now();
    let violations = case.check(&case.read("\n  kernel f0  flat\n")).unwrap_err();
    assert_eq!(violations.len(), 4_999);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn an_index_that_holds_itself_often_is_looked_at_once() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let index = (0..100).fold(x.expr(), |index, _| (&index % 7) * (&index % 5));
    let case = Case::new([func("f", x, input.at(clamp(index, 0, 9)))], &[("input", &[10]), ("f", &[64])]);
    case.accepts("\n  kernel f  flat\n");
}

/// Rules ask what the device can do, not which generation it is.
#[test]
fn words_that_take_features_of_the_device() {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("a", 2), Input::f32("b", 2));
    let r = rdom!(r: (0, 24));
    let sum = func("sum", (x, y), 0.0).over(&r, |f| f.add((x, y), a.at((r.x, y)) * b.at((x, r.x))));
    let out = func("out", (x, y), sum.at((x, y)) + 1.0);
    let case = Case::new([out], &[("a", &[24, 64][..]), ("b", &[64, 24]), ("out", &[64, 64])]);
    let threads = "threads x 32, y 8";
    let schedule = case.read(&format!(
        "\n  kernel out block x 32, y 8\n    sum.0 {threads} private\n    over sum.1.r 8\n      a.stage flat shared async 2\n      sum.1 {threads} private\n    out {threads} lanes\n"
    ));
    let refusals = |device: &Device| {
        let violations = case.problem.on(device).unwrap().check(&schedule).unwrap_err();
        let missing = violations.iter().filter(|found| matches!(found.rule, Rule::NoFeature { .. }));
        missing.map(|found| found.rule.to_string()).collect::<Vec<_>>()
    };
    let mut device = case.problem.device().clone();
    assert!(refusals(&device).is_empty());
    let copies = "`a.stage` cannot be `async`: V100 has no asynchronous copies; remove it";
    assert_eq!(refusals(&Device::preset("v100").unwrap()), [copies]);
    device.features = Some(Features { async_copies: false, shuffle_lanes: 0, ..device.features() });
    assert_eq!(
        refusals(&device),
        ["`a.stage` cannot be `async`: H200 has no asynchronous copies; remove it"]
    );
}
