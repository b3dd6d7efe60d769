//! Bounds: the boxes of whole pipelines.

use std::collections::HashMap;

use warploom_lang::bounds::*;
use warploom_lang::*;

/// The box of every Func and input, by name.
fn boxes(outputs: impl IntoIterator<Item = Func>, sizes: &[(&str, Region)]) -> HashMap<String, String> {
    try_boxes(outputs, sizes).unwrap()
}

fn try_boxes(
    outputs: impl IntoIterator<Item = Func>,
    sizes: &[(&str, Region)],
) -> Result<HashMap<String, String>, BoundsError> {
    let pipeline = Pipeline::new("p", outputs).unwrap();
    let mut request = Realisation::new(&pipeline);
    for (name, region) in sizes {
        request = match pipeline.input_named(name) {
            Some(_) => request.input(name, region.clone()),
            None => request.output(name, region.clone()),
        };
    }
    let regions = infer(&pipeline, &request)?;
    let inputs = pipeline.inputs().iter().map(|(id, input)| (&input.name, &regions.inputs[id]));
    let funcs = pipeline.funcs().iter().map(|(id, func)| (&func.name, &regions.funcs[id].region));
    Ok(inputs.chain(funcs).map(|(name, region)| (name.clone(), region.to_string())).collect())
}

fn size(extents: &[i64]) -> Region {
    Region::of_extents(extents)
}

fn line(min: i64, extent: i64) -> Region {
    Region(vec![Range::new(min, extent)])
}

#[test]
fn stencils_grow_by_their_reach() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("in", 2);
    let blur_x = func("bx", (x, y), input.at((x - 1, y)) + input.at((x + 1, y)));
    let blur_y = func("by", (x, y), blur_x.at((x, y - 2)) + blur_x.at((x, y)));
    let turned = func("out", (x, y), blur_y.at((y, x)) + blur_y.at((3 - y, x)));
    let found = boxes([turned], &[("in", Region(vec![Range::new(-9, 30); 2])), ("out", size(&[8, 5]))]);
    assert_eq!(found["by"], "[-1, 5) x [0, 8)");
    assert_eq!(found["bx"], "[-1, 5) x [-2, 8)");
    assert_eq!(found["in"], "[-2, 6) x [-2, 8)");
}

#[test]
fn pyramids_halve_and_double() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let down = |name: &str, at: &dyn Fn(Expr) -> Expr| {
        func(name, x, at(2 * x - 1) + at(2 * x) + at(2 * x + 1) + at(2 * x + 2))
    };
    let d1 = down("d1", &|i| input.at(i));
    let d2 = down("d2", &|i| d1.at(i));
    let up = func("up", x, d2.at(x / 2 - 1 + 2 * (x % 2)) + d2.at(x / 2));
    let found = boxes([up], &[("in", line(-20, 60)), ("up", line(0, 8))]);
    assert_eq!(found["d2"], "[-1, 5)");
    assert_eq!(found["d1"], "[-3, 11)");
    assert_eq!(found["in"], "[-7, 23)");
}

#[test]
fn boundary_conditions_need_no_more_than_there_is() {
    type Condition = fn(&Input) -> Func;
    let conditions: [(&str, Condition); 5] = [
        ("repeat_edge", Input::repeat_edge),
        ("repeat_image", Input::repeat_image),
        ("mirror_image", Input::mirror_image),
        ("mirror_interior", Input::mirror_interior),
        ("constant_exterior", |input| input.constant_exterior(0.0)),
    ];
    let x = vars!(x);
    for (name, condition) in conditions {
        for low in [-2, 0, 5] {
            for extent in [1, 2, 3, 8] {
                let input = Input::f32("in", 1);
                let out = func("out", x, condition(&input).at(x));
                let whole = line(low, extent);
                let need = |asked: Region| {
                    boxes([out.clone()], &[("in", whole.clone()), ("out", asked)])["in"].clone()
                };
                // A request far beyond both sides needs the whole input. A request inside needs
                // just its own points.
                assert_eq!(need(line(low - 20, 60)), whole.to_string(), "{name}");
                assert_eq!(need(whole.clone()), whole.to_string(), "{name}");
                assert_eq!(
                    need(line(low + extent - 1, 1)),
                    format!("[{0}, {1})", low + extent - 1, low + extent)
                );
                // A request anywhere else never reads outside.
                for start in low - 9..low + 9 {
                    need(line(start, 2));
                }
            }
        }
    }
}

