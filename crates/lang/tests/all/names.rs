//! Names that are made at run time, and what names may be.

use std::num::NonZeroU32;

use proptest::collection::vec;
use proptest::prelude::*;
use warploom_lang::rewrite::{Rewrite, Side, StageName, VarName};
use warploom_lang::{Func, Input, Pipeline, RDom, RRange, Var, func, naming};

/// A reduction over named variables.
fn totals(names: [impl AsRef<str>; 3]) -> Pipeline {
    let [x, y, r] = names;
    let (x, y) = (Var::new(x), Var::new(y));
    let image = Input::f32("image", 2);
    let domain = RDom::new(vec![RRange::new(r, 0, 4)]);
    let total: Func =
        func("total", (x, y), 0.0).over(&domain, |f| f.add((x, y), image.at((x + domain.x, y))));
    Pipeline::new("totals", [total]).expect("it is right")
}

#[test]
fn names_made_at_run_time_are_like_literals() {
    let literal = totals(["x0", "x1", "x2"]);
    let made = totals([0, 1, 2].map(|i| format!("x{i}")));
    assert_eq!(made.structural_hash(), literal.structural_hash());
    assert_eq!(made.to_json(), literal.to_json());
    assert_eq!(made.to_string(), literal.to_string());
    assert!(made.to_string().contains("over x2 in (0, 4)"), "{made}");
}

#[test]
fn a_name_is_stored_once() {
    let (first, second) = (Var::new(String::from("stored")), Var::new("stored"));
    assert!(std::ptr::eq(first.name(), second.name()));
    let range = RDom::new(vec![RRange::new(String::from("sto") + "red", 0, 1)]);
    assert!(std::ptr::eq(range.x.name(), first.name()));
}

#[test]
fn many_threads_make_the_same_names() {
    const NAMES: usize = 200;
    let make = |thread: usize| {
        // Every thread starts at another name.
        let mut names: Vec<&'static str> =
            (0..NAMES).map(|i| Var::new(format!("t{}", (i + 25 * thread) % NAMES)).name()).collect();
        names.sort_unstable();
        (names, totals([0, 1, 2].map(|i| format!("many{i}"))).structural_hash())
    };
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || make(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    for (names, hash) in &made {
        assert_eq!(*hash, made[0].1);
        assert!(names.iter().zip(&made[0].0).all(|(a, b)| std::ptr::eq(*a, *b)));
    }
}

#[test]
fn every_dimension_of_a_domain_has_a_name_of_its_own() {
    let r = warploom_lang::rdom([(0, 1); 10]);
    let names = [0, 3, 4, 8, 9].map(|i| r.var(i).name());
    assert_eq!(names, ["rx", "rw", "r4", "r8", "r9"]);
}

fn refused(pipeline: &str, names: [&str; 3]) -> String {
    let [x, y, r] = names;
    let (x, y) = (Var::new(x), Var::new(y));
    let image = Input::f32("image", 2);
    let domain = RDom::new(vec![RRange::new(r, 0, 4)]);
    let total: Func =
        func("total", (x, y), 0.0).over(&domain, |f| f.add((x, y), image.at((x + domain.x, y))));
    Pipeline::new(pipeline, [total]).expect_err("a name is wrong").to_string()
}

#[test]
fn every_kind_of_name_has_a_rule() {
    for bad in ["", " ", "a,b", "#", "a\nb", "a\rb"] {
        let sentence = refused(bad, ["x", "y", "r"]);
        assert!(sentence.contains("cannot be the name of a pipeline"), "{sentence}");
    }
    for bad in ["", "a b", "a,b", "#c", "a\u{2003}b", "0.x"] {
        for names in [[bad, "y", "r"], ["x", bad, "r"], ["x", "y", bad]] {
            let sentence = refused("p", names);
            assert!(sentence.contains("cannot be the name of a variable of `total`"), "{sentence}");
        }
    }
    let long = "x".repeat(1025);
    for (name, names) in
        [(long.as_str(), ["x", "y", "r"]), ("p", [&long, "y", "r"]), ("p", ["x", "y", &long])]
    {
        let sentence = refused(name, names);
        assert!(sentence.contains("has 1025 bytes, but a name may have at most 1024"), "{sentence}");
        assert!(sentence.len() < 400, "{sentence}");
    }
    assert_eq!(totals([&long[1..], "größe", "16"]).funcs().len(), 1);
}

#[test]
fn no_name_means_two_things() {
    let x = Var::new("x");
    let (plain, copied) = (Input::f32("a", 1), Input::f32("a.stage", 1));
    let domain = RDom::new(vec![RRange::new("r", 0, 4)]);
    let twice = func("g", x, 0.0).over(&domain, |f| f.add(x, plain.at(x + domain.x)));
    let refused = |outputs: Vec<Func>| Pipeline::new("p", outputs).expect_err("a name is taken").to_string();
    let stage = refused(vec![func("g.0", x, twice.at(x))]);
    assert_eq!(stage, "`g.0` is the name of a Func and of stage 0 of `g`; rename the Func");
    let copy = refused(vec![func("a.stage", x, plain.at(x))]);
    assert_eq!(copy, "`a.stage` is the name of a Func and of the copy of the input `a`; rename the Func");
    let pair = func("h", x, (plain.at(x), plain.at(x)));
    let value = refused(vec![pair, func("h.1", x, plain.at(x))]);
    assert_eq!(value, "`h.1` is the name of a Func and of a value of another output; rename the Func");
    // Neither is in the way of the other.
    for name in ["g.2", "g.00", "g.stage", "b.stage"] {
        let both = func(name, x, twice.at(x) + copied.at(x));
        assert!(Pipeline::new("p", [both]).is_ok(), "{name}");
    }
}

proptest! {
    /// The text of each rewrite is read as the same rewrite, whatever the names.
    #[test]
    fn rewrites_read_back(
        func in "[A-Za-z_][A-Za-z0-9_.]{0,8}",
        other in "[A-Za-z_][A-Za-z0-9_.]{0,8}",
        vars in vec("([a-z]{1,2}\\.){0,2}[^\\s,#.]{1,4}", 1..4),
        (stage, number) in (0..1000_usize, 1..1000_u32),
    ) {
        let by = NonZeroU32::new(number).expect("it is positive");
        let stage = StageName { func: func.clone(), stage };
        let var = VarName { stage: stage.clone(), var: vars[0].clone() };
        let rewrites = [
            Rewrite::Split { var: var.clone(), by },
            Rewrite::Factor { var: var.clone(), side: Side::Outer, by },
            Rewrite::Chunk { var: var.clone(), by },
            Rewrite::Unroll { var },
            Rewrite::Cut { func: func.clone(), at: stage.stage },
            Rewrite::Clone { func: func.clone(), reader: other.clone() },
            Rewrite::Join { one: func.clone(), other },
            Rewrite::Separate { func: func.clone(), dim: vars[0].clone() },
            Rewrite::Tabulate { func },
            Rewrite::Permute { stage: stage.clone(), vars: vars.clone() },
            Rewrite::Tree { stage: stage.clone() },
            Rewrite::Gather { stage: stage.clone() },
            Rewrite::Expand { stage: stage.clone() },
        ];
        for rewrite in rewrites {
            prop_assert_eq!(rewrite.to_string().parse::<Rewrite>().ok(), Some(rewrite));
        }
        let stage = stage.to_string();
        let text = format!("{stage}.{}", vars[0]);
        prop_assert_eq!(naming::split_reduction(&text), Some((stage.as_str(), vars[0].as_str())));
    }
}
