//! Access classes, branching.

use warploom_lang::*;
use warploom_schedule::*;

fn dag(outputs: impl IntoIterator<Item = Func>) -> Dag {
    Dag::new(&Pipeline::new("p", outputs).unwrap())
}

/// The class of an access of an input over x, y.
fn class(indices: impl Fn(Var, Var) -> Vec<Expr>) -> AccessClass {
    let (x, y) = vars!(x, y);
    let at = indices(x, y);
    let table = Input::f32("table", at.len());
    let dag = dag([func("reader", (x, y), table.at(at))]);
    dag.stages().values().next().unwrap().accesses[0].map.class()
}

#[test]
fn every_access_is_in_one_class() {
    let three = Expr::from(3);
    assert_eq!(class(|x, y| vec![x.expr(), y.expr()]), AccessClass::Pointwise);
    assert_eq!(class(|x, y| vec![x - 1, y + 2]), AccessClass::Pointwise);
    assert_eq!(class(|x, y| vec![clamp(x, 0, 9), y.expr()]), AccessClass::Pointwise);
    assert_eq!(class(|x, y| vec![y.expr(), x.expr()]), AccessClass::Transpose);
    assert_eq!(class(|x, _| vec![x + 1]), AccessClass::Broadcast);
    assert_eq!(class(|_, _| vec![]), AccessClass::Broadcast);
    assert_eq!(class(|x, _| vec![x.expr(), three.clone()]), AccessClass::Slice);
    assert_eq!(class(|x, y| vec![x.expr(), y.expr(), three.clone()]), AccessClass::Slice);
    assert_eq!(class(|_, _| vec![three.clone()]), AccessClass::Slice);
    assert_eq!(class(|x, y| vec![2 * x, y.expr()]), AccessClass::Other);
    assert_eq!(class(|x, y| vec![x / 2 * 2, y.expr()]), AccessClass::Other);
    assert_eq!(class(|x, _| vec![x.expr(), x.expr()]), AccessClass::Other);
    assert_eq!(class(|x, y| vec![x + y, y.expr()]), AccessClass::Other);
    assert_eq!(class(|x, y| vec![x % 2, y.expr()]), AccessClass::Other);
    assert_eq!(AccessMap::identity(0).class(), AccessClass::Pointwise);
}

fn branchings(func: Func) -> Vec<u32> {
    dag([func]).stages().values().map(|stage| stage.branching).collect()
}

#[test]
fn branching_is_the_strahler_number() {
    let (x, y) = vars!(x, y);
    let leaf = |d: usize| Input::f32(format!("in{d}"), 0).at(());
    let [a, b, c, d] = [0, 1, 2, 3].map(leaf);
    let of = |value: Expr| branchings(func("f", (), value))[0];
    assert_eq!(of(a.clone()), 1);
    assert_eq!(of(-&a), 1);
    assert_eq!(of(&a + &b), 2);
    // A chain needs no more than its first step; a balanced tree needs one more per level.
    assert_eq!(of(&a + &b + &c + &d), 2);
    assert_eq!(of((&a + &b) * (&c + &d)), 3);
    assert_eq!(of(select(a.lt(&b), &c, &d)), 2);
    assert_eq!(of(select(a.lt(&b), &c + &d, &d)), 3);
    // The indices of the left-hand side also count.
    assert_eq!(branchings(func("f", (x, y), 1.0)), [2]);
}

#[test]
fn shared_parts_are_evaluated_once() {
    let mut power = Input::f32("in", 0).at(()) + 1.0;
    for _ in 0..20 {
        power = &power * &power;
    }
    assert_eq!(branchings(func("f", (), power)), [3]);
}

#[test]
fn updates_have_a_branching_of_their_own() {
    let leaf = |d: usize| Input::f32(format!("in{d}"), 0).at(());
    let [a, b, c, d] = [0, 1, 2, 3].map(leaf);
    let f = func("f", (), 0.0).update(|f| f.set((), (a + b) * (c + d)));
    assert_eq!(branchings(f), [1, 3]);
}

#[test]
fn branching_takes_inlined_funcs_into_account() {
    let a = Input::f32("in", 0).at(());
    let g = func("g", (), &a + 1.0);
    let pipeline = Pipeline::new("p", [func("f", (), g.at(()) + a)]).unwrap();
    let (id, decl) = (pipeline.func_named("g").unwrap(), &pipeline.funcs().values().last().unwrap());
    let score = |inlined: Option<u32>| {
        branching(pipeline.exprs(), &decl.stages[0], |func| inlined.filter(|_| func == id))
    };
    assert_eq!((score(None), score(Some(2)), score(Some(5))), (2, 2, 5));
}