#[test]
fn clamped_reads_on_one_side_need_one_side() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let out = func("out", x, input.repeat_edge().at(x - 5));
    let found = boxes([out], &[("in", line(0, 9)), ("out", line(0, 8))]);
    assert_eq!(found["in"], "[0, 3)");
    let out = func("out", x, input.mirror_image().at(x - 3));
    let found = boxes([out], &[("in", line(0, 9)), ("out", line(0, 3))]);
    assert_eq!(found["in"], "[0, 3)");
}

#[test]
fn scans_and_scatters_keep_all_they_touch() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("in", 2);
    let r = rdom([(1, 9)]);
    let scan = func("scan", (x, y), undef(Type::F32))
        .update(|f| f.set((0, y), input.at((0, y))))
        .over(&r, |f| f.set((r.x, y), f.at((r.x - 1, y)) + input.at((r.x, y))));
    let found =
        boxes([scan], &[("in", size(&[10, 10])), ("scan", Region(vec![Range::new(3, 2), Range::new(4, 3)]))]);
    assert_eq!((found["scan"].as_str(), found["in"].as_str()), ("[0, 10) x [4, 7)", "[0, 10) x [4, 7)"));

    let image = Input::u8("image", 2);
    let r = rdom([(0, image.extent(0)), (0, image.extent(1))]);
    let histogram = func("histogram", x, 0).over(&r, |f| f.add(image.at((r.x, r.y)).i32() / 16, 1));
    let out = func("out", x, histogram.at(x));
    let found = boxes([out], &[("image", size(&[7, 5])), ("out", line(2, 3))]);
    assert_eq!((found["histogram"].as_str(), found["image"].as_str()), ("[0, 16)", "[0, 7) x [0, 5)"));
}

#[test]
fn loaded_indices_have_the_range_of_what_is_loaded() {
    let x = vars!(x);
    let (map, table) = (Input::new("map", Type::I32, 1), Input::u8("table", 1));
    let place = func("place", x, clamp(map.at(x), 3, 6) + 1);
    let out = func("out", x, table.at(place.at(x)).i32() + table.at(map.at(x) % 4).i32());
    let found = boxes([out], &[("map", line(0, 9)), ("table", line(0, 9)), ("out", line(0, 9))]);
    assert_eq!(found["table"], "[0, 8)");
}

#[test]
fn indices_of_sixty_four_bits_are_clamped_or_refused() {
    let x = vars!(x);
    let table = Input::u8("table", 1);
    for ty in [Type::I64, Type::U64] {
        let map = Input::new("map", ty, 1);
        let sizes = [("map", line(0, 9)), ("table", line(0, 9)), ("out", line(0, 9))];
        let need = |index: Expr| {
            let found = try_boxes([func("out", x, table.at(index))], &sizes);
            found.map(|boxes| boxes["table"].clone())
        };
        let at = map.at(x);
        assert_eq!(need(clamp(&at, 2, 6)).unwrap(), "[2, 7)", "{ty}");
        assert_eq!(need(&at % 5).unwrap(), "[0, 5)", "{ty}");
        // A clamp after the conversion to an index, which saturates.
        assert_eq!(need(clamp(at.saturating_cast(Type::I32), 1, 3)).unwrap(), "[1, 4)", "{ty}");
        let hashed = (&at * constant(0x9e37_79b9_7f4a_7c15_u64).cast(ty)).u64() >> 61u64;
        assert_eq!(need(hashed).unwrap(), "[0, 8)", "{ty}");
        for index in [at.clone(), &at + 1, max(&at, 0), min(&at, 8) - 9, clamp(at.i32(), 0, 8).cast(ty) * &at]
        {
            match need(index) {
                Err(BoundsError::Unbounded { consumer, producer, dimension: 0, place: Some(_) }) => {
                    assert_eq!((consumer.as_str(), producer.as_str()), ("out", "table"), "{ty}");
                }
                other => panic!("{ty}: {other:?}"),
            }
        }
        // A boundary condition takes any index.
        let edge = func("out", x, table.repeat_edge().at(at));
        assert_eq!(boxes([edge], &sizes)["table"], "[0, 9)", "{ty}");
    }
    // What is known of a Func's values holds for those of 64 bits.
    let place = func("place", x, clamp(Input::new("map", Type::U64, 1).at(x), 3, 6) + 1);
    let out = func("out", x, table.at(place.at(x)));
    let found = boxes([out], &[("map", line(0, 9)), ("table", line(0, 9)), ("out", line(0, 9))]);
    assert_eq!(found["table"], "[4, 8)");
}

