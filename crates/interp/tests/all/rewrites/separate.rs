//! `separate`: sums over boxes as two passes.

use warploom_lang::*;

use super::check::{near, noise, refusal, rewrite, same};

/// All types in which sums wrap.
const INTEGERS: [Type; 8] =
    [Type::U8, Type::U16, Type::U32, Type::U64, Type::I8, Type::I16, Type::I32, Type::I64];

/// Numbers that repeat after a long time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20 ^ self.0 << 30
    }
}

/// A sum over a box: `weights[j][i]` is that of the point `(x + i - 1, y + j - 1)`.
fn stencil(ty: Type, weights: &[Vec<u64>]) -> Pipeline {
    let (x, y) = vars!(x, y);
    let edge = Input::new("input", ty, 2).repeat_edge().named("edge");
    let mut sum = Expr::from(Value::zero(ty));
    for (j, row) in (0..).zip(weights) {
        for (i, weight) in (0..).zip(row) {
            sum = sum + Expr::from(Value::from_bits(ty, *weight)) * edge.at((x + (i - 1), y + (j - 1)));
        }
    }
    Pipeline::new("stencil", [func("f", (x, y), sum)]).unwrap()
}

fn outer(columns: &[u64], rows: &[u64]) -> Vec<Vec<u64>> {
    rows.iter().map(|row| columns.iter().map(|column| row.wrapping_mul(*column)).collect()).collect()
}

/// The reason why a Func cannot be separated.
fn reason(pipeline: &Pipeline, line: &str) -> String {
    let message = refusal(pipeline, line);
    message.split_once("cannot be separated along ").map_or(message.clone(), |(_, why)| why.to_string())
}

#[test]
fn two_passes() {
    let (x, y) = vars!(x, y);
    let (input, taps) = (Input::new("input", Type::I16, 2), (0..9).map(|tap| (tap % 3, tap / 3)));
    let term = |(i, j): (i32, i32)| (i + 1) * (j - 4) * input.at((x + i, y + j));
    let sum = taps.map(term).fold(Expr::from(7i16), |sum, term| sum + term);
    let pipeline = Pipeline::new("p", [func("f", (x, y), (sum >> 3).u8())]).unwrap();
    assert_eq!(
        rewrite(&pipeline, &["separate f along x"]).to_string(),
        "\
pipeline p
  input  input(d0, d1): i16
  f.pass(x, y) = input(x + 0, y) + input(x + 1, y) * 2 + input(x + 2, y) * 3
  f(x, y) = u8(f.pass(x, y + 0) * -4 - f.pass(x, y + 1) * 3 - f.pass(x, y + 2) * 2 + 7 >> 3)
"
    );
}

#[test]
fn outer_products_of_all_integers() {
    let mut numbers = Numbers(1);
    for ty in INTEGERS {
        let input = noise(ty, &[7, 6]);
        for (width, height) in [(2, 2), (3, 3), (2, 5), (5, 2), (1, 3)] {
            let mut some = |count: usize| -> Vec<u64> { (0..count).map(|_| numbers.next() | 1).collect() };
            let small: [Vec<u64>; 2] =
                [width, height].map(|count| (0..count as u64).map(|at| at.wrapping_sub(1) | 1).collect());
            for [a, b] in [[some(width), some(height)], small] {
                let pipeline = stencil(ty, &outer(&a, &b));
                for dim in ["x", "y"] {
                    let line = format!("separate f along {dim}");
                    match width {
                        1 => assert!(reason(&pipeline, &line).contains("must differ both"), "{line}"),
                        _ => same(&pipeline, &[&line], &[("input", &input)], &[7, 6]),
                    }
                }
            }
        }
    }
}

/// All that `separate` refuses is no outer product, and the rest gives the same bits.
#[test]
fn outer_products_modulo_a_power_of_two() {
    let mut numbers = Numbers(2);
    let input = noise(Type::U8, &[5, 5]);
    let (mut separable, mut others) = (0, 0);
    for round in 0..60 {
        // Bits from above, so that weights share powers of 2 and products vanish.
        let mut next = || numbers.next() << (round % 7) & 255;
        let weights = match round % 3 {
            0 => vec![vec![next(), next()], vec![next(), next()]],
            _ => outer(&[next(), next()], &[next(), next()]),
        };
        let weights: Vec<Vec<u64>> =
            weights.iter().map(|row| row.iter().map(|weight| weight & 255).collect()).collect();
        let vanishes = (0..2).any(|column| weights[0][column] == 0 && weights[1][column] == 0);
        if vanishes || weights.iter().any(|row| row.iter().all(|weight| *weight == 0)) {
            continue;
        }
        let pipeline = stencil(Type::U8, &weights);
        match is_outer_product(&weights) {
            true => {
                separable += 1;
                same(&pipeline, &["separate f along x"], &[("input", &input)], &[5, 5]);
            }
            false => {
                others += 1;
                assert!(
                    reason(&pipeline, "separate f along x").contains("not an outer product"),
                    "{weights:?}"
                );
            }
        }
    }
    assert!(separable >= 15 && others >= 5, "{separable} and {others}");
}

