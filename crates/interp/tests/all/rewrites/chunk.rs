//! `chunk`: scans of all operators, in both directions, along all dimensions.

use warploom_lang::*;

use super::check::{near, noise, refusal, rewrite, same};
use super::cut::{two_way, warnings_of};

/// Lengths around chunks of 4, of which the first has the value before the scan.
const LENGTHS: [i32; 9] = [0, 1, 2, 3, 4, 5, 7, 8, 14];

/// A running sum with the first value at `from`, towards larger or smaller indices.
fn running_sum(ty: Type, from: i32, length: i32, forward: bool) -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", ty, 2);
    let r = rdom([(2, length)]);
    let sign = if forward { 1 } else { -1 };
    let at = (r.x - 2) * sign + from;
    let start = (x * 3 + y).cast(ty);
    let sum =
        func("sum", (x, y), start).over(&r, |f| f.set((&at, y), f.at((&at - sign, y)) + input.at((y, r.x))));
    Pipeline::new("running_sum", [sum]).unwrap()
}

#[test]
fn sums_of_integers_keep_their_bits() {
    for ty in [Type::U32, Type::I32, Type::U8] {
        let input = noise(ty, &[3, 20]);
        for length in LENGTHS {
            for (from, forward) in [(1, true), (0, true), (15, false), (-1, true)] {
                let pipeline = running_sum(ty, from, length, forward);
                same(&pipeline, &["chunk sum.1.rx 4"], &[("input", &input)], &[18, 3]);
            }
        }
    }
}

#[test]
fn the_rewritten_pipeline_has_five_funcs() {
    let x = vars!(x);
    let input = Input::new("input", Type::I32, 1);
    let r = rdom([(0, input.extent(0))]);
    let sum = func("sum", x, 7).over(&r, |f| f.set(r.x, f.at(r.x - 1) + input.at(r.x)));
    let pipeline = Pipeline::new("sum", [sum]).unwrap();
    assert_eq!(
        rewrite(&pipeline, &["chunk sum.1.rx 4"]).to_string(),
        "\
pipeline sum
  input  input(d0): i32
  sum.start(x) = 7
  sum.ends(rxo) = select(rxo == 0, sum.start(-1), 0 + input(-1 + min(max(rxo * 4, 1), input.extent(0))))
  sum.ends(rxo) = sum.ends(rxo) + input(-1 + min(rxi + rxo * 4, input.extent(0)))  over rxi in (1, 3)
  sum.carry(rxo) = 0
  sum.carry(rxo) = sum.carry(rxo - 1) + sum.ends(rxo - 1)  over rxo in (1, input.extent(0) / 4)
  sum.scan(rxi, rxo) = undef
  sum.scan(0, rxo) = select(rxo == 0, sum.start(-1), sum.carry(rxo) + input(-1 + min(max(rxo * 4, 1), input.extent(0))))
  sum.scan(rxi, rxo) = sum.scan(rxi - 1, rxo) + input(-1 + min(rxi + rxo * 4, input.extent(0)))  over rxi in (1, min(input.extent(0), 3))
  sum(x) = select(0 <= x - -1 & x - -1 <= input.extent(0), sum.scan(max(min((x - -1) % 4, input.extent(0)), 0), max(min((x - -1) / 4, input.extent(0) / 4), 0)), sum.start(x))
"
    );
}

/// A running sum of integers in either direction, for which only the first value is defined.
fn sum_from_one_value(forward: bool) -> Pipeline {
    let x = vars!(x);
    let input = Input::new("input", Type::I32, 1);
    let r = rdom!(rx: (1, input.extent(0) - 1));
    let end = input.extent(0) - 1;
    let (from, at, before) = match forward {
        true => (Expr::from(0), Expr::from(r.x), r.x - 1),
        false => (end.clone(), &end - r.x, &end - r.x + 1),
    };
    let sum = func("sum", x, undef(Type::I32))
        .update(|f| f.set(&from, input.at(&from)))
        .over(&r, |f| f.set(&at, f.at(&before) + input.at(&at)));
    Pipeline::new("sum", [sum]).unwrap()
}