#[test]
fn an_empty_domain_needs_nothing() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let n = Param::i32("n");
    let r = rdom([(0, &n)]);
    let out = func("out", x, sum(&r, input.at(x + r.x)));
    let pipeline = Pipeline::new("p", [out]).unwrap();
    for (extent, needed) in [(0, "[0, 0)"), (-3, "[0, 0)"), (1, "[4, 6)"), (3, "[4, 8)")] {
        let request =
            Realisation::new(&pipeline).input("in", line(0, 9)).output("out", line(4, 2)).param("n", extent);
        let regions = infer(&pipeline, &request).unwrap();
        assert_eq!(regions.inputs.values().next().unwrap().to_string(), needed, "extent {extent}");
    }
}

#[test]
fn domains_have_the_bounds_the_params_give() {
    let q = Param::f32("q");
    let n = Param::i32("n");
    let extents =
        [select(q.eq(0.0), 3, 1), (cos(&q) * 5.0).i32(), exp(&q).i32() + 2, (n.expr() << 3) >> 2, &n + 2];
    let expected = [[3, 5, 3, 0, 2], [1, 2, 4, 2, 3]];
    for (number, extent) in extents.into_iter().enumerate() {
        let r = rdom([(0, extent)]);
        let total = func("total", (), 0).over(&r, |f| f.add((), r.x));
        let pipeline = Pipeline::new("p", [total]).unwrap();
        for (value, expected) in expected.iter().enumerate() {
            let mut request = Realisation::new(&pipeline).output("total", size(&[]));
            request = match pipeline.param_named("q") {
                Some(_) => request.param("q", value as f32),
                None => request.param("n", value as i32),
            };
            let regions = infer(&pipeline, &request).unwrap();
            let domain = &regions.funcs.values().next().unwrap().stages[1].domain;
            assert_eq!(domain, &[Range::new(0, expected[number])], "extent {number}, Param {value}");
        }
    }
}

#[test]
fn a_param_without_a_value_has_its_default_or_the_middle_of_its_range() {
    let x = vars!(x);
    let value = |param: Param| {
        let pipeline = Pipeline::new("p", [func("out", x, &param + &param)]).unwrap();
        let request = Realisation::new(&pipeline).output("out", line(0, 9));
        let known = request.params.values().next().copied().flatten();
        (known, infer(&pipeline, &request).map(|_| ()))
    };
    assert_eq!(value(Param::f32("gain").range(0.0, 3.0f32)), (Some(1.5f32.into()), Ok(())));
    // A literal without a suffix is an `f64`.
    assert_eq!(value(Param::f32("gain").range(0.0, 3.0)), (Some(1.5f32.into()), Ok(())));
    assert_eq!(value(Param::new("gain", Type::F16).default(0.1)), (Some(f16::from_f32(0.1).into()), Ok(())));
    assert_eq!(value(Param::new("gain", Type::F64).default(0.1)), (Some(0.1f64.into()), Ok(())));
    assert_eq!(value(Param::i32("taps").range(-4, 1)), (Some((-2).into()), Ok(())));
    assert_eq!(value(Param::i32("taps").range(1, 9).default(3)), (Some(3.into()), Ok(())));
    let (none, error) = value(Param::f32("gain"));
    assert!(none.is_none() && matches!(error, Err(BoundsError::Missing { what: "value", .. })));
    let (_, error) = value(Param::i32("taps").range(1, 9).default(30));
    assert!(matches!(error, Err(BoundsError::ParamRange { .. })), "{error:?}");
}

// ---- Rejected requests.