/// By definition: there are factors of the rows of which each column is a multiple, modulo 256.
fn is_outer_product(weights: &[Vec<u64>]) -> bool {
    let is_multiple = |a: u8, b: u8, column: usize| {
        let wanted = (weights[0][column] as u8, weights[1][column] as u8);
        (0..=255u8).any(|c| (a.wrapping_mul(c), b.wrapping_mul(c)) == wanted)
    };
    let mut rows = (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b)));
    rows.any(|(a, b)| is_multiple(a, b, 0) && is_multiple(a, b, 1))
}

#[test]
fn a_product_that_vanishes() {
    let pipeline = stencil(Type::U8, &[vec![0, 2], vec![128, 3]]);
    let input = noise(Type::U8, &[4, 9]);
    for line in ["separate f along x", "separate f along y"] {
        same(&pipeline, &[line], &[("input", &input)], &[4, 9]);
    }
    assert!(reason(&stencil(Type::U16, &[vec![0, 2], vec![128, 3]]), "separate f along x").contains("outer"));
}

/// Sums as people write them: shifts, differences, groups, weights on either side, casts inside and around.
#[test]
fn many_notations() {
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 2);
    let edge = input.repeat_edge().named("edge");
    let at = |i: i32, j: i32| edge.at((x + i, j + y));
    let row = |j: i32| at(-1, j).u16() + (at(0, j).u16() << 1) + at(1, j).u16();
    let sobel = |sign: i32| {
        let row = |j: i32| -at(-1, j).i16() - 2 * at(0, j).i16() - at(1, j).i16();
        sign * (row(-1) - row(1))
    };
    let wide = |i: i32, j: i32| (at(i, j).u32() * at(i, j).u32() + 70000u32).u16();
    let definitions = [
        ((row(-1) + row(1) + 2 * row(0) + 8) / 16).u8(),
        ((row(-1) + (row(0) * 2 + row(1))) >> 4).u8(),
        max(sobel(1), sobel(-3)).u8(),
        (abs(sobel(1)) + abs(at(0, -1).i16() - at(0, 1).i16())).u8(),
        (clamp(row(-1) + row(1) - 100u16, 3u16, 900u16) + 3 * (row(-1) - row(1))).u8(),
        (wide(0, 0) + wide(1, 0) * 3 + 5 * (wide(0, 1) + 3 * wide(1, 1))).u8(),
        (row(-1) * Expr::from(3).u16() + row(1) * (Expr::from(1).u16() << 4u16)).u8(),
        (row(-1) + row(0) + edge.at((x + 1 - 1, y - 2 + 2)).u16() - edge.at((1 + x - 1, y)).u16()).u8(),
        // What is left over stays in the sum.
        (row(-1) + row(0) + input.at((x, y)).u16() * 9 + x.u16() + 4).u8(),
    ];
    let data = noise(Type::U8, &[8, 5]);
    for definition in definitions {
        let pipeline = Pipeline::new("p", [func("f", (x, y), definition)]).unwrap();
        for line in ["separate f along x", "separate f along y"] {
            same(&pipeline, &[line], &[("input", &data)], &[8, 5]);
        }
    }
}

#[test]
fn each_sum_has_its_own_pass() {
    let (x, y, c) = vars!(x, y, c);
    let (one, other) = (Input::new("one", Type::I32, 2), Input::new("other", Type::I32, 2));
    let square = |input: &Input| {
        let at = |i: i32, j: i32| input.at((y * 2 + (j + 1), 4 - x + i));
        at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)
    };
    let value = abs(square(&one)) * c + (square(&other) - square(&one));
    let pipeline = Pipeline::new("p", [func("f", (x, y, c), value)]).unwrap();
    assert_eq!(
        rewrite(&pipeline, &["separate f along y"]).to_string(),
        "\
pipeline p
  input  one(d0, d1): i32
  input  other(d0, d1): i32
  f.pass(x, y) = one(y * 2 + 1, x) + one(y * 2 + 2, x)
  f.pass2(x, y) = other(y * 2 + 1, x) + other(y * 2 + 2, x)
  f(x, y, c) = f.pass2(4 - x + 0, y) - f.pass(4 - x + 0, y) - f.pass(4 - x + 1, y) + f.pass2(4 - x + 1, y) + abs(f.pass(4 - x + 0, y) + f.pass(4 - x + 1, y)) * c
"
    );
    let (one, other) = (noise(Type::I32, &[13, 6]), noise(Type::I32, &[13, 6]));
    for line in ["separate f along x", "separate f along y"] {
        same(&pipeline, &[line], &[("one", &one), ("other", &other)], &[4, 5, 2]);
    }
}