#[test]
fn only_chunks_are_read_if_nothing_else_is_defined() {
    for forward in [true, false] {
        let pipeline = sum_from_one_value(forward);
        let chunked = rewrite(&pipeline, &["chunk sum.2.rx 4"]).to_string();
        let (_, read) = chunked.rsplit_once("  sum(x) = sum.scan(").unwrap();
        assert!(!read.contains("sum.start"), "{chunked}");
        for length in [1, 2, 3, 4, 5, 8, 9, 15] {
            let input = noise(Type::I32, &[length]);
            same(&pipeline, &["chunk sum.2.rx 4"], &[("input", &input)], &[length]);
        }
    }
}

/// What a block of values of a Func needs of its chunks: positions in a chunk, and chunks.
fn needed(pipeline: &Pipeline, line: &str, block: Range, extent: i64) -> Vec<Range> {
    let pipeline = rewrite(pipeline, &[line]);
    let request = Realisation::new(&pipeline).input("input", Region::of_extents(&[extent]));
    let regions = infer(&pipeline, &request.output("sum", Region(vec![block]))).unwrap();
    regions.funcs[pipeline.func_named("sum.scan").unwrap()].stages[2].needed.0.clone()
}

#[test]
fn a_block_of_values_is_a_chunk() {
    let (x, input) = (vars!(x), Input::new("input", Type::I32, 1));
    let r = rdom!(rx: (1, input.extent(0) - 1));
    let everywhere = func("sum", x, input.at(x)).over(&r, |f| f.set(r.x, f.at(r.x - 1) + f.at(r.x)));
    let everywhere = Pipeline::new("sum", [everywhere]).unwrap();
    for b in 0..4 {
        let block = Range::new(4 * b, 4);
        let forward = sum_from_one_value(true);
        for (pipeline, line) in [(&everywhere, "chunk sum.1.rx 4"), (&forward, "chunk sum.2.rx 4")] {
            for extent in [16, 19] {
                let chunk = vec![Range::new(0, 4), Range::new(b, 1)];
                assert_eq!(needed(pipeline, line, block, extent), chunk, "{block:?} of {extent}");
            }
        }
        let chunk = vec![Range::new(0, 4), Range::new(3 - b, 1)];
        assert_eq!(needed(&sum_from_one_value(false), "chunk sum.2.rx 4", block, 16), chunk);
    }
}

#[test]
fn carries_in_chunks() {
    let (ends, carries) = ("chunk sum.1.rx 2", "chunk sum.carry.1.rxo 3");
    let input = noise(Type::I32, &[3, 20]);
    for length in [2, 3, 5, 6, 7, 12, 14] {
        for (from, forward) in [(1, true), (15, false)] {
            let pipeline = running_sum(Type::I32, from, length, forward);
            same(&pipeline, &[ends, carries], &[("input", &input)], &[18, 3]);
        }
    }
    let pipeline = recurrence(|before, here| before * 0.5 + here, true);
    let input = noise(Type::F32, &[14, 3]);
    let lines = ["chunk f.1.rx 2", "chunk f.carry.1.rxo 3"];
    near(&pipeline, &lines, &[("input", &input)], &[15, 3], 14.0 * 8.0);
}

#[test]
fn extents_of_inputs() {
    let x = vars!(x);
    let input = Input::new("input", Type::U32, 1);
    let width = input.extent(0);
    let r = rdom!(rx: (1, &width - 1));
    let forth = func("forth", x, input.at(clamp(x, 0, &width - 1)))
        .over(&r, |f| f.set(r.x, f.at(r.x - 1) ^ f.at(r.x)));
    let at = &width - 1 - r.x;
    let back = func("back", x, forth.at(x) * 5u32).over(&r, |f| f.set(&at, f.at(&at) * f.at(&at + 1)));
    let pipeline = Pipeline::new("ends", [back]).unwrap();
    for length in [1, 2, 4, 5, 6, 9, 15] {
        let input = noise(Type::U32, &[length]);
        let lines = ["chunk forth.1.rx 4", "chunk back.1.rx 4"];
        for lines in [&lines[..], &lines[..1], &lines[1..]] {
            same(&pipeline, lines, &[("input", &input)], &[length + 3]);
        }
    }
}

