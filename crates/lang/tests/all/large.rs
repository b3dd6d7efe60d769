//! Pipelines too deep for a recursive walk on the stack, and messages that stay short.

use std::thread;

use warploom_lang::brief::MAX_SHOWN;
use warploom_lang::*;

const X: Var = Var::literal("x");

/// Runs a closure on a stack too small for recursion over a pipeline's Funcs.
fn with_little_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap()
}

fn chain(funcs: usize) -> Func {
    let mut last = func("f0", X, X * 2);
    for number in 1..funcs {
        last = func(format!("f{number}"), X, last.at(X) + 1);
    }
    last
}

#[test]
fn a_chain_of_many_funcs_is_made_written_read_and_dropped() {
    let read = with_little_stack(|| {
        let pipeline = Pipeline::new("chain", [chain(50_000)]).unwrap();
        let text = pipeline.to_string();
        assert!(text.ends_with("f49999(x) = f49998(x) + 1\n"));
        let read = Pipeline::from_json(&pipeline.to_json()).unwrap();
        assert_eq!(read.structural_hash(), pipeline.structural_hash());
        read
    });
    assert_eq!(read.func_named("f49999"), read.funcs().keys().next_back());
}

#[test]
fn reductions_hold_long_chains_too() {
    with_little_stack(|| {
        let mut last = func("f0", X, X * 2);
        for number in 1..20_000 {
            let r = rdom([(0, 2)]);
            let filtered = r.clone().filter(r.x.lt(last.at(X)));
            last = func(format!("f{number}"), X, 0).over(&filtered, |f| f.add(X, r.x));
        }
        drop(last);
    });
}

#[test]
fn what_is_shown_of_an_expression_does_not_grow_with_it() {
    let mut sum = chain(10_000).at(X);
    for _ in 0..200 {
        sum = &sum + &sum;
    }
    assert!(format!("{sum:?} {:?}", chain(10_000)).len() < 200, "{sum:?}");
}

#[test]
fn files_that_nest_too_deeply_are_refused() {
    let text = Pipeline::new("p", [func("f", X, X + X)]).unwrap().to_json();
    let node =
        |id: usize| format!(r#"{{"kind":{{"op":{{"binary":"add"}}}},"type":"i32","args":[{id},{id}]}}"#);
    let sums: Vec<String> = (0..100_000).map(node).collect();
    let deep = text.replace(&node(0), &sums.join(","));
    assert!(deep.len() > 1_000_000, "{text}");
    let error = Pipeline::from_json(&deep).unwrap_err();
    assert!(error.to_string().contains("nested more than 1000 levels deep"), "{error}");
}

#[test]
fn of_many_mistakes_some_are_shown() {
    let wrong = |number: usize| func(format!("f{number}"), X, func(format!("g{number}"), X, X).at((X, X)));
    let error = Pipeline::new("p", (0..5_000).map(wrong)).unwrap_err();
    assert_eq!(error.diagnostics.len(), 5_000);
    let text = error.to_string();
    assert!(text.ends_with("\nand 4980 more"), "{text}");
    assert_eq!(text.matches("is called with").count(), MAX_SHOWN);
}
