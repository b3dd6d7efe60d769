//! Access classes, the feature table, branching.

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

#[test]
fn rows_are_named_in_order() {
    assert_eq!(NAMES.len(), ROWS);
    for (i, row) in Row::ALL.into_iter().enumerate() {
        assert_eq!((row as usize, row.name()), (i, NAMES[i]));
    }
    use {AccessClass::*, AccessKind::*};
    assert_eq!(Row::of_access(LoadFunc, Pointwise), Row::FuncPointwise);
    assert_eq!(Row::of_access(LoadSelf, Broadcast), Row::SelfBroadcast);
    assert_eq!(Row::of_access(LoadInput, Slice), Row::InputSlice);
    assert_eq!(Row::of_access(Store, Other), Row::StoreOther);
}

#[test]
fn operations_count_where_they_work() {
    let x = vars!(x);
    let (bytes, floats) = (Input::u8("bytes", 1), Input::f32("floats", 1));
    let wide = bytes.at(x).i16() / 3 + bytes.at(x).i16() % 5;
    let value = select(floats.at(x).lt(0.5) & x.ge(2), exp(floats.at(x)) / 3.0, sqrt(floor(wide.f32())));
    let dag = dag([func("f", x, value)]);
    let features = &dag.stages().values().next().unwrap().features;
    insta::assert_snapshot!(features.to_string(), @"
                       f32   bool   int8  int16  int32
    const                2      -      -      2      1
    variable             -      -      -      -      1
    cast                 1      -      -      1      -
    add                  -      -      -      1      -
    int_div              -      -      -      1      -
    int_mod              -      -      -      1      -
    float_div            1      -      -      -      -
    transcendental       1      -      -      -      -
    sqrt                 1      -      -      -      -
    rounding             1      -      -      -      -
    lt                   1      -      -      -      -
    le                   -      -      -      -      1
    and                  -      1      -      -      -
    select               1      -      -      -      -
    load_input           1      -      1      -      -
    input.pointwise      1      -      1      -      -
    store.pointwise      1      -      -      -      -
    ");
    // Counted once, though written twice.
    assert_eq!(features[(Row::LoadInput, Column::Int8)], 1);
    assert_eq!(features[(Row::Cast, Column::Int16)], 1);
    assert_eq!(features[(Row::Lt, Column::F32)], 1);
    assert_eq!(features[(Row::Le, Column::Int32)], 1);
    assert_eq!(features.total(Row::Transcendental), 1);
}

#[test]
fn predicates_and_own_reads_count() {
    let (x, y) = vars!(x, y);
    let image = Input::f32("image", 2);
    let r = rdom!(rx: (0, 8), ry: (0, 8));
    let r = r.clone().filter(r.x.lt(r.y));
    let sums = func("sums", (x, y), 0.0).over(&r, |f| f.add((x, y), image.at((x + r.x, y + r.y))));
    let dag = dag([sums]);
    let update = &dag.stages().values().nth(1).unwrap();
    assert!(update.has_predicate);
    assert_eq!(update.features[(Row::Lt, Column::Int32)], 1);
    assert_eq!(update.features[(Row::LoadSelf, Column::F32)], 1);
    assert_eq!(update.features[(Row::LoadFunc, Column::F32)], 0);
    assert_eq!(update.features[(Row::SelfBroadcast, Column::F32)], 1);
    assert_eq!(update.features[(Row::StoreBroadcast, Column::F32)], 1);
    assert_eq!(update.features[(Row::InputOther, Column::F32)], 1);
}

#[test]
fn a_store_counts_once_a_value() {
    let x = vars!(x);
    let pair = func("pair", x, (1.0f32, 2i32));
    let start = func("start", x, undef(Type::F32)).update(|f| f.set(0, 1.0));
    let dag = dag([pair, start]);
    let stages: Vec<&Stage> = dag.stages().values().collect();
    assert_eq!(stages[0].features[(Row::StorePointwise, Column::F32)], 1);
    assert_eq!(stages[0].features[(Row::StorePointwise, Column::Int32)], 1);
    assert_eq!(stages[1].features.total(Row::StorePointwise), 0);
    assert_eq!(stages[2].features[(Row::StoreSlice, Column::F32)], 1);
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
