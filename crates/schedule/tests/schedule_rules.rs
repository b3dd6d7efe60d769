//! The rules of schedules: each is broken by a schedule that breaks no other, and reported at its
//! place.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use warploom_lang::*;
use warploom_schedule::LoopKind;
use warploom_schedule::schedule::*;
use warploom_target::Device;

/// A pipeline at a size on a device.
struct Case {
    problem: Problem,
}

impl Case {
    fn new(outputs: impl IntoIterator<Item = Func>, sizes: &[(&str, &[i64])]) -> Case {
        let pipeline = Pipeline::new("p", outputs).unwrap();
        let mut request = Realisation::new(&pipeline);
        for (name, extents) in sizes {
            let region = Region::of_extents(extents);
            request = match pipeline.input_named(name) {
                Some(_) => request.input(name, region),
                None => request.output(name, region),
            };
        }
        let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap());
        Case { problem: problem.unwrap_or_else(|error| panic!("{error}")) }
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

    /// The only violation, as text.
    fn one(&self, schedule: &Schedule) -> String {
        match self.check(schedule) {
            Ok(()) => panic!("this is legal:\n{}", schedule.to_text(self.problem.pipeline())),
            Err(violations) => {
                let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
                assert_eq!(violations.len(), 1, "{}", text.join("\n\n"));
                text.join("\n\n")
            }
        }
    }

    fn all(&self, cases: &[&str]) -> String {
        cases.iter().map(|lines| self.one(&self.read(lines))).collect::<Vec<_>>().join("\n\n")
    }
}

/// A chain of stencils, where the first is read twice.
fn stencils() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge();
    let gray = func("gray", (x, y), edge.at((x, y)) * 0.5);
    let bx = func("bx", (x, y), gray.at((x - 1, y)) + gray.at((x + 1, y)));
    let by = func("by", (x, y), bx.at((x, y - 1)) + bx.at((x, y + 1)));
    let out = func("out", (x, y), by.at((x, y)) + gray.at((x, y)));
    Case::new([out], &[("input", &[400, 300]), ("out", &[400, 300])])
}

/// A scaled matrix product.
fn product() -> Case {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let gain = func("gain", (x, y), (x + y).f32());
    let r = rdom!(r: (0, 64));
    let prod = func("prod", (x, y), 0.0)
        .over(&r, |f| f.add((x, y), gain.at((x, y)) * a.at((x, r.x)) * b.at((r.x, y))));
    let out = func("out", (x, y), prod.at((x, y)) + gain.at((x, y)));
    Case::new([out], &[("A", &[64, 64]), ("B", &[64, 64]), ("out", &[64, 64])])
}

/// Running sums down the columns, with an undefined initial value.
fn scans() -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom!(ry: (1, 63));
    let scan = func("scan", (x, y), undef(Type::F32))
        .update(|f| f.set((x, 0), input.at((x, 0))))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x - 1)) + input.at((x, r.x))));
    let out = func("out", (x, y), scan.at((x, y)) * 2.0);
    Case::new([out], &[("input", &[64, 64]), ("out", &[64, 64])])
}

/// Maxima over twice as many rows per step, as far as needed.
fn doubling() -> Case {
    let (x, y, t) = vars!(x, y, t);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge();
    let r = rdom!(ry: (0, 64), rt: (1, 3));
    let log = func("log", (x, y, t), edge.at((x, y))).over(&r, |f| {
        let lower = f.at((x, r.x + clamp(1 << (r.y - 1), 0, 4), r.y - 1));
        f.set((x, r.x, r.y), max(f.at((x, r.x, r.y - 1)), lower))
    });
    let out = func("out", (x, y), log.at((x, y, 3)));
    Case::new([out], &[("input", &[64, 64]), ("out", &[64, 64])])
}

const GOOD: &str = "inline input.repeat_edge, by\n  kernel out block x 32, y 8\n    gray flat shared\n    bx flat shared\n    out threads x 32, y 8\n";

