//! `tabulate`: Funcs of constants as tables.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

/// An image weighted by `weights`, which is read at the 9 values of a domain.
fn weighted(weights: &Func) -> Pipeline {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let r = rdom([(-4, 9)]);
    let edge = input.repeat_edge();
    let out = func("out", x, 0.0).over(&r, |f| f.add(x, edge.at(x + r.x) * weights.at(r.x)));
    Pipeline::new("weighted", [out]).unwrap()
}

fn check(pipeline: &Pipeline, lines: &[&str]) {
    for width in [1, 7, 40] {
        same(pipeline, lines, &[("input", &noise(Type::F32, &[width]))], &[width]);
    }
    let tabulated = rewrite(pipeline, lines);
    let mut names = tabulated.funcs().values().map(|func| func.name.as_str());
    assert!(names.all(|name| ["out", "input.repeat_edge"].contains(&name)), "{tabulated}");
}

#[test]
fn elementary_functions_keep_their_bits() {
    let d = vars!(d);
    let wave = sin(d.f32() * 0.7) + log(abs(d.f32()) + 1.5) / exp(d.f32() * -0.3) + pow(1.7, d.f32());
    check(&weighted(&func("weights", d, wave)), &["tabulate weights"]);
}

#[test]
fn updates_run_in_order() {
    let d = vars!(d);
    let (r, odd) = (rdom([(-3, 11)]), rdom([(-4, 20)]));
    let odd = odd.clone().filter((odd.x & 1).eq(1));
    let weights = func("weights", d, d.f32())
        .over(&r, |f| f.set(r.x, f.at(r.x - 1) * 0.3 + f.at(r.x) * f.at(r.x + 1)))
        .over(&odd, |f| f.add(odd.x, 0.1))
        .update(|f| f.set(d, f.at(d) * 1.5));
    check(&weighted(&weights), &["tabulate weights"]);
}

#[test]
fn tables_of_tables() {
    let (d, e) = vars!(d, e);
    let r = rdom([(0, 5)]);
    let counts = func("counts", e, sum(&r, select((e * e + r.x * r.x).lt(20), 1, 0)));
    let pair = func("pair", d, (counts.at(d) * 2, counts.at(-d).f32() / 3.0));
    let weights = func("weights", (e, d), pair.get(0, d).f32() * pair.get(1, e));
    let first = func("weights1", d, weights.at((2, d)));
    let lines =
        ["tabulate counts.sum0", "tabulate counts", "tabulate pair", "tabulate weights", "tabulate weights1"];
    check(&weighted(&first), &lines);
    assert_eq!(
        refusal(&weighted(&first), "tabulate pair"),
        "`tabulate pair` cannot be applied: `pair` cannot be a table: it reads `counts`, which is no table"
    );
}

#[test]
fn one_value_becomes_a_constant() {
    let (x, d, input) = (vars!(x), vars!(d), Input::f32("input", 1));
    let r = rdom([(0, 12)]);
    let total = func("total", (), sum(&r, exp(r.x.f32() * -0.5)));
    let third = func("third", d, d.f32() / 7.0);
    let out = func("out", x, input.at(x) / total.at(()) + third.at(3));
    let pipeline = Pipeline::new("normalised", [out]).unwrap();
    check(&pipeline, &["tabulate total.sum0", "tabulate total", "tabulate third"]);
    let tabulated = rewrite(&pipeline, &["tabulate total.sum0", "tabulate total", "tabulate third"]);
    assert_eq!(tabulated.tables().len(), 0, "{tabulated}");
}

#[test]
fn values_bound_indices() {
    let (x, d, input) = (vars!(x), vars!(d), Input::f32("input", 1));
    let r = rdom([(0, 6)]);
    let reach = func("reach", d, d * d % 7);
    let out = func("out", x, sum(&r, input.at(x + reach.at(r.x))));
    let pipeline = Pipeline::new("reach", [out]).unwrap();
    let need = |pipeline: &Pipeline| {
        let request = Realisation::new(pipeline)
            .input("input", Region::of_extents(&[20]))
            .output("out", Region::of_extents(&[8]));
        infer(pipeline, &request).unwrap().inputs.values().next().unwrap().to_string()
    };
    // Squares are 0, 1, 2 or 4 modulo 7.
    assert_eq!([need(&pipeline), need(&rewrite(&pipeline, &["tabulate reach"]))], ["[0, 14)", "[0, 12)"]);
}

#[test]
fn what_is_not_constant_is_refused() {
    let (x, d, input) = (vars!(x), vars!(d), Input::f32("input", 1));
    let (p, r, long) = (Param::new("p", Type::F32), rdom([(0, 4)]), rdom([(0, 5000)]));
    let reason = |weights: Func, index: Expr| {
        let out = func("out", x, sum(&r, input.at(x) * weights.at(index)));
        let message = refusal(&Pipeline::new("p", [out]).unwrap(), "tabulate weights");
        message.rsplit_once("cannot be a table: ").map(|(_, why)| why.to_string()).unwrap_or(message)
    };
    let plain = || func("weights", d, d.f32());
    let undefined = func("weights", d, undef(Type::F32)).over(&r, |f| f.set(r.x, 1.0));
    let costly = func("weights", d, 0.0).over(&long, |f| f.add(d, long.x.f32()));
    assert_eq!(
        [
            reason(func("weights", d, input.at(0)), r.x.into()),
            reason(func("weights", d, input.extent(0).f32()), r.x.into()),
            reason(func("weights", d, p.expr() + d.f32()), r.x.into()),
            reason(plain(), x - r.x),
            reason(plain(), clamp(x - r.x, 0, 4096)),
            reason(costly, clamp(x - r.x, 0, 4000)),
            reason(undefined, r.x.into()),
        ],
        [
            "it reads the input `input`",
            "it depends on the size of the input `input`",
            "it depends on the Param `p`",
            "its readers must keep to 4096 points along `d` at all sizes; clamp the index",
            "its readers must keep to 4096 points along `d` at all sizes; clamp the index",
            "its evaluation takes more than 4194304 operations",
            "`tabulate weights` cannot be applied: `weights` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value",
        ]
    );
    let output = Pipeline::new("p", [plain()]).unwrap();
    assert_eq!(
        refusal(&output, "tabulate weights"),
        "`tabulate weights` cannot be applied: `weights` cannot be a table: it is an output"
    );
}