#[test]
fn requests_that_do_not_fit_the_pipeline() {
    let x = vars!(x);
    let input = Input::f32("in", 1);
    let gain = Param::f32("gain").range(0.0, 2.0);
    let pipeline = Pipeline::new("p", [func("out", x, input.at(x) * &gain)]).unwrap();
    let none = || Realisation::new(&pipeline);
    let sized = || none().input("in", line(0, 9)).output("out", line(0, 9));
    let refuse = |request: Realisation| infer(&pipeline, &request).unwrap_err();

    assert!(infer(&pipeline, &sized().param("gain", 1.0f32)).is_ok());
    let error = refuse(sized().param("gian", 1.0f32));
    assert!(matches!(&error, BoundsError::Unknown { name, .. } if name == "gian"), "{error}");
    // An output is not an input.
    let error = refuse(sized().param("gain", 1.0f32).input("out", line(0, 9)));
    assert!(matches!(&error, BoundsError::Unknown { name, .. } if name == "out"), "{error}");
    let error = refuse(none().input("in", line(0, 9)).param("gain", 1.0f32));
    assert!(matches!(&error, BoundsError::Missing { name, what: "size", .. } if name == "out"), "{error}");
    let error = refuse(sized().param("gain", 1i32));
    let (expected, got) = (Type::F32, Type::I32);
    assert_eq!(error, BoundsError::ParamType { name: "gain".into(), expected, got });
    for value in [-0.5, 2.5, f32::NAN] {
        let error = refuse(sized().param("gain", value));
        assert!(matches!(error, BoundsError::ParamRange { .. }), "{error}");
    }
    let error = refuse(sized().param("gain", 1.0f32).output("out", size(&[9, 9])));
    assert_eq!(error, BoundsError::Rank { name: "out".into(), got: 2, expected: 1 });
    for (min, extent) in [(0, 0), (0, 1 << 31), (-(1 << 31), 0), (0, i64::MAX)] {
        let error = refuse(sized().param("gain", 1.0f32).output("out", line(min, extent)));
        assert_eq!(error, BoundsError::Extent { name: "out".into(), dimension: 0, extent });
    }
    for (min, extent) in [(1 << 30, 1), ((1 << 30) - 3, 4), (-(1 << 31), 5), (i64::MAX, 2)] {
        let error = refuse(sized().param("gain", 1.0f32).output("out", line(min, extent)));
        let range = Range::new(min, extent);
        assert_eq!(error, BoundsError::Position { name: "out".into(), dimension: 0, range, place: None });
    }
    let error = refuse(sized().param("gain", 1.0f32).output("out", line(1 << 30, 8)));
    assert_eq!(
        error.to_string(),
        "`out` has positions from 1073741824 to 1073741831 in dimension 0, but positions must lie between -2^30 and \
         2^30; choose a box closer to 0"
    );
}

#[test]
fn accesses_without_bounds_are_refused() {
    let x = vars!(x);
    let input = Input::new("in", Type::I32, 1);
    let unbounded = |index: Expr| {
        let error = try_boxes([func("out", x, input.at(index))], &[("in", line(0, 9)), ("out", line(0, 9))]);
        match error {
            Err(BoundsError::Unbounded { consumer, producer, dimension: 0, place: Some(_) }) => {
                assert_eq!((consumer.as_str(), producer.as_str()), ("out", "in"));
            }
            other => panic!("{other:?}"),
        }
    };
    unbounded(input.at(x));
    unbounded(input.at(x) * 2 - input.at(x));
    unbounded(x + i32::MAX);
    unbounded((x + i32::MAX) - i32::MAX);
    unbounded(x * 65_536 * 65_536);
    unbounded(random_u32(1, [x]).i32());
}

/// An index that has bounds, but far from 0, is reported by its positions.
#[test]
fn far_positions_are_named() {
    let x = vars!(x);
    let far = func("far", x, x * 2);
    let error = |index: Expr| {
        let out = func("out", x, far.at(index));
        try_boxes([out], &[("out", line(0, 9))]).unwrap_err()
    };
    match error(x + 1_100_000_000) {
        BoundsError::FarIndex { consumer, producer, dimension: 0, range, place: Some(_) } => {
            assert_eq!((consumer.as_str(), producer.as_str()), ("out", "far"));
            assert_eq!(range, Range::new(1_100_000_000, 9));
        }
        other => panic!("{other:?}"),
    }
    let text = error(x - (1 << 30) - 1).to_string();
    assert!(
        text.starts_with("`out` reads `far` at positions from -1073741825 to -1073741817 in dimension 0"),
        "{text}"
    );
    // The last position of an index may be 2^30, that of a box one less.
    match error(x + (1 << 30) - 8) {
        BoundsError::Position { name, dimension: 0, range, place: Some(_) } => {
            assert_eq!((name.as_str(), range.last()), ("far", 1 << 30));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn accesses_beyond_an_input_are_refused() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("in", 2);
    let out = func("out", (x, y), input.at((x, y + 1)));
    let error = try_boxes([out], &[("in", size(&[9, 9])), ("out", size(&[9, 9]))]).unwrap_err();
    match error {
        BoundsError::LeavesInput { consumer, input, dimension: 1, needed, available, .. } => {
            assert_eq!((consumer.as_str(), input.as_str()), ("out", "in"));
            assert_eq!((needed, available), (Range::new(1, 9), Range::new(0, 9)));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn boxes_that_cannot_be_counted_are_refused() {
    let (x, y) = vars!(x, y);
    let wide = func("wide", (x, y), x + y);
    let out = func("out", (x, y), wide.at((x * 100_000, y * 100_000)));
    let error = try_boxes([out], &[("out", size(&[100, 100]))]).unwrap_err();
    assert!(matches!(&error, BoundsError::TooLarge { func, .. } if func == "wide"), "{error}");
}