#[test]
fn legal_schedules_are_accepted() {
    let stencils = stencils();
    stencils.accepts(GOOD);
    stencils.accepts("inline input.repeat_edge, gray, bx, by\n  kernel out threads x 32\n");
    stencils.accepts("inline input.repeat_edge\n  kernel gray flat\n  kernel bx block x 8 flat\n  kernel out block x 32, y 8\n    by flat shared\n    out flat\n");
    stencils.accepts("inline input.repeat_edge, gray, by\n  kernel out block x 32, y 8\n    input.stage flat shared\n    bx threads x 34, y 2 serial y 5 shared\n    out threads x 32, y 2 serial y 4 unroll\n");
    stencils.accepts("inline input.repeat_edge, gray, by\n  kernel out block x 32, y 8\n    out threads x 32, y 2 serial y 4 unroll\n      bx registers\n");
    // A private Func that is only read at its own point.
    stencils.accepts("inline input.repeat_edge, gray, bx\n  kernel out block x 32, y 8\n    by threads x 32, y 4 serial y 2 private\n    out threads x 32, y 4 serial y 2 unroll\n");

    let product = product();
    product.accepts(
        "inline gain\n  kernel prod.0 flat\n  kernel prod.1 block x 8 threads x 8\n  kernel out flat\n",
    );
    product.accepts("inline gain\n  kernel prod.0 flat\n  around prod.1.r 8\n    kernel prod.1 block x 8 threads x 8\n  kernel out flat\n");
    product.accepts("\n  kernel prod.0 flat\n  kernel gain flat\n  kernel prod.1 block x 8, y 8\n    over prod.1.r 8\n      A.stage flat shared\n      prod.1 threads x 8, y 8 serial r all\n  kernel out flat\n");
    product
        .accepts("\n  kernel out block x 8, y 8\n    gain flat shared\n    out flat\n      prod registers\n");

    let scans = scans();
    scans.accepts("\n  kernel scan.1 flat\n  kernel scan.2 block x 8 threads x 8\n  kernel out flat\n");
    scans.accepts("\n  kernel out block x 8\n    scan.1 threads x 8 private\n    scan.2 threads x 8 private\n    out threads x 8 serial y all\n");
    scans.accepts("\n  kernel out block x 8\n    scan.1 flat shared\n    over scan.2.ry 8\n      input.stage flat shared\n      scan.2 threads x 8 shared\n    out threads x 8, y 8\n");
}

#[test]
fn independent_reductions_are_shared_out() {
    let doubling = doubling();
    let blocks = "inline input.repeat_edge\n  kernel log.0 flat\n  around log.1.rt 1\n    kernel log.1 block x 8, ry 4 threads x 8, ry 4\n  kernel out flat\n";
    doubling.accepts(blocks);
    doubling.accepts("inline input.repeat_edge\n  kernel log.0 flat\n  kernel log.1 block x 8\n    over log.1.rt 1\n      log.1 threads x 8, ry 8\n  kernel out flat\n");
    insta::assert_snapshot!(doubling.all(&[
        // Different steps run together.
        &blocks.replace("rt 1", "rt 2").replace("threads x 8, ry 4", "threads x 8"),
        "inline input.repeat_edge\n  kernel log.0 flat\n  kernel log.1 block x 8, ry 4\n    over log.1.rt 1\n      log.1 threads x 8\n  kernel out flat\n",
        "inline input.repeat_edge\n  kernel log.0 flat\n  kernel log.1 block x 8 threads x 8, ry 8\n  kernel out flat\n",
    ]));
}

