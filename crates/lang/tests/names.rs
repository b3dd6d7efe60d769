//! Names of variables that are made at run time.

use warploom_lang::{Func, Input, Pipeline, RDom, RRange, Var, func};

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