#[test]
fn minima_and_maxima_of_floats_are_exact() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    for length in LENGTHS {
        let r = rdom([(0, length)]);
        let back = 13 - r.x;
        let low = func("low", (x, y), 3.0)
            .over(&r, |f| f.set((r.x, y), min(input.at((r.x, y)), f.at((r.x - 1, y)))));
        let high = func("high", (x, y), low.at((x, y)))
            .over(&r, |f| f.set((x, &back), max(f.at((x, &back + 1)), input.at((x, &back)))));
        let pipeline = Pipeline::new("extremes", [high]).unwrap();
        let input = noise(Type::F32, &[14, 15]);
        let lines = ["chunk low.1.rx 4", "chunk high.1.rx 4"];
        same(&pipeline, &lines, &[("input", &input)], &[14, 14]);
    }
}

#[test]
fn extremes_of_nan_are_nan() {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let r = rdom([(0, 14)]);
    let low = func("low", x, f32::NAN).over(&r, |f| f.set(r.x, min(f.at(r.x - 1), input.at(r.x))));
    let all = func("all", x, low.at(x)).over(&r, |f| f.set(x, max(f.at(x), input.at(min(r.x, x)))));
    let pipeline = Pipeline::new("nan", [all]).unwrap();
    let mut input = noise(Type::F32, &[14]);
    for at in 0..9 {
        input.set(&[at], Value::from(f32::NAN)).unwrap();
    }
    let lines = ["chunk low.1.rx 4", "factor all.1.rx outer 4"];
    same(&pipeline, &lines, &[("input", &input)], &[14]);
}

#[test]
fn summed_area_tables() {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::U32, 2);
    let rows = rdom!(rx: (1, input.extent(0) - 1));
    let columns = rdom!(ry: (1, input.extent(1) - 1));
    let row = func("row", (x, y), input.at((x, y)))
        .over(&rows, |f| f.set((rows.x, y), f.at((rows.x - 1, y)) + f.at((rows.x, y))));
    let table = func("table", (x, y), row.at((x, y)))
        .over(&columns, |f| f.set((x, columns.x), f.at((x, columns.x - 1)) + f.at((x, columns.x))));
    let pipeline = Pipeline::new("table", [table]).unwrap();
    let lines = ["chunk row.1.rx 4", "chunk table.1.ry 3"];
    for (width, height) in [(1, 1), (1, 5), (4, 5), (9, 13), (14, 3)] {
        let input = noise(Type::U32, &[width, height]);
        for lines in [&lines[..], &lines[..1], &lines[1..]] {
            same(&pipeline, lines, &[("input", &input)], &[width, height]);
        }
    }
    // Chunks of chunks, and of carries.
    let input = noise(Type::U32, &[9, 13]);
    for more in ["chunk table.carry.1.ryo 2", "chunk table.scan.2.ryi 2"] {
        same(&pipeline, &[lines[0], lines[1], more], &[("input", &input)], &[9, 13]);
    }
}

#[test]
fn averages_in_both_directions() {
    let pipeline = two_way(true);
    for height in [1, 2, 4, 5, 6, 14, 40] {
        let input = noise(Type::F32, &[3, height]);
        let lines = ["cut blur at 3", "chunk blur.cut.2.ry 4", "chunk blur.1.ry 4"];
        near(&pipeline, &lines, &[("input", &input)], &[3, height], 16.0);
        near(&pipeline, &["chunk blur.3.ry 5"], &[("input", &input)], &[3, height], 16.0);
    }
}

#[test]
fn no_undefined_point_is_read() {
    let lines = ["cut blur at 3", "chunk blur.cut.2.ry 4", "chunk blur.1.ry 4"];
    for height in [1, 2, 4, 5, 14] {
        assert_eq!(warnings_of(&rewrite(&two_way(true), &lines), height), []);
        assert_eq!(warnings_of(&rewrite(&two_way(true), &lines[..2]), height), []);
        assert_eq!(warnings_of(&rewrite(&two_way(true), &["chunk blur.3.ry 4"]), height), []);
    }
}