#[test]
fn places() {
    let stencils = stencils();
    let mut found = vec![stencils.all(&[
        "inline input.repeat_edge, by\n  kernel out block x 32, y 8\n    gray flat shared\n    out flat\n",
        "inline input.repeat_edge, by\n  kernel out block x 32, y 8\n    gray flat shared\n    bx flat shared\n    bx flat shared\n    out flat\n",
        "inline input.repeat_edge, by, bx\n  kernel out block x 32, y 8\n    gray flat shared\n    bx flat shared\n    out flat\n",
        "inline input.repeat_edge, by, bx\n  kernel out block x 32, y 8\n    gray flat shared\n    out flat\n      by registers\n",
        "inline input.repeat_edge, by, bx\n  kernel out block x 32, y 8\n    gray flat shared\n    out flat\n      gray registers\n",
        "inline input.repeat_edge, gray, bx, by, out\n",
        "inline input.repeat_edge, by, bx\n  kernel out block x 32, y 8\n    gray flat shared\n",
        "inline input.repeat_edge, by, bx\n  kernel out block x 32, y 8\n    gray flat shared\n    out flat shared\n",
        "inline input.repeat_edge, by, bx\n  kernel out block x 32, y 8\n    gray flat\n    out flat\n",
        "inline input.repeat_edge, gray, by, bx\n  kernel out block x 32, y 8\n    input.stage threads d0 32 private\n    out flat\n",
        "inline input.repeat_edge, gray, by, bx\n  kernel out block x 32, y 8\n    input.stage flat shared\n    input.stage flat shared\n    out flat\n",
        "inline input.repeat_edge, by\n  kernel out block x 32, y 8\n    gray flat shared\n    bx flat shared\n    input.stage flat shared\n    out flat\n",
        "inline input.repeat_edge, by\n  kernel out block x 32, y 8\n    input.stage flat shared\n      bx registers\n    gray flat shared\n    out flat\n",
    ])];
    found.push(product().all(&[
        "inline gain, prod\n  kernel out flat\n",
        "inline gain\n  kernel prod.1 flat\n  kernel out flat\n",
    ]));
    found.push(
        scans().all(&[
            "\n  kernel scan.0 flat\n  kernel scan.1 flat\n  kernel scan.2 flat\n  kernel out flat\n",
        ]),
    );

    let (x, y) = vars!(x, y);
    let first = func("first", (x, y), x + y);
    let second = func("second", (x, y), first.at((x, y)) * 2);
    let two = Case::new([first, second], &[("first", &[64, 64]), ("second", &[64, 64])]);
    found.push(two.all(&[
        "\n  kernel second block x 8\n    first flat shared\n    second flat\n",
        "\n  kernel second block x 8\n    second flat\n      first registers\n",
    ]));
    insta::assert_snapshot!(found.join("\n\n"));
}

#[test]
fn order() {
    let stencils = stencils();
    let mut found = vec![stencils.all(&[
        "inline input.repeat_edge, gray\n  kernel out block x 32, y 8\n    by flat shared\n    bx flat shared\n    out flat\n",
        "inline input.repeat_edge, bx, by\n  kernel out flat\n  kernel gray flat\n",
        "inline input.repeat_edge, bx\n  kernel by block x 32, y 8\n    gray flat shared\n    by flat\n  kernel out flat\n",
        "inline input.repeat_edge, bx\n  kernel out block x 32, y 8\n    by flat shared\n      gray registers\n    out flat\n",
        "inline input.repeat_edge, gray\n  kernel out block x 32, y 8\n    out flat\n      by registers\n      bx registers\n",
    ])];
    let start = "\n  kernel out block x 8, y 8\n    prod.0 threads x 8, y 8 private\n";
    found.push(product().all(&[
        &format!("{start}    over prod.1.r 8\n      gain threads x 8, y 8 shared\n      prod.1 threads x 8, y 8 private\n    out threads x 8, y 8\n"),
        &format!("inline gain{start}    over prod.1.r 8\n      prod.1 threads x 8, y 8 private\n      out threads x 8, y 8\n"),
        "inline gain\n  kernel prod.1 flat\n  kernel prod.0 flat\n  kernel out flat\n",
        "inline gain\n  kernel prod.0 flat\n  kernel out block x 8, y 8\n    prod.1 flat shared\n    out flat\n",
        "inline gain\n  kernel out block x 8, y 8\n    prod.0 flat shared\n    prod.1 threads x 8, y 8 private\n    out threads x 8, y 8\n",
        "inline gain\n  kernel out block x 8, y 8\n    over prod.1.r 8\n      prod.0 flat shared\n      prod.1 flat shared\n    out flat\n",
    ]));
    found.push(scans().all(&["\n  kernel out block x 8\n    out flat\n      scan registers\n"]));
    insta::assert_snapshot!(found.join("\n\n"));
}

