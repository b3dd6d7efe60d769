//! Constant tables.

use warploom_lang::ir::NodeKind;
use warploom_lang::{
    Elements, Func, Input, Operand, Param, Pipeline, Realisation, Region, Table, Type, Value, clamp, func,
    infer, rdom, table, vars,
};

/// Looks values of an input up in a table.
fn curve(elements: impl Elements) -> Pipeline {
    let x = vars!(x);
    let input = Input::u8("input", 1);
    let gamma = table("gamma", elements);
    let index = clamp(input.at(x).i32(), 0, gamma.extent(0) - 1);
    Pipeline::new("curve", [func("out", x, gamma.at(index))]).expect("it is right")
}

fn request(pipeline: &Pipeline) -> Realisation {
    let region = || Region::of_extents(&[16]);
    let request = Realisation::new(pipeline).output("out", region());
    pipeline.inputs().values().fold(request, |request, input| request.input(&input.name, region()))
}

#[test]
fn arrays_slices_and_vectors_give_the_same_table() {
    let values = [0.0f32, 0.1, -0.0, f32::NAN];
    let hash = curve(values).structural_hash();
    assert_eq!(curve(values.to_vec()).structural_hash(), hash);
    assert_eq!(curve(&values[..]).structural_hash(), hash);
    assert_eq!(curve(values.to_vec()).structural_hash(), hash);
}

#[test]
fn the_hash_covers_values_and_types_but_no_name() {
    let hash = curve([1i32, 2, 3]).structural_hash();
    assert_ne!(curve([1i32, 2, 4]).structural_hash(), hash);
    assert_ne!(curve([1u32, 2, 3]).structural_hash(), hash);
    assert_ne!(curve([0.0f32]).structural_hash(), curve([-0.0f32]).structural_hash());
    let x = vars!(x);
    let named = |name: &str| {
        let out = func("out", x, table(name, [1u8, 2]).at(x % 2));
        Pipeline::new("p", [out]).expect("it is right").structural_hash()
    };
    assert_eq!(named("a"), named("b"));
}

#[test]
fn the_first_index_is_the_fastest() {
    let (x, y) = vars!(x, y);
    let rows = table("rows", [[1u16, 2, 3], [4, 5, 6]]);
    assert_eq!((rows.extent(0).constant(), rows.extent(1).constant()), (Some(3.into()), Some(2.into())));
    let pipeline = Pipeline::new("p", [func("out", (x, y), rows.at((x, y)))]).expect("it is right");
    let decl = pipeline.tables().values().next().expect("there is one");
    assert_eq!((decl.value([2, 0]), decl.value([0, 1])), (Some(Value::from(3u16)), Some(Value::from(4u16))));
    assert_eq!((decl.value([3, 0]), decl.value([0, -1])), (None, None));
    assert!(pipeline.to_string().contains("table  rows[3, 2]: u16 = 1, 2, 3, 4, 5, 6\n"), "{pipeline}");
    assert!(pipeline.to_string().contains("out(x, y) = rows(x, y)"), "{pipeline}");
}

#[test]
fn reads_outside_are_refused() {
    let x = vars!(x);
    let gamma = table("gamma", [0.5f32; 10]);
    let out = |value| Pipeline::new("p", [func("out", x, value)]).expect("it is right");
    let pipeline = out(gamma.at(x));
    let error = infer(&pipeline, &request(&pipeline)).expect_err("16 points do not fit").to_string();
    let expected = "`out` needs [0, 16) of the table `gamma` in dimension 0, but there is only [0, 10); clamp the index, for example with clamp(i, 0, 9)";
    assert!(error.starts_with(expected), "{error}");
    let input = Input::new("input", Type::I32, 1);
    let pipeline = out(gamma.at(input.at(x)));
    let error = infer(&pipeline, &request(&pipeline)).expect_err("any number may come").to_string();
    assert!(error.contains("reads `gamma` at an index of dimension 0 that has no bounds"), "{error}");
    let pipeline = out(gamma.at(clamp(input.at(x), 0, gamma.extent(0) - 1)));
    infer(&pipeline, &request(&pipeline)).expect("it is clamped");
}

#[test]
fn values_of_tables_bound_indices() {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let offsets = table("offsets", [3i32, 0, 5]);
    let read = |at| {
        let out = func("out", x, input.at(offsets.at(at)));
        let pipeline = Pipeline::new("p", [out]).expect("it is right");
        let regions = infer(&pipeline, &request(&pipeline)).expect("it is inside");
        regions.inputs.values().next().map(|region| region.to_string())
    };
    assert_eq!(read(x % 3).as_deref(), Some("[0, 6)"));
    assert_eq!(read(x * 0 + 2).as_deref(), Some("[5, 6)"), "one element is one value");
}

