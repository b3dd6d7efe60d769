//! `join`: sibling reductions in one pass.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

/// Sums and extremes of each column, and Funcs that do not fit them.
fn siblings() -> Pipeline {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let columns = || rdom([(0, input.extent(0))]);
    let r = columns();
    let sum = func("sum", x, 0.5).over(&r, |f| f.add(x, input.at((r.x, x))));
    let r = rdom!(k: (0, input.extent(0)));
    let extremes = func("extremes", x, (9.0, 0)).over(&r, |f| {
        let term = input.at((r.x, x));
        f.set(x, (min(f.get(0, x), &term), select(term.lt(0.0), f.get(1, x) + 1, f.get(1, x))))
    });
    let r = columns();
    let spread = func("spread", x, 0.0).over(&r, |f| f.add(x, abs(input.at((r.x, x)) - sum.at(x))));
    let r = rdom([(0, 1)]);
    let short = func("short", x, 0.0).over(&r, |f| f.add(x, input.at((r.x, x))));
    let r = columns();
    let r = r.clone().filter(r.x.ne(1));
    let some = func("some", x, 0.0).over(&r, |f| f.add(x, input.at((r.x, x))));
    let r = columns();
    let first = func("first", x, 0.0).over(&r, |f| f.add(0, input.at((r.x, 0))));
    let holes = func("holes", x, undef(Type::F32)).over(&r, |f| f.set(x, input.at((r.x, x))));
    let values = (sum.at(x), extremes.get(0, x), extremes.get(1, x), spread.at(x));
    let rest = short.at(x) + some.at(x) + first.at(x) + holes.at(x);
    Pipeline::new("siblings", [func("out", x, values), func("rest", x, rest)]).unwrap()
}

#[test]
fn joint_passes_keep_the_bits() {
    for width in [1, 2, 9] {
        let input = noise(Type::F32, &[width, 5]);
        for lines in [
            &["join sum, extremes"][..],
            &["join extremes, sum"],
            &["join extremes, spread"],
            &["join extremes, sum", "split extremes.join.1.k by 4"],
        ] {
            same(&siblings(), lines, &[("input", &input)], &[5]);
        }
    }
}

#[test]
fn the_joint_func_has_all_values() {
    let (x, input) = (vars!(x), Input::f32("input", 2));
    let r = rdom([(0, 8)]);
    let marked = func("marked", x, 0.0).over(&r, |f| f.add(x, input.at((r.x, x)))).reassociate();
    let plain = func("plain", x, 1.0).over(&r, |f| f.mul(x, input.at((r.x, x))));
    let other = func("other", x, 2).over(&r, |f| f.max(x, r.x)).reassociate();
    let pipeline = Pipeline::new("marks", [marked, plain, other]).unwrap();
    assert_eq!(
        rewrite(&pipeline, &["join marked, other"]).to_string(),
        "\
pipeline marks
  input  input(d0, d1): f32
  marked.join(x) = (0.0, 2)
  marked.join(x) = (marked.join(x)[0] + input(rx, x), max(marked.join(x)[1], rx))  over rx in (0, 8)  in any order
  marked(x) = marked.join(x)[0]
  plain(x) = 1.0
  plain(x) = plain(x) * input(rx, x)  over rx in (0, 8)
  other(x) = marked.join(x)[1]
"
    );
    let joint = rewrite(&pipeline, &["join marked, plain"]).to_string();
    assert!(joint.contains("marked.join(x)[1] * input(rx, x))  over rx in (0, 8)\n"), "{joint}");
}

#[test]
fn funcs_that_do_not_fit_are_refused() {
    let pipeline = siblings();
    let apart = |line: &str| {
        let message = refusal(&pipeline, line);
        message.rsplit_once("cannot be joined, because ").map(|(_, why)| why.to_string()).unwrap_or(message)
    };
    assert_eq!(
        [
            "sum, spread",
            "spread, sum",
            "sum, sum",
            "sum, out",
            "sum, short",
            "sum, some",
            "sum, first",
            "holes, sum"
        ]
        .map(|names| apart(&format!("join {names}"))),
        [
            "one of them depends on the other",
            "one of them depends on the other",
            "one of them depends on the other",
            "one of them depends on the other",
            "their updates run over different domains",
            "their updates run over different domains",
            "their updates write at different points",
            "`join holes, sum` cannot be applied: `holes` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
        ]
    );
    let pipeline = rewrite(&pipeline, &["clone sum for out"]);
    assert_eq!(
        refusal(&rewrite(&pipeline, &["join sum, extremes"]), "join sum, short"),
        "`join sum, short` cannot be applied: `sum` and `short` cannot be joined, because each of them needs a start and exactly one update"
    );
}
