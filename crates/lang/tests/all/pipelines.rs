//! Names, listings, files and hashes of pipelines.

use insta::assert_snapshot;
use proptest::prelude::*;
use warploom_lang::*;

const X: Var = Var::literal("x");
const Y: Var = Var::literal("y");

fn busy() -> Pipeline {
    let input = Input::u8("input", 2).stored([1, 0]);
    let gain = Param::f32("gain").range(0.0f32, 4.0);
    let radius = Param::i32("radius");
    let edge = input.repeat_edge();
    let r = rdom!(dx: (-&radius, 2 * &radius + 1), dy: (-1, 3));
    let disc = r.clone().filter((r.x * r.x + r.y * r.y).le(&radius));
    let blur = func("blur", (X, Y), sum(&disc, edge.at((X + r.x, Y + r.y)).f32()) * &gain);
    let s = rdom([(1, 7)]);
    let scan = func("scan", (X, Y), undef(Type::F32))
        .update(|f| f.set((X, 0), blur.at((X, 0))))
        .over(&s, |f| f.set((X, s.x), f.at((X, s.x - 1)) * 0.5 + blur.at((X, s.x))));
    let best = argmin(&s, scan.at((X, s.x)));
    Pipeline::new("busy", [func("out", X, (best.at[0].clone(), best.value))]).expect("it is right")
}

#[test]
fn listing() {
    assert_snapshot!(busy().to_string(), @"
    pipeline busy
      input  input(d0, d1): u8 stored [1, 0]
      param  radius: i32
      param  gain: f32 in 0.0..=4.0
      input.repeat_edge(x, y) = input(max(min(x, input.min(0) + input.extent(0) - 1), input.min(0)), max(min(y, input.min(1) + input.extent(1) - 1), input.min(1)))
      blur.sum0(x, y) = 0.0
      blur.sum0(x, y) = blur.sum0(x, y) + f32(input.repeat_edge(x + dx, y + dy))  over dx in (-radius, 2 * radius + 1), dy in (-1, 3) where dx * dx + dy * dy <= radius  in any order
      blur(x, y) = blur.sum0(x, y) * gain
      scan(x, y) = undef
      scan(x, 0) = blur(x, 0)
      scan(x, rx) = scan(x, rx - 1) * 0.5 + blur(x, rx)  over rx in (1, 7)
      out.argmin0(x) = (1, inf)
      out.argmin0(x) = (select(scan(x, rx) < out.argmin0(x)[1], rx, out.argmin0(x)[0]), select(scan(x, rx) < out.argmin0(x)[1], scan(x, rx), out.argmin0(x)[1]))  over rx in (1, 7)
      out(x) = (out.argmin0(x)[0], out.argmin0(x)[1])
    ");
}

#[test]
fn only_params_that_shape_regions_are_specialised() {
    let pipeline = busy();
    let specialised = pipeline.specialised_params();
    let of = |name| specialised[pipeline.param_named(name).expect("it is there")];
    assert!(of("radius") && !of("gain"));
}

#[test]
fn files_give_back_the_same_pipeline() {
    let pipeline = busy();
    let again = Pipeline::from_json(&pipeline.to_json()).expect("it was written by us");
    assert_eq!(again.to_string(), pipeline.to_string());
    assert_eq!(again.to_json(), pipeline.to_json());
    assert_eq!(again.structural_hash(), pipeline.structural_hash());
}

#[test]
fn constants_survive_files_bit_for_bit() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE, 0.1, 1e-45, f32::MAX] {
        let pipeline = Pipeline::new("p", [func("f", (), value)]).expect("it is right");
        let again = Pipeline::from_json(&pipeline.to_json()).expect("it was written by us");
        assert_eq!(again.exprs().constant(ExprId::new(0)), pipeline.exprs().constant(ExprId::new(0)));
    }
}

#[test]
fn deep_chains_in_files_are_refused() {
    let mut text = busy().to_json();
    let end = text.rfind("]}").expect("the nodes come last");
    let nodes = busy().exprs().len();
    let chain = (0..20_000).map(|i| {
        format!(
            r#",{{"kind":{{"op":{{"unary":"neg"}}}},"type":"i32","args":[{}]}}"#,
            if i == 0 { 0 } else { nodes + i - 1 }
        )
    });
    text.insert_str(end, &chain.collect::<String>());
    let error = Pipeline::from_json(&text).expect_err("it is too deep").to_string();
    assert!(error.contains("nested more than"), "{error}");
}

/// A small pipeline with parametrised names and constants.
fn variant(var: &str, inner: &str, output: &str, input: &str, factor: f32) -> u128 {
    let v = Var::new(var);
    let image = Input::f32(input, 1);
    let inner = func(inner, v, image.at(v) * factor);
    Pipeline::new("p", [func(output, v, inner.at(v + 1))]).expect("it is right").structural_hash()
}