#[test]
fn loops() {
    let product = product();
    let mut found = vec![product.all(&[
        "inline gain\n  kernel prod.0 block x 8, y 4, x 4 flat\n  kernel prod.1 flat\n  kernel out flat\n",
        "inline gain\n  kernel prod.0 flat\n  around prod.1.r 8\n    kernel prod.1\n      over prod.1.r 4\n        prod.1 flat\n  kernel out flat\n",
        "inline gain\n  kernel prod.0 flat\n  kernel prod.1 flat\n  kernel out\n    over prod.1.r 4\n      out flat\n",
    ])];
    found.push(scans().all(&[
        "\n  kernel scan.1 flat\n  kernel scan.2 block x 8, ry 8 threads x 8\n  kernel out flat\n",
        "\n  kernel scan.1 flat\n  kernel scan.2 block x 8 threads x 8, ry 8\n  kernel out flat\n",
    ]));

    // The digits of a number, where order matters.
    let x = vars!(x);
    let input = Input::f32("input", 2);
    let r = rdom!(r: (0, 8), s: (0, 8));
    let number = func("number", x, 0.0).over(&r, |f| f.set(x, f.at(x) * 10.0 + input.at((r.x, r.y))));
    let digits = Case::new([number], &[("input", &[8, 8]), ("number", &[4])]);
    digits.accepts("\n  kernel number.0 flat\n  kernel number.1 threads x 4 serial s 2, r all\n");
    digits.accepts("\n  kernel number.0 flat\n  kernel number.1\n    over number.1.s 2\n      number.1 serial s all, r all\n");
    found.push(digits.all(&[
        "\n  kernel number.0 flat\n  kernel number.1 serial r all, s all\n",
        "\n  kernel number.0 flat\n  kernel number.1 serial s 2, r 4\n",
        "\n  kernel number.0 flat\n  kernel number.1\n    over number.1.r 2\n      number.1 flat\n",
        "\n  kernel number.0 flat\n  around number.1.r 1, number.1.s 1\n    kernel number.1 flat\n",
    ]));

    // Trees that no text describes.
    let mut schedule = product
        .read("inline gain\n  kernel prod.0 block x 4 flat\n  kernel prod.1 flat\n  kernel out flat\n");
    let kernel = schedule.kernels_mut().next().unwrap();
    kernel.block[0].size = Size::Of(0);
    found.push(product.one(&schedule));
    let kernel = schedule.kernels_mut().next().unwrap();
    kernel.block[0] = Tile { dim: LoopKind::Reduction(0), size: Size::Of(2) };
    found.push(product.one(&schedule));
    insta::assert_snapshot!(found.join("\n\n"));
}

#[test]
fn reduction_loops_whose_order_does_not_matter_are_exchanged() {
    // Every pair (r, s) writes its own element.
    let (x, y) = vars!(x, y);
    let r = rdom!(r: (0, 8), s: (0, 8));
    let f = func("f", (x, y), 0).over(&r, |f| f.set((r.x, r.y), f.at((r.x, r.y)) * 2 + 1));
    let case = Case::new([f], &[("f", &[8, 8])]);
    case.accepts("\n  kernel f.0 flat\n  kernel f.1 serial r all, s all\n");
    case.accepts("\n  kernel f.0 flat\n  kernel f.1 block r 2 threads s 4\n");
}

#[test]
fn faster_variables_stay_inside_those_that_run_side_by_side() {
    // For a fixed r, no two values of s conflict, but (r 1, s 0) and (r 0, s 1) write the same element
    // in this order.
    let (x, y) = vars!(x, y);
    let r = rdom!(r: (0, 4), s: (0, 4));
    let [a, b] = r.vars();
    let f = func("f", (x, y), 0).over(&r, |f| f.set((x, a + b), f.at((x, a + b)) * 2 + a));
    let case = Case::new([f], &[("f", &[8, 8])]);
    case.accepts(
        "\n  kernel f.0 flat\n  kernel f.1 block x 4\n    over f.1.s 1\n      f.1 threads x 4, r 4\n",
    );
    insta::assert_snapshot!(case.all(&[
        "\n  kernel f.0 flat\n  kernel f.1 block x 4\n    over f.1.r 1\n      f.1 threads x 4, s 4\n",
        "\n  kernel f.0 flat\n  around f.1.r 1\n    kernel f.1 block x 4, s 1 threads x 4\n",
    ]));
}