#[test]
fn three_dimensions_in_two_steps() {
    let (x, y, z) = vars!(x, y, z);
    let input = Input::new("input", Type::I32, 3);
    let taps = (0..27).map(|tap| (tap % 3, tap / 3 % 3, tap / 9));
    let term = |(i, j, k): (i32, i32, i32)| (2 * i - 3) * (j + 1) * (5 - k) * input.at((x + i, y + j, z + k));
    let sum = taps.map(term).fold(Expr::from(0i32), |sum, term| sum - term);
    let pipeline = Pipeline::new("p", [func("f", (x, y, z), sum)]).unwrap();
    let data = noise(Type::I32, &[6, 5, 6]);
    for lines in [
        &["separate f along y"][..],
        &["separate f along x", "separate f along y"],
        &["separate f along z", "separate f along x"],
    ] {
        same(&pipeline, lines, &[("input", &data)], &[4, 3, 4]);
    }
    let passes = rewrite(&pipeline, &["separate f along x", "separate f along y"]);
    assert_eq!(passes.funcs().len(), 3, "{passes}");
    assert!(reason(&passes, "separate f along z").contains("must differ both"));
}

#[test]
fn updates_stay() {
    let (x, y) = vars!(x, y);
    let input = Input::u16("input", 2);
    let corners = input.at((x, y)) + input.at((x + 2, y)) + input.at((x, y + 2)) + input.at((x + 2, y + 2));
    let f = func("f", (x, y), corners).update(|f| f.add((x, 1), f.at((x, 0))));
    let pipeline = Pipeline::new("p", [f]).unwrap();
    same(&pipeline, &["separate f along y"], &[("input", &noise(Type::U16, &[6, 7]))], &[4, 5]);
}

#[test]
fn sums_over_domains() {
    let (x, y, c) = vars!(x, y, c);
    let (input, weights) = (Input::u8("input", 3), Input::u16("weights", 2));
    let r = rdom!(rx: (-1, 3), ry: (0, weights.extent(1)), rz: (0, 4));
    let [rx, ry, rz] = r.vars();
    let weight = (rx.u16() + 5u16) * weights.at((rz, ry)) * 3u16;
    let start = x.u16() + 2 * c.u16();
    let term = input.at((x + rx + 1, y * 2 + ry, c)).u16();
    let f = func("f", (x, y, c), start).over(&r, |f| f.add((x, y, c), &weight * term));
    let pipeline = Pipeline::new("p", [f]).unwrap();
    assert_eq!(
        rewrite(&pipeline, &["separate f along x"]).to_string(),
        "\
pipeline p
  input  weights(d0, d1): u16
  input  input(d0, d1, d2): u8
  f.pass(x, y, c) = 0
  f.pass(x, y, c) = f.pass(x, y, c) + u16(input(x + rx + 1, y, c)) * (u16(rx) + 5)  over rx in (-1, 3)
  f(x, y, c) = u16(x) + 2 * u16(c)
  f(x, y, c) = f(x, y, c) + f.pass(x, y * 2 + ry, c) * weights(rz, ry) * 3  over ry in (0, weights.extent(1)), rz in (0, 4)
"
    );
    for height in [1, 3] {
        let (input, weights) = (noise(Type::U8, &[9, 9, 4]), noise(Type::U16, &[4, height]));
        same(&pipeline, &["separate f along x"], &[("input", &input), ("weights", &weights)], &[4, 3, 2]);
    }
}