#[test]
fn the_hash_is_of_what_is_computed() {
    let base = variant("x", "a", "out", "image", 2.0);
    assert_eq!(base, variant("t", "b", "out", "image", 2.0), "names inside do not matter");
    assert_ne!(base, variant("x", "a", "result", "image", 2.0), "the outputs' names do");
    assert_ne!(base, variant("x", "a", "out", "picture", 2.0), "the inputs' names do");
    assert_ne!(base, variant("x", "a", "out", "image", 2.5), "constants do");
    // The algorithm is fixed. This changes only with a new version of the hash.
    assert_eq!(format!("{base:032x}"), "6a34d9324d13b9bcc37536aafa403fe6");
}

proptest! {
    #[test]
    fn broken_files_never_panic(text in ".{0,200}") {
        let _ = Pipeline::from_json(&text);
    }

    #[test]
    fn mutated_files_never_panic(position in 0usize..10_000, byte in any::<u8>(), cut in 0usize..10_000) {
        let mut bytes = busy().to_json().into_bytes();
        let len = bytes.len();
        bytes[position % len] = byte;
        if cut < 2_000 {
            bytes.truncate(cut % len);
        }
        if let Ok(pipeline) = Pipeline::from_json(&String::from_utf8_lossy(&bytes)) {
            let _ = (pipeline.to_string(), pipeline.structural_hash(), pipeline.specialised_params());
        }
    }

    #[test]
    fn shuffled_numbers_never_panic(numbers in prop::collection::vec((0usize..400, 0u32..40), 1..6)) {
        // Replaces integers inside the file: ids, dimensions, value indices.
        let text = busy().to_json();
        let mut parts: Vec<String> = text.split_inclusive(|c: char| !c.is_ascii_digit()).map(String::from).collect();
        for (position, number) in numbers {
            let len = parts.len();
            let part = &mut parts[position % len];
            if part.starts_with(|c: char| c.is_ascii_digit()) {
                let tail: String = part.chars().skip_while(char::is_ascii_digit).collect();
                *part = format!("{number}{tail}");
            }
        }
        if let Ok(pipeline) = Pipeline::from_json(&parts.concat()) {
            let _ = (pipeline.to_string(), pipeline.structural_hash(), pipeline.specialised_params());
        }
    }
}

/// The page that defines the language, and the page of the types, name every type.
#[test]
fn all_types_are_documented() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (page, prefix) in [("src/lib.rs", "//! "), ("../../docs/types.md", "")] {
        let text = std::fs::read_to_string(root.join(page)).expect("the page is there");
        let rows = text.lines().filter_map(|line| line.strip_prefix(prefix));
        let table = rows.skip_while(|row| !row.contains("| values |")).take_while(|row| row.starts_with('|'));
        let first = table.filter_map(|row| row.split('|').nth(1));
        let listed: Vec<&str> = first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        let mut types: Vec<&str> = Type::ALL.iter().map(|ty| ty.name()).collect();
        let mut listed: Vec<&str> = listed.into_iter().filter(|name| *name != "Type").collect();
        types.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, types, "{page}");
    }
}

/// Whether the only update of a pipeline may be computed in any order.
fn is_order_free(value: Expr) -> bool {
    let pipeline = Pipeline::new("p", [func("out", X, value)]).expect("it is right");
    let updates: Vec<bool> =
        pipeline.funcs().values().flat_map(|func| &func.stages[1..]).map(|stage| stage.reassociate).collect();
    assert_eq!(updates.len(), 1);
    updates[0]
}

#[test]
fn sums_and_products_of_floats_are_free_of_an_order_unless_one_is_asked_for() {
    let r = rdom([(0, 9)]);
    let term = |ty: Type| Input::new("input", ty, 1).at(X + r.x);
    for ty in [Type::F32, Type::F64, Type::F16, Type::BF16] {
        for reduction in [sum(&r, term(ty)), product(&r, term(ty))] {
            assert!(is_order_free(reduction.clone()), "{ty}");
            assert!(!is_order_free(reduction.in_order()), "{ty}");
        }
        assert!(!is_order_free(maximum(&r, term(ty))), "its order changes nothing");
    }
    assert!(!is_order_free(sum(&r, term(Type::I32))), "its order changes nothing");
    assert!(!is_order_free(sum(&r, term(Type::U8)).in_order()));
}

#[test]
fn factors_of_16_bits_are_widened_where_their_product_is_summed() {
    let r = rdom([(0, 9)]);
    for ty in [Type::F16, Type::BF16] {
        let [a, b] = ["a", "b"].map(|name| Input::new(name, ty, 1).at(X + r.x));
        let hash =
            |value: Expr| Pipeline::new("p", [func("out", X, value)]).expect("it is right").structural_hash();
        let widened = hash(sum(&r, a.f32() * b.f32() * a.f32()).cast(ty));
        assert_eq!(hash(sum(&r, &a * &b * &a)), widened);
        assert_ne!(hash(sum(&r, (&a * &b).f32() * a.f32()).cast(ty)), widened);
        assert_eq!(hash(product(&r, &a * &b)), hash(product(&r, (&a * &b).f32()).cast(ty)));
    }
}
