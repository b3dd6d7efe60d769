//! Every mistake that a user can make in a pipeline gives a one-sentence message. It names the
//! object at fault, says what to do and shows the source location.

use insta::assert_snapshot;
use warploom_lang::*;

const X: Var = Var::literal("x");
const Y: Var = Var::literal("y");

/// The error report of an invalid pipeline, without lines and columns.
fn report(outputs: impl IntoIterator<Item = Func>) -> String {
    let text = Pipeline::new("p", outputs).expect_err("the pipeline is wrong").to_string();
    let hide = |line: &str| match line.split_once(".rs:") {
        Some((file, _)) => format!("{file}.rs"),
        None => line.to_string(),
    };
    text.lines().map(hide).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_place_is_where_the_mistake_was_made() {
    let f = func("f", (X, Y), X + Y);
    let line = line!() + 1;
    let g = func("g", X, f.at(X));
    let error = Pipeline::new("p", [g]).expect_err("one index is missing");
    let place = error.diagnostics[0].place.expect("it was written in Rust");
    assert_eq!((place.file(), place.line()), (file!(), line));
}

#[test]
fn calls_with_the_wrong_number_of_indices() {
    let blur = func("blur", (X, Y), X + Y);
    assert_snapshot!(report([func("out", (X, Y), blur.at(X))]), @"
    `blur` is called with 1 index but is defined over 2 (x, y); write blur.at((x, y))
      --> crates/lang/tests/all/mistakes.rs
    ");
    let image = Input::f32("image", 1);
    assert_snapshot!(report([func("out", (X, Y), image.at((X, Y)))]), @"
    `image` is called with 2 indices but is defined over 1 (d0); write image.at((d0))
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn operands_that_do_not_fit() {
    let image = Input::u8("image", 1);
    assert_snapshot!(report([func("out", X, image.at(X) * 0.5)]), @"
    `*` needs operands of one type but got u8 and f32; convert the u8 with .cast(Type::F32)
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, sqrt(X))]), @"
    `sqrt` is not defined for i32; convert the operand first, for example with .f32() or .i32()
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, image.at(X) + 300)]), @"
    the constant 300 does not fit u8; use a wider type
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, select(X, 1, 2))]), @"
    the condition of `select` is i32, not bool; compare it with something, for example .ne(0)
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, image.at(X.f32()))]), @"
    index 0 of `image` is f32, but indices are i32, i64 or u64; convert it with .i32()
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn variables_that_are_not_there() {
    assert_snapshot!(report([func("out", X, X + Y)]), @"
    `out` uses the variable `y`, which is not one of its arguments (x); add it there or give it a value
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", (X, X), 1)]), @"
    `out` has the variable `x` twice; give each dimension its own variable
      --> crates/lang/tests/all/mistakes.rs
    ");
    let f = func("f", (X, Y), 0).update(|f| f.set((X, X), Y));
    assert_snapshot!(report([f]), @"
    update 1 of `f` uses `y`, which is not at its own position on the left-hand side; write f(x, y) there, or use a reduction variable
      --> crates/lang/tests/all/mistakes.rs
    ");
    let f = func("f", (X, Y), 0).update(|f| f.set((X, 0), f.at((X + 1, 0))));
    assert_snapshot!(report([f]), @"
    update 1 of `f` reads `f` with something other than `x` at position 0; a pure variable must be at its own position, so use a reduction variable for that dimension
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn reduction_variables_out_of_place() {
    let r = rdom([(0, 4)]);
    assert_snapshot!(report([func("out", X, X + r.x)]), @"
    `out` uses the reduction variable `rx` outside an update over its domain; write .over(&domain, ..) or sum(&domain, ..)
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, 0).over(&r, |f| f.add(X, r.y))]), @"
    `out` uses reduction variable 1 of a domain that has 1 variable
      --> crates/lang/tests/all/mistakes.rs
    ");
    let varying = rdom([(0, X + 1)]);
    assert_snapshot!(report([func("out", X, 0).over(&varying, |f| f.add(X, varying.x))]), @"
    the range of the reduction variable `rx` of `out` depends on something other than constants, Params and input sizes; give it the largest possible range and exclude the rest with .filter(..), for example .filter(rx.lt(n))
      --> crates/lang/tests/all/mistakes.rs
    ");
    // The term does not contain the variable, so the helper of the sum does not have it either.
    assert_snapshot!(report([func("out", X, sum(&varying, varying.x))]), @"
    the range of the reduction variable `rx` of `out.sum0` depends on something other than constants, Params and input sizes; give it the largest possible range and exclude the rest with .filter(..), for example .filter(rx.lt(n))
      --> crates/lang/tests/all/mistakes.rs
    ");
    let outer = rdom!(i: (0, 8));
    let inner = rdom!(j: (0, outer.x));
    assert_snapshot!(report([func("out", X, sum(&outer, sum(&inner, X + inner.x)))]), @"
    the range of the reduction variable `j` of `out.sum0.sum0` depends on something other than constants, Params and input sizes; give it the largest possible range and exclude the rest with .filter(..), for example .filter(j.lt(n))
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn orders_of_what_is_no_reduction() {
    let r = rdom([(0, 4)]);
    let input = Input::f32("input", 1);
    assert_snapshot!(report([func("out", X, (sum(&r, input.at(X + r.x)) * 2.0).in_order())]), @"
    in_order() is called on an expression that is not a reduction; call it on sum(..) or product(..) itself
      --> crates/lang/tests/all/mistakes.rs
    ");
}

/// A constant that a float type does not have is offered in that type.
#[test]
fn float_constants_are_offered_in_the_type_beside_them() {
    let half = Input::new("half", Type::F16, 1);
    assert_snapshot!(report([func("out", X, half.at(X) * 0.1)]), @"
    `*` needs operands of one type but got f16 and the f32 constant 0.1; write f16::from_f64(0.1) for the nearest f16, or convert the f16 with .f32()
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, max(constant(0.3), half.at(X)))]), @"
    `max` needs operands of one type but got f16 and the f64 constant 0.3; write f16::from_f64(0.3) for the nearest f16, or convert the f16 with .f64()
      --> crates/lang/tests/all/mistakes.rs
    ");
    let brain = Input::new("brain", Type::BF16, 1);
    assert_snapshot!(report([func("out", X, select(X.lt(3), brain.at(X), 0.7))]), @"
    `select` needs operands of one type but got bf16 and the f32 constant 0.7; write bf16::from_f64(0.7) for the nearest bf16, or convert the bf16 with .f32()
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("out", X, X.f32() - constant(0.1))]), @"
    `-` needs operands of one type but got f32 and the f64 constant 0.1; write constant(0.1_f32) for the nearest f32, or convert the f32 with .f64()
      --> crates/lang/tests/all/mistakes.rs
    ");
    // What the messages offer is accepted.
    let outputs = [
        func("a", X, half.at(X) * f16::from_f64(0.1)),
        func("b", X, max(f16::from_f64(0.3), half.at(X))),
        func("c", X, select(X.lt(3), brain.at(X), bf16::from_f64(0.7))),
        func("d", X, X.f32() - constant(0.1_f32)),
        func("e", X, half.at(X).f32() * 0.1),
    ];
    assert!(Pipeline::new("p", outputs).is_ok());
}

/// The message suggests the type that holds the values of both.
#[test]
fn casts_go_where_nothing_is_lost() {
    let suggested = |a: Type, b: Type| {
        let text = report([func("out", X, Input::new("a", a, 1).at(X) + Input::new("b", b, 1).at(X))]);
        let first = text.lines().next().unwrap_or_default().to_string();
        first.rsplit("; ").next().unwrap_or_default().to_string()
    };
    assert_eq!(suggested(Type::U8, Type::F32), "convert the u8 with .cast(Type::F32)");
    assert_eq!(suggested(Type::F32, Type::I32), "convert the i32 with .cast(Type::F32)");
    assert_eq!(suggested(Type::U8, Type::I16), "convert the u8 with .cast(Type::I16)");
    assert_eq!(suggested(Type::U16, Type::I16), "convert both with .cast(Type::I32)");
    assert_eq!(suggested(Type::U32, Type::I8), "convert both with .cast(Type::I32)");
    assert_eq!(suggested(Type::I32, Type::U32), "convert the u32 with .cast(Type::I32)");
}

#[test]
fn values_that_do_not_fit_the_func() {
    let pair = func("pair", X, (X, 1.0));
    assert_snapshot!(report([func("out", X, pair.at(X))]), @"
    `pair` has 2 values; choose one with .get(i, ..), i from 0 to 1
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("f", X, 0).update(|f| f.set(X, (1, 2)))]), @"
    stage 1 of `f` gives 2 values but `f` has 1; give one value for each
      --> crates/lang/tests/all/mistakes.rs
    ");
    assert_snapshot!(report([func("f", X, 0).update(|f| f.set(X, 0.5))]), @"
    stage 1 of `f` gives f32 where `f` holds i32; convert it with .cast(Type::I32)
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn a_func_without_any_value() {
    let nothing = func("nothing", X, undef(Type::F32));
    assert_snapshot!(report([func("out", X, nothing.at(X))]), @"
    `nothing` has no value anywhere: its initial value is `undef` and it has no update; give it one
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn names() {
    let (one, other) = (func("f", X, 1), func("f", X, 2));
    assert_snapshot!(report([func("out", X, one.at(X) + other.at(X))]), @"
    two Funcs, inputs or Params are named `f`; rename one (a Func that is called before its updates are added counts as a different Func)
      --> crates/lang/tests/all/mistakes.rs
      --> crates/lang/tests/all/mistakes.rs
    ");
    let line = line!() + 1;
    let (input, again) = (Input::f32("a", 1), Input::f32("a", 1).stored([0]));
    let param = Param::f32("a");
    let list = table("a", [1.0f32]);
    for out in [again.at(X), param.expr(), list.at(0)] {
        let error = Pipeline::new("p", [func("out", X, input.at(X) + out)]).expect_err("a name occurs twice");
        let [Diagnostic { fault: Fault::Duplicate { name, first: Some(first) }, place: Some(second) }] =
            error.diagnostics.as_slice()
        else {
            panic!("{error:?}")
        };
        assert!(name == "a" && first.line() == line, "{error}");
        assert!((line..line + 3).contains(&second.line()), "{error}");
    }
    assert_snapshot!(report([func("my func", X, 1)]), @"`my func` cannot be a name; use letters, digits, `_` and `.`, starting with a letter or `_`");
    assert_snapshot!(report([]), @"the pipeline `p` has no outputs; name at least one Func");
}

#[test]
fn inputs_and_boundaries() {
    let image = Input::f32("image", 2).stored([0, 2]);
    assert_snapshot!(report([func("out", (X, Y), image.at((X, Y)))]), @"the storage order [0, 2] of `image` is not a permutation of its 2 dimensions; name each of 0..2 once");
    let image = Input::f32("image", 2);
    let edge = image.repeat_edge_in(limits([(0, 4), (0, 4), (0, 4)]));
    assert_snapshot!(report([func("out", (X, Y), edge.at((X, Y)))]), @"
    the boundary condition over `image` gives 3 limits, but it has 2 dimensions; give at most one per dimension
      --> crates/lang/tests/all/mistakes.rs
    ");
}

/// The readers of a Func whose definition is wrong have its mistake and no other.
#[test]
fn a_mistake_is_reported_where_it_was_made_and_nowhere_else() {
    let image = Input::u8("image", 1);
    let line = line!() + 1;
    let wrong = func("wrong", X, (image.at(X) * 0.5, 1));
    let both = func("both", X, wrong.get(0, X) * wrong.get(1, X).f32());
    let error = Pipeline::new("p", [both]).expect_err("u8 times f32");
    assert_eq!(error.diagnostics.len(), 1, "{error}");
    assert_eq!(error.diagnostics[0].place.expect("it was written in Rust").line(), line);

    let pair = func("pair", X, (X, 1.0));
    let edge = pair.constant_exterior_in(limits([(0, 4)]), (1, 2.0, 3));
    assert_snapshot!(report([func("out", X, edge.get(1, X) + 0.5)]), @"
    the boundary condition over `pair` has 3 values beyond its limits, but `pair` has 2; give one for each, or one for all
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn an_endless_expression_is_refused_and_does_not_exhaust_the_stack() {
    let sum = (0..100_000).fold(Expr::from(0), |sum, i| sum + X * i);
    assert_snapshot!(report([func("out", X, sum)]), @"
    an expression is nested more than 1000 levels deep; name a part of it as a Func or use a reduction
      --> crates/lang/tests/all/mistakes.rs
    ");
}

#[test]
fn every_mistake_is_reported() {
    let image = Input::u8("image", 1);
    let a = func("a", X, image.at(X) + 0.5);
    let b = func("b", X, Y + 1);
    assert_eq!(report([a, b]).lines().count(), 4);
}

#[test]
fn pipelines_from_files_keep_the_same_rules() {
    let image = Input::f32("image", 1);
    let blur = func("blur", X, image.at(X) + image.at(X + 1));
    let text = Pipeline::new("p", [blur]).expect("it is right").to_json();
    let broken = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in {text}");
        Pipeline::from_json(&text.replacen(from, to, 1)).expect_err("it was broken").to_string()
    };
    assert_snapshot!(broken(r#""version":1"#, r#""version":9"#), @"the pipeline file is not well formed: it is warploom-pipeline version 9, but this program reads warploom-pipeline version 1; write it with Pipeline::to_json");
    assert_snapshot!(broken(r#"{"load":0},"type":"f32""#, r#"{"call":[0,0]},"type":"f32""#), @"`blur` depends on itself in its pure definition; give it an initial value and put the recursion into an update");
    assert_snapshot!(broken(r#"{"load":0},"type":"f32""#, r#"{"call":[7,0]},"type":"f32""#), @"the pipeline file is not well formed: ExprId1 uses a Func that does not exist; write it with Pipeline::to_json");
    assert_snapshot!(broken(r#""args":[1,4]"#, r#""args":[1,5]"#), @"the pipeline file is not well formed: ExprId5 uses an expression that does not come before it; write it with Pipeline::to_json");
    assert_snapshot!(broken(r#""outputs":[0]"#, r#""outputs":[]"#), @"the pipeline `p` has no outputs; name at least one Func");
}