#[test]
fn floats_need_a_mark() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let sum = |weights: [f32; 2]| {
        let taps = (0..9).map(|tap| (tap % 3, tap / 3));
        let weight = |at: i32| weights[usize::from(at == 1)];
        let term = |(i, j): (i32, i32)| input.at((x + i, y + j)) * (weight(i) * weight(j));
        taps.map(term).reduce(|sum, term| sum + term).unwrap()
    };
    let strict = Pipeline::new("p", [func("f", (x, y), sum([1.0, 2.0]) / 16.0)]).unwrap();
    assert_eq!(
        refusal(&strict, "separate f along x"),
        "`separate f along x` cannot be applied: the result of `f.0` depends on the order, because it computes `+` of f32; mark the definition with .reassociate(), or remove .in_order(), if any order will do"
    );
    let data = noise(Type::F32, &[9, 8]);
    for weights in [[1.0, 2.0], [0.25, 0.5], [3.0, 7.0], [-0.1, 0.2], [1.0, 0.1]] {
        let marked = Pipeline::new("p", [func("f", (x, y), sum(weights)).reassociate()]).unwrap();
        for line in ["separate f along x", "separate f along y"] {
            near(&marked, &[line], &[("input", &data)], &[7, 6], 1000.0);
        }
    }
    let r = rdom([(0, 3), (0, 4)]);
    let total = |any_order: bool| {
        let sum = sum_of(&input, &r);
        let sum = if any_order { sum } else { sum.in_order() };
        Pipeline::new("p", [func("f", (x, y), sum)]).unwrap()
    };
    near(&total(true), &["separate f.sum0 along x"], &[("input", &data)], &[7, 5], 1000.0);
    assert!(refusal(&total(false), "separate f.sum0 along x").contains("mark the definition"));
}

fn sum_of(input: &Input, r: &RDom) -> Expr {
    let (x, y) = vars!(x, y);
    sum(r, input.at((x + r.x, y + r.y)) * (r.x.f32() + 0.5) * (3.0 - r.y.f32()))
}

#[test]
fn what_is_no_box_of_taps_is_refused() {
    let (x, y, z) = vars!(x, y, z);
    let input = Input::new("input", Type::I32, 2);
    let volume = Input::new("volume", Type::I32, 3);
    let of = |value: Expr| Pipeline::new("p", [func("f", (x, y, z), value)]).unwrap();
    let square = |at: &dyn Fn(i32, i32) -> Expr| at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1);
    let r = rdom([(0, 3), (0, 3)]);
    let update = |term: Expr, r: &RDom| {
        Pipeline::new("p", [func("f", (x, y, z), 0i32).over(r, |f| f.add((x, y, z), term))]).unwrap()
    };
    let no_taps = "it needs a sum of weighted values of one Func or input, at points a constant distance or a reduction variable apart";
    let one_line = "the points that a sum reads must differ both along this dimension and along another one";
    let entangled = "each other index in which the points differ must depend on one variable, and no further index may depend on that one";
    let no_product = "the weights are not an outer product: each must be a factor for the position along this dimension times a factor for the rest";
    let at = |i: i32, j: i32| input.at((x + i, y + j));
    let cases = [
        (of(x * y + z), no_taps),
        (of(max(at(0, 0), at(1, 1))), no_taps),
        (of(square(&|i, j| at(i, j) * x)), no_taps),
        (of(at(0, 0) + at(1, 0) + at(2, 0)), one_line),
        (of(at(0, 0) + at(0, 1)), one_line),
        (of(square(&|i, j| input.at((clamp(x + i, 0, 9), y + j)))), one_line),
        (of(square(&|i, j| input.at((y + i, z + j)))), one_line),
        (of(square(&|i, j| volume.at((x + i, y + j, y)))), entangled),
        (of(square(&|i, j| input.at((x + i, y + z + j)))), entangled),
        (of(square(&|i, j| input.at((x + i, j)))), entangled),
        (of(square(&|i, j| input.at((x + y + i, y + j)))), entangled),
        (of(square(&at) + at(0, 0)), no_product),
        (of(at(0, 0) + at(1, 1)), no_product),
        (update(input.at((x + r.x, y + r.y)) * (r.x + r.y), &r), no_product),
        (update(input.at((x + r.x, y + r.x + r.y)), &r), entangled),
        (update(volume.at((x + r.x, y, r.y)), &r), entangled),
        (update(input.at((x + r.x + r.y, y)), &r), one_line),
        (update(input.at((x + r.x, y + r.y)) * y, &r), no_taps),
        (update(input.at((x + r.x, y + r.y)), &r.clone().filter(r.x.ne(r.y))), no_taps),
    ];
    for (pipeline, why) in cases {
        assert_eq!(reason(&pipeline, "separate f along x"), format!("`x`: {why}"), "{pipeline}");
    }
    assert_eq!(
        refusal(&of(square(&at)), "separate f along w"),
        "`separate f along w` cannot be applied: `f` has no dimension `w`; it has x, y, z"
    );
}