#[test]
fn a_param_in_an_index_is_specialised() {
    let x = vars!(x);
    let level = Param::i32("level").range(0, 2);
    let out = func("out", x, table("gains", [1i32, 2, 4]).at(level.expr()));
    let pipeline = Pipeline::new("p", [out]).expect("it is right");
    assert!(pipeline.specialised_params().values().all(|specialised| *specialised));
}

#[test]
fn files_hold_every_bit() {
    let odd = f32::from_bits(0x7fc0_1234);
    let pipeline = curve([0.1f32, -0.0, f32::INFINITY, f32::MIN_POSITIVE / 8.0, odd]);
    let read = Pipeline::from_json(&pipeline.to_json()).expect("it was written");
    assert_eq!(read.tables(), pipeline.tables());
    assert_eq!(read.structural_hash(), pipeline.structural_hash());
    assert_eq!(read.to_json(), pipeline.to_json());
    assert!(!curve_free().to_json().contains("tables"), "files without tables stay as they were");
}

fn curve_free() -> Pipeline {
    let x = vars!(x);
    Pipeline::new("p", [func("out", x, x + 1)]).expect("it is right")
}

#[test]
fn damaged_tables_are_refused() {
    let text = curve([1u8, 2, 3]).to_json();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        Pipeline::from_json(&text.replace(from, to)).expect_err("it is damaged").to_string()
    };
    let error = refused("[1,2,3]", "[1,2,300]");
    assert!(error.contains("300 is not the bit pattern of a value of type u8"), "{error}");
    let error = refused("\"extents\":[3]", "\"extents\":[4]");
    assert!(error.contains("`gamma` has not as many values as its extents say"), "{error}");
    let error = refused("{\"table\":0}", "{\"table\":7}");
    assert!(error.contains("uses a table that does not exist"), "{error}");
}

#[test]
fn tables_have_a_size() {
    let x = vars!(x);
    let pipeline = |tables: &[Table]| {
        let value = tables.iter().map(|table| table.at(x % 2).f32()).reduce(|a, b| a + b);
        Pipeline::new("p", [func("out", x, value.expect("there is one"))])
    };
    let half = |name: &str| table(name, vec![1.0f32; 8192]);
    assert!(pipeline(&[half("a"), half("b")]).is_ok());
    let error =
        pipeline(&[half("a"), table("big", vec![0u8; 40_000])]).expect_err("it is too much").to_string();
    let expected = "the tables of `p` have 72768 bytes, but all together may have 64 KiB; make the largest, `big`, an input";
    assert!(error.contains(expected), "{error}");
    let error = pipeline(&[table("empty", [0u8; 0])]).expect_err("it has nothing").to_string();
    assert!(error.contains("the table `empty` has no elements; give it at least one"), "{error}");
}

#[test]
fn mistakes_name_the_table() {
    let (x, y) = vars!(x, y);
    let gamma = table("gamma", [1i32, 2]);
    let error =
        |value| Pipeline::new("p", [func("out", (x, y), value)]).expect_err("it is wrong").to_string();
    assert!(error(gamma.at((x, y))).contains("`gamma` is called with 2 indices"));
    assert!(error(gamma.at(0.5)).contains("index 0 of `gamma` is f32"));
    assert!(error(gamma.extent(1)).contains("`gamma`"));
    let twice = gamma.at(x % 2) + table("gamma", [3i32, 4]).at(x % 2);
    assert!(error(twice).contains("`gamma`"), "two tables of one name");
}

#[test]
fn equal_tables_are_one() {
    let x = vars!(x);
    let read = |at| table("gamma", [1i32, 2]).at(at);
    let out = func("out", x, read(x % 2) + read((x + 1) % 2));
    assert_eq!(Pipeline::new("p", [out]).expect("it is right").tables().len(), 1);
}

#[test]
fn domains_do_not_depend_on_tables() {
    let x = vars!(x);
    let r = rdom([(0, table("counts", [3i32, 4]).at(0))]);
    let out: Func = func("out", x, 0).over(&r, |own| own.add(x, r.x));
    let error = Pipeline::new("p", [out]).expect_err("bounds are sizes").to_string();
    assert!(error.contains("rx"), "{error}");
}

#[test]
fn unused_tables_are_dropped_by_rewrites() {
    let pipeline = curve([1u8, 2, 3]);
    let mut draft = warploom_lang::draft::Draft::of(&pipeline);
    let same = draft.clone().finish().expect("it is right");
    assert_eq!(same.structural_hash(), pipeline.structural_hash());
    let zero = draft.constant(Value::from(0u8));
    draft.rebuild_all(&mut |exprs, _, node| match node.kind {
        NodeKind::Table(_) => zero,
        _ => exprs.intern(node),
    });
    assert!(draft.finish().expect("it is right").tables().is_empty());
}