/// A scan of floats along x, from the value before and the input.
fn recurrence(step: impl Fn(Expr, Expr) -> Expr, marked: bool) -> Pipeline {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom([(0, 14)]);
    let f = func("f", (x, y), (x + y).f32())
        .over(&r, |f| f.set((r.x, y), step(f.at((r.x - 1, y)), input.at((r.x, y)))));
    Pipeline::new("recurrence", [if marked { f.reassociate() } else { f }]).unwrap()
}

#[test]
fn linear_recurrences_in_any_arrangement() {
    let a = &Param::f32("a").range(-1.0, 1.0);
    let b = &Param::f32("b").range(0.0, 0.5);
    let input = noise(Type::F32, &[14, 3]);
    type Step = fn(Expr, Expr, &Param, &Param) -> Expr;
    let steps: [Step; 7] = [
        |before, here, _, _| before + here,
        |before, here, _, _| here - before * 0.5,
        |before, here, _, _| -(before - here),
        |before, here, a, _| 0.5 * (before * a + here) + 1.0,
        |before, here, a, b| a * &before * 0.5 + (here - b * before),
        |before, here, _, b| (1.0 - b) * before + b * here,
        |before, here, _, b| here + (&before - b * &before),
    ];
    for step in steps {
        let pipeline = recurrence(|before, here| step(before, here, a, b), true);
        for line in ["chunk f.1.rx 1", "chunk f.1.rx 3", "chunk f.1.rx 4", "chunk f.1.rx 20"] {
            near(&pipeline, &[line], &[("input", &input)], &[15, 3], 14.0 * 8.0);
        }
    }
}

#[test]
fn linear_recurrences_of_integers_wrap() {
    let x = vars!(x);
    let factor = Param::i32("factor").range(-100, 1000);
    let input = Input::new("input", Type::I32, 1);
    let r = rdom([(0, 14)]);
    let hash = func("hash", x, x)
        .over(&r, |f| f.set(r.x, (f.at(r.x - 1) * 31 + input.at(r.x)) * (&factor - 3) - f.at(r.x)));
    let pipeline = Pipeline::new("hash", [hash]).unwrap();
    let input = noise(Type::I32, &[14]);
    same(&pipeline, &["chunk hash.1.rx 4"], &[("input", &input)], &[16]);
}

#[test]
fn several_values() {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::I32, 2);
    let r = rdom([(1, 10)]);
    let f = func("f", (x, y), (input.at((x, y)), x - y, input.at((x, y)) & 255)).over(&r, |f| {
        let (last, here) = (|value| f.get(value, (x, r.x - 1)), (x, r.x));
        let sum = last(0) + f.get(1, here) * f.get(2, here);
        f.set(here, (sum, max(last(1), f.get(0, here)), f.get(2, here) | last(2)))
    });
    let pipeline = Pipeline::new("several", [f]).unwrap();
    let input = noise(Type::I32, &[3, 12]);
    for line in ["chunk f.1.rx 4", "chunk f.1.rx 5"] {
        same(&pipeline, &[line], &[("input", &input)], &[3, 12]);
    }
}

#[test]
fn the_order_of_floats_needs_the_mark_and_a_bounded_coefficient() {
    let wide = &Param::f32("wide").range(0.0, 1.5);
    let free = &Param::f32("free");
    let line = "chunk f.1.rx 4";
    let refusals = [
        refusal(&recurrence(|before, here| before + here, false), line),
        refusal(&recurrence(|before, here| before * 0.5 + here, false), line),
        refusal(&recurrence(|before, here| before * 1.25 + here, true), line),
        refusal(&recurrence(|before, here| before * wide + here, true), line),
        refusal(&recurrence(|before, here| here - before * free, true), line),
    ];
    let order = |op: &str| {
        format!(
            "`{line}` cannot be applied: the result of `f.1` depends on the order, because it computes `{op}` of f32; mark the definition with .reassociate(), or remove .in_order(), if any order will do"
        )
    };
    let growth = format!(
        "`{line}` cannot be applied: the recurrence `f.1` multiplies the value before by a number whose magnitude may exceed 1, so errors may grow; use a constant from -1 to 1, or declare such a range for its Params"
    );
    assert_eq!(refusals, [order("+"), order("a * f + term"), growth.clone(), growth.clone(), growth]);
}