#[test]
fn storage() {
    let stencils = stencils();
    let head = "inline input.repeat_edge, gray, bx\n  kernel out block x 32, y 8\n";
    let mut found = vec![stencils.all(&[
        &format!("{head}    by flat private\n    out flat\n"),
        &format!("{head}    by threads x 32, y 4 serial y 2 private\n    out flat\n"),
        &format!("{head}    by threads x 32, y 4 serial y 2 private\n    out threads x 32, y 8\n"),
        &format!("{head}    by threads y 4, x 32 serial y 2 private\n    out threads x 32, y 4 serial y 2\n"),
        // Neighbours belong to other threads.
        "inline input.repeat_edge, gray, by\n  kernel out block x 32, y 8\n    bx threads x 32, y 8 private\n    out threads x 32, y 8\n",
    ])];
    found.push(product().all(&[
        "inline gain\n  kernel out block x 8, y 8\n    prod.0 threads x 8 private\n    prod.1 threads x 8, y 8 private\n    out threads x 8, y 8\n",
    ]));

    // A large lookup table that is read anywhere, and a small one.
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let table = func("table", x, x.f32() * 2.0);
    let lookup = |levels: i32| {
        let out = func("out", x, table.at(clamp(input.at(x).i32(), 0, levels - 1)));
        Case::new([out], &[("input", &[5000]), ("out", &[5000])])
    };
    lookup(256).accepts("\n  kernel out block x 64\n    table flat shared\n    out flat\n");
    found.push(lookup(5000).all(&["\n  kernel out block x 64\n    table flat shared\n    out flat\n"]));
    // Two readers that move differently.
    let out = func("out", x, table.at(x) + table.at(2 * x));
    let skewed = Case::new([out], &[("out", &[5000])]);
    found.push(skewed.all(&["\n  kernel out block x 64\n    table flat shared\n    out flat\n"]));
    insta::assert_snapshot!(found.join("\n\n"));
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

/// A scatter writes to points of all threads, even if it has few threads itself.
#[test]
fn private_scatters() {
    let x = vars!(x);
    let a = Input::f32("a", 1);
    let r = rdom!(r: (0, 5));
    let count = func("count", x, 0).over(&r, |f| f.add(clamp(a.at(r.x).cast(Type::I32), 0, 9), 1));
    let case = Case::new([func("out", x, count.at(x))], &[("a", &[5]), ("out", &[10])]);
    let refused = case.check(&case.read(
        "\n  kernel out block x 10\n    count.0 threads x 2 private\n    count.1 threads private\n    out threads x 2\n",
    ));
    assert!(
        refused.is_err_and(|found| found.iter().any(|found| matches!(found.rule, Rule::PrivateRead { .. })))
    );
}

/// Grids that are too long for their own axis are counted along x.
#[test]
fn long_grids() {
    let (x, y) = vars!(x, y);
    let case = Case::new([func("out", (x, y), x + y)], &[("out", &[3, 200_000])]);
    case.accepts("\n  kernel out block x 1, y 1 threads\n");
}

#[test]
fn limits() {
    let x = vars!(x);
    let table = func("table", x, x.f32() * 2.0);
    let out = func("out", x, table.at(x) + table.at(x + 300));
    let wide = Case::new([out], &[("out", &[1 << 22])]);
    let private = func("out", x, table.at(x));
    let long = Case::new([private], &[("out", &[1 << 22])]);
    let (x, y) = vars!(x, y);
    let flat = Case::new([func("out", (x, y), x + y)], &[("out", &[100_000, 100_000])]);
    insta::assert_snapshot!(
        [
            wide.all(&[
                "\n  kernel out block x 64\n    out threads x 64\n      table registers\n",
                "\n  kernel out block x 65536\n    table flat shared\n    out threads x 64\n",
                "inline table\n  kernel out block x 4096 threads x 2048\n",
            ]),
            long.all(&["\n  kernel out\n    table threads x 2 private\n    out threads x 2\n"]),
            flat.all(&["\n  kernel out block x 1, y 1 threads\n"]),
        ]
        .join("\n\n")
    );
}

#[test]
fn all_violations_are_reported_in_the_order_of_the_text() {
    let case = stencils();
    let text = "inline out\n  kernel by block x 32, x 32\n    bx flat\n    gray flat shared\n    by flat\n";
    let violations = case.check(&case.read(text)).unwrap_err();
    let rules: Vec<String> = violations.iter().map(|violation| violation.rule.to_string()).collect();
    assert!(violations.len() >= 5, "{rules:#?}");
    assert!(violations.is_sorted_by_key(|violation| violation.spot.line), "{rules:#?}");
    assert_eq!(violations[0].path, Path::ROOT);
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