#[test]
fn other_updates_are_refused() {
    let (x, y) = vars!(x, y);
    let input = &Input::new("input", Type::I32, 2);
    let (r, both) = (&rdom([(1, 9)]), &rdom([(1, 9), (0, 3)]));
    let some = &r.clone().filter(r.x.ne(3));
    type Definition<'a> = dyn Fn(&Itself) -> Update + 'a;
    let refused = |domain: &RDom, update: &Definition<'_>, line: &str| {
        let f = func("f", (x, y), input.at((x, y))).over(domain, update);
        refusal(&Pipeline::new("other", [f]).unwrap(), line)
    };
    let line = "chunk f.1.rx 4";
    let before = "`chunk f.1.rx 4` cannot be applied: `f.1` is not a scan that can be computed in chunks: ";
    let domain = "it must run over one variable, without a filter";
    let index = "it must write at r + t or t - r along one dimension, for its variable r and a `t` of constants and sizes, and at all points of the other dimensions";
    let reads = "it may read its own Func only at the index that it writes and at the one before";
    let step = "it must be f(r) = f(r - 1) op term, with one of + * & | ^ min max for op, or f(r) = a * f(r - 1) + term, with an `a` of constants and Params";
    let cases: [(&RDom, &Definition<'_>, &str); 12] = [
        (both, &|f| f.set((both.x, y), f.at((both.x - 1, y)) + both.y), domain),
        (some, &|f| f.set((some.x, y), f.at((some.x - 1, y)) + 1), domain),
        (r, &|f| f.add((x, y), r.x), index),
        (r, &|f| f.set((r.x, r.x), f.at((r.x - 1, r.x)) + 1), index),
        (r, &|f| f.set((r.x * 2, y), f.at((r.x * 2 - 1, y)) + 1), index),
        (r, &|f| f.set((r.x, 0), f.at((r.x - 1, 0)) + 1), index),
        (r, &|f| f.set((r.x + (input.at((r.x, 0)) & 1), y), f.at((r.x, y)) + 1), index),
        (r, &|f| f.set((r.x, y), f.at((r.x - 2, y)) + 1), reads),
        (r, &|f| f.set((r.x, y), f.at((r.x + 1, y)) + 1), reads),
        (r, &|f| f.set((r.x, y), f.at((r.x - 1, y)) / 2 + 1), step),
        (r, &|f| f.set((r.x, y), f.at((r.x - 1, y)) * r.x + 1), step),
        (r, &|f| f.set((r.x, y), f.at((r.x, y)) + 1), step),
    ];
    for (domain, update, why) in cases {
        assert_eq!(refused(domain, update, line), format!("{before}{why}"));
    }
}

#[test]
fn other_values_later_updates_and_undefined_points_are_refused() {
    let x = vars!(x);
    let r = rdom([(1, 9)]);
    let pair = func("f", x, (x, x)).over(&r, |f| f.set(r.x, (f.get(1, r.x - 1) + 1, f.get(0, r.x - 1) + 1)));
    let pair = Pipeline::new("pair", [pair]).unwrap();
    assert!(refusal(&pair, "chunk f.1.rx 4").contains("it must be f(r) = f(r - 1) op term"));
    let scan = |start: Func| start.over(&r, |f| f.set(r.x, f.at(r.x - 1) + 1));
    let early = scan(func("f", x, x)).update(|f| f.set(3, 0));
    let hole = scan(func("f", x, undef(Type::I32)).update(|f| f.set(5, 1)));
    let nothing = scan(func("f", x, undef(Type::I32)));
    let undefined = "`f` starts undefined, and the rewritten pipeline would read points without a value; give it an initial value";
    for (f, line, why) in [
        (early, "chunk f.1.rx 4", "`f.1` is not the last update of its Func; cut it first: `cut f at 2`"),
        (hole, "chunk f.2.rx 4", undefined),
        (nothing, "chunk f.1.rx 4", undefined),
    ] {
        let message = refusal(&Pipeline::new("scan", [f]).unwrap(), line);
        assert_eq!(message, format!("`{line}` cannot be applied: {why}"));
    }
}
