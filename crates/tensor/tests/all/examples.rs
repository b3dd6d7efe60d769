//! The worked examples of the notation, at odd sizes: ranges, and values against a naive evaluator.

use warploom_tensor::{Definition, parse};

use crate::naive::{Ranges, harness};
use crate::reference::Folder;

/// The text of an example.
fn text(name: &str) -> String {
    Folder::Examples.text(&format!("{name}.tc"))
}

/// A text's only definition.
fn definition(text: &str) -> Definition {
    parse("example.tc", text).unwrap_or_else(|errors| panic!("{errors}")).define(None).unwrap()
}

/// `i 0:5, k 0:7` as numbers.
fn ranges_of(text: &str) -> Ranges {
    let one = |part: &str| {
        let (index, range) = part.trim().split_once(' ').unwrap();
        let (low, high) = range.split_once(':').unwrap();
        (index.to_string(), low.parse().unwrap(), high.parse().unwrap())
    };
    if text.is_empty() { Vec::new() } else { text.split(',').map(one).collect() }
}

/// Checks ranges, values, and that the listing gives the same pipeline.
fn agrees(text: &str, sizes: &[(&str, i64)], ranges: &[&str]) {
    let definition = definition(text);
    let found = definition.ranges(sizes).unwrap_or_else(|errors| panic!("{errors}"));
    let expected: Vec<Ranges> = ranges.iter().map(|text| ranges_of(text)).collect();
    for (found, expected) in found.iter().zip(&expected) {
        let mut expected = expected.clone();
        expected.sort();
        let found: Ranges =
            found.iter().map(|one| (one.index.clone(), one.range.min, one.range.end())).collect();
        assert_eq!(found, expected, "{text}");
    }
    let (pipeline, _) = definition.realise(sizes).unwrap();
    let again = parse("listing.tc", &definition.to_text()).unwrap().define(None).unwrap();
    let (listed, _) = again.realise(sizes).unwrap();
    assert_eq!(listed.structural_hash(), pipeline.structural_hash(), "{}", definition.to_text());

    if let Err(difference) = harness::compare(&definition, sizes, &expected, 1e-4) {
        panic!("{difference}");
    }
}

/// Checks an example.
fn example(name: &str, sizes: &[(&str, i64)], ranges: &[&str]) {
    agrees(&text(name), sizes, ranges);
}

#[test]
fn ex01_to_06_products() {
    let mv = &[("M", 5), ("K", 7)];
    example("mv", mv, &["i 0:5, k 0:7"]);
    example("mv2", mv, &["i 0:5", "i 0:5, k 0:7"]);
    let sizes = &[("N", 3), ("M", 5), ("K", 7)];
    example("sgemm", sizes, &["i 0:3, j 0:7", "i 0:3, j 0:7, k 0:5"]);
    example("tmm", &[("M", 3), ("K", 9), ("N", 5)], &["m 0:3, n 0:5, k 0:9"]);
    let bmm = &[("B", 2), ("N", 3), ("M", 5), ("K", 7)];
    example("bmm", bmm, &["b 0:2, n 0:3, k 0:7, m 0:5"]);
    example("tbmm", bmm, &["b 0:2, n 0:3, k 0:7, m 0:5"]);
}

/// The two listings of the paper with a tensor named `in`, with the arrow that it prints.
#[test]
fn in_is_a_name_where_it_is_in_the_paper() {
    let conv = "def conv2d(float(B,IP,H,W) in,
                float(OP,IP,KH,KW) weight) → (out) {
          out(b,op,h,w) +=! in(b,ip, h + kh, w + kw)
                          * weight(op,ip,kh,kw) }";
    let sizes = [("B", 2), ("IP", 3), ("H", 6), ("W", 5), ("OP", 2), ("KH", 3), ("KW", 2)];
    agrees(conv, &sizes, &["b 0:2, op 0:2, h 0:4, w 0:4, ip 0:3, kh 0:3, kw 0:2"]);
    let pool = "def maxpool2x2(float(B,C,H,W) in) → (out) {
      out(b,c,i,j) max=! in(b,c, 2 * i + kw, 2 * j + kh)
         where kw in 0:2, kh in 0:2
    }";
    agrees(pool, &[("B", 2), ("C", 3), ("H", 9), ("W", 8)], &["b 0:2, c 0:3, i 0:4, j 0:4, kw 0:2, kh 0:2"]);
    // It can be an index, a result, and what stands after a range too.
    let index = "def sums(float(N) A) -> (B) { B(i) +=! A(i + in) where in in 0:3 }";
    agrees(index, &[("N", 9)], &["i 0:7, in 0:3"]);
    let result = "def two(float(N) A) -> (out, in) { out(i) = A(i) where i in 0:4 in(i) = A(i) * in.0 where i in 0:5 }";
    assert!(parse("two.tc", result).is_err(), "a tensor has no size before it is written");
    let result =
        "def two(float(N) A) -> (out, in) { out(i) = A(i) where i in 0:4 in(i) = A(i) where i in 0:5 }";
    agrees(result, &[("N", 9)], &["i 0:4", "i 0:5"]);
}

#[test]
fn ex07_and_08_layers() {
    example("mlp1", &[("B", 3), ("M", 5), ("N", 7)], &["b 0:3, n 0:7, m 0:5", "b 0:3, n 0:7"]);
    example(
        "mlp3",
        &[("B", 3), ("N", 5), ("O", 7), ("P", 4), ("Q", 2)],
        &[
            "b 0:3, o 0:7, n 0:5",
            "b 0:3, o 0:7",
            "b 0:3, p 0:4, o 0:7",
            "b 0:3, p 0:4",
            "b 0:3, q 0:2, p 0:4",
            "b 0:3, q 0:2",
        ],
    );
}

#[test]
fn ex09_to_11_windows() {
    let sizes = &[("B", 2), ("C", 3), ("H", 9), ("W", 8), ("F", 2), ("KH", 3), ("KW", 2)];
    example("conv2d", sizes, &["b 0:2, f 0:2, h 0:7, w 0:7, c 0:3, y 0:3, x 0:2"]);
    let strided = &["b 0:2, f 0:2, h 0:4, w 0:3, c 0:3, y 0:3, x 0:2"];
    example("strided", sizes, strided);
    example("strides", &[&sizes[..], &[("s", 2), ("t", 3)]].concat(), strided);
    example("pool", &sizes[..4], &["b 0:2, c 0:3, i 0:4, j 0:4, u 0:2, v 0:2"]);
}

#[test]
fn ex12_to_14_tables_and_groups() {
    let sizes = &[("E", 11), ("D", 3), ("B", 4), ("L", 5)];
    example("lut", sizes, &["i 0:4, j 0:3, k 0:5"]);
    let ranges = &["i 0:4, j 0:3, k 0:5", "i 0:4, j 0:3, k 0:2"];
    example("lut2", &[&sizes[..], &[("F", 6), ("M", 2)]].concat(), ranges);
    example("pick", &sizes[..3], &["i 0:4, j 0:3"]);
    example(
        "gconv",
        &[("N", 2), ("G", 2), ("C", 3), ("H", 5), ("W", 6), ("F", 2), ("KH", 3), ("KW", 2)],
        &["n 0:2, g 0:2, f 0:2, h 0:3, w 0:5, c 0:3, y 0:3, x 0:2", "n 0:2, g 0:2, f 0:2, h 0:3, w 0:5"],
    );
}

#[test]
fn ex15_and_16_contractions() {
    example(
        "kronecker",
        &[("D0", 2), ("N0", 3), ("D1", 4), ("N1", 5), ("D2", 3), ("N2", 2), ("M", 3)],
        &[
            "m 0:3, a 0:3, b 0:5, d 0:3, n 0:2",
            "m 0:3, a 0:3, d 0:4, e 0:3, n 0:5",
            "m 0:3, d 0:2, e 0:4, f 0:3, n 0:3",
        ],
    );
    let sizes = &[("P", 2), ("Q", 3), ("R", 5), ("S", 4), ("T", 3)];
    example("outer", sizes, &["p 0:2, s 0:4, q 0:3, t 0:3, r 0:5"]);
}

#[test]
fn ex17_to_20_norms() {
    let sizes = &[("N", 3), ("K", 7)];
    let ranges = ["n 0:3, k 0:7", "n 0:3, k 0:7", "n 0:3", "n 0:3"];
    example("moments", sizes, &ranges);
    let text = text("layernorm");
    // The made-up eps may be negative.
    agrees(&text.replace("+ eps", "+ eps * eps + 0.1"), sizes, &[&ranges[..], &["n 0:3, k 0:7"]].concat());
    let all = "n 0:2, c 0:3, h 0:5, w 0:4";
    let sizes = &[("N", 2), ("C", 3), ("H", 5), ("W", 4)];
    example("batchnorm", sizes, &[all, "c 0:3", all, all, "c 0:3", all]);
    let all = "n 0:2, g 0:2, d 0:3, h 0:3, w 0:4";
    example("groupnorm", &[("N", 2), ("G", 2), ("D", 3), ("H", 3), ("W", 4)], &[all, all, all]);
}

#[test]
fn ex21_and_22_networks() {
    example("softmax", &[("N", 3), ("D", 7)], &["n 0:3, d 0:7", "n 0:3, d 0:7", "n 0:3, d 0:7"]);
    let (scores, pair) = ("q 0:3, t 0:7", "q 0:3, v 0:2");
    example(
        "attention",
        &[("Q", 3), ("D", 5), ("T", 7), ("V", 2)],
        &["q 0:3, t 0:7, d 0:5", scores, scores, scores, "q 0:3, v 0:2, t 0:7", pair],
    );
    let pair = "b 0:3, j 0:4";
    example(
        "gru",
        &[("B", 3), ("I", 5), ("H", 4), ("G", 3)],
        &["b 0:3, g 0:3, j 0:4, i 0:5", "b 0:3, g 0:3, j 0:4, k 0:4", pair, pair, pair, pair],
    );
    let gru = definition(&text("gru"));
    let errors = gru.realise(&[("B", 3), ("I", 5), ("H", 4), ("G", 2)]).unwrap_err();
    assert!(
        errors.to_string().contains("index 1 of `a` is `2`, which reaches 2 where `a` has 0 to 1"),
        "{errors}"
    );
}

#[test]
fn ex23_to_30_small_ones() {
    example("conv1d", &[("M", 9), ("N", 4)], &["i 0:6, x 0:4"]);
    example("average", &[("I", 9)], &["i 0:4"]);
    example("reverse", &[("I", 11)], &["i 0:11"]);
    example("precondition", &[("N", 3), ("K", 7), ("M", 5)], &["i 0:3, j 0:5"]);
    example("fill", &[("N", 5)], &["i 0:5"]);
    example("counts", &[("N", 3), ("K", 5)], &["n 0:3, k 0:5", "n 0:3, k 0:5", "n 0:3, k 0:5"]);
}

#[test]
fn ex31_dilated_causal() {
    let text = text("causal");
    let sizes = [("B", 2), ("R", 3), ("T", 9), ("C", 3)];
    let ranges = &["b 0:2, c 0:3, t 0:9, r 0:3"];
    agrees(&text, &sizes, ranges);
    // The same with the guard in another form, and with a scalar.
    agrees(
        &text.replace("t-4 >= 0 ? D(b,r,t-4)*F(c,r,0) : 0", "t < 4 ? 0 : D(b,r,t-4)*F(c,r,0)"),
        &sizes,
        ranges,
    );
    example("delayed", &[&sizes[..], &[("d", 2)]].concat(), ranges);
    // A guard that does not protect the read is no excuse.
    let wrong = definition(&text.replace("t-4 >= 0", "t-3 >= 0"));
    let errors = wrong.realise(&sizes).unwrap_err().to_string();
    assert!(
        errors.contains("index 2 of `D` is `t - 4`, which reaches -4 to 4 where `D` has 0 to 8"),
        "{errors}"
    );
}

#[test]
fn other_statements_compute_what_they_say() {
    let n = &[("N", 7)];
    // A reduction that continues one, with another operator and other names.
    agrees(
        "def more(float(N,M) A, float(M) b) -> (C) {
            C(i) +=! A(i,k)  C(x) max= A(x,i) * b(i)  C(i) *= 2  C(i) = C(i) + C(i) * C(i)
            D(i) = C(i)  C(j) += A(j,k) where exists D(j)  E(i) = C(i) C(i) min= E(i) - D(i)
        }",
        &[("N", 3), ("M", 5)],
        &["i 0:3, k 0:5", "x 0:3, i 0:5", "i 0:3", "i 0:3", "i 0:3", "j 0:3, k 0:5", "i 0:3", "i 0:3"],
    );
    // What was read keeps its value when the reduction goes on.
    agrees(
        "def partly(float(N) A) -> (C, D) { C +=! A(i)  D = C * 2  C += A(i) * A(i)  C *= C }",
        n,
        &["i 0:7", "", "i 0:7", ""],
    );
    agrees("def total(float(N) A) -> (s) { s +=! A(i) }", n, &["i 0:7"]);
    agrees("def count(int32(N) A) -> (s, p) { s +=! A(i)  p *=! A(i) + 1 }", n, &["i 0:7", "i 0:7"]);
    agrees("def onto(float s, float(N) A) -> (s) { s += A(i)  s = s * s }", n, &["i 0:7", ""]);
    agrees("def least(float(N) A) -> (s) { s() min=! A(i) * A(i) }", n, &["i 0:7"]);
    agrees("def set(float(N) A) -> (B) { B(i) +=! A(i) * 3 }", n, &["i 0:7"]);
    agrees(
        "def div(int32(N) A) -> (B, C) { B(i) = (A(i) - 5) / (A(i) - 4)  C(i) = (A(i) - 5) % (1 - 3 - A(i)) }",
        n,
        &["i 0:7", "i 0:7"],
    );
    agrees("def zoom(float(N) A) -> (B) { B(i) = A(i/3) }", n, &["i 0:21"]);
    agrees("def wrap(float(N) A) -> (B) { B(i) = A(i % 5) + A.0 + i where i in 0:2*N }", n, &["i 0:14"]);
    agrees(
        "def choose(float(N) A, bool(N) m) -> (B) { B(i) = m(i) && !(A(i) > 0.25) || i == 2 ? float(i) : -A(i) }",
        n,
        &["i 0:7"],
    );
    agrees(
        "def band(float(N) A) -> (B) { B(i) +=! A(k) where i in 0:3, k in i.0:N }"
            .replace("i.0", "2")
            .as_str(),
        n,
        &["i 0:3, k 2:7"],
    );
    agrees(
        "def inner(float(N) A, int32(N) I) -> (B) { T(i) = A(i) * 2  B(i) = T(I(i) + 1) + T(i) }",
        n,
        &["i 0:7", "i 0:7"],
    );
    agrees(
        "def functions(float(N) A) -> (B) {
            B(i) = fabs(x) + cosh(x) + exp10(x) + exp2(x) + log10(x + 2) + log2(x + 2) + log(x + 2) + round(x * 3)
                + trunc(x * 3) + tan(x) + fdim(x, 0.5) + fdivide(x, 3) + fmin(x, 0.1) + hypot(x, 2) + rhypot(x, 2)
                + fma(x, x, 1) + norm3d(x, 1, 2) + rnorm4d(x, 1, 2, 3) + pow(x + 2, 1.5) + floor(x) + ceil(x) + sin(x)
                + cos(x) + sqrt(x + 2) + norm4d(x, 1, 2, 3) + rnorm3d(x, 1, 2) + max(x, 0) + min(x, 0)
                where x = A(i)
        }",
        n,
        &["i 0:7"],
    );
    agrees(
        "def inverses(float(N) A) -> (B) {
            B(i) = acos(y) + acosh(x + 3) + asin(y) + asinh(x) + atan(x) + atan2(x, y) + atanh(y) + cbrt(x) + erf(x)
                + expm1(x) + log1p(y) + rcbrt(x + 3) + sinh(x) + rsqrt(x + 3)
                where x = A(i), y = max(min(x, 0.9), -0.9)
        }",
        n,
        &["i 0:7"],
    );
}

#[test]
fn a_pipeline_serves_all_sizes() {
    let definition = definition(&text("conv2d").replace("h+y", "2*h+y"));
    let at = |n: i64| {
        let sizes = [("B", n), ("C", 3), ("H", 9 * n), ("W", 8), ("F", 2 + n), ("KH", n), ("KW", 2)];
        definition.realise(&sizes).unwrap().0.structural_hash()
    };
    assert_eq!(at(1), at(5));
    let sizes = [("B", 1), ("C", 3), ("H", 9), ("W", 8), ("F", 2), ("KH", 3), ("KW", 2)];
    let ranges: Vec<String> =
        definition.ranges(&sizes).unwrap()[0].iter().map(|one| one.to_string()).collect();
    assert_eq!(ranges[3], "h in 0:(H - KH)/2 + 1");
}

#[test]
fn one_func_holds_a_start_and_its_reduction() {
    let (pipeline, _) = definition(&text("mv2")).realise(&[("M", 5), ("K", 7)]).unwrap();
    insta::assert_snapshot!(pipeline.to_string(), @r"
    pipeline mv2
      input  A(d0, d1): f32
      input  x(d0): f32
      C.sum(i) = 0.0
      C.sum(i) = C.sum(i) + A(k, i) * x(k)  over k in (0, A.extent(0))  in any order
      C(i) = C.sum(i)
    ");
}

#[test]
fn results_that_are_read_are_copied() {
    let text = "def two(float(N) A) -> (B, C) { B(i) = A(i) * 2  C(i) = B(i) + 1 }";
    let (pipeline, _) = definition(text).realise(&[("N", 5)]).unwrap();
    insta::assert_snapshot!(pipeline.to_string(), @r"
    pipeline two
      input  A(d0): f32
      B.value(i) = A(i) * 2.0
      B(i) = B.value(i)
      C(i) = B.value(i) + 1.0
    ");
}

/// What a statement makes of the reads in it, line by line.
fn funcs(text: &str, sizes: &[(&str, i64)]) -> String {
    let (pipeline, _) = definition(text).realise(sizes).unwrap();
    let listing = pipeline.to_string();
    listing.lines().filter(|line| line.contains(" = ")).map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn gathers_are_funcs() {
    let sizes = [("E", 11), ("D", 3), ("B", 4), ("L", 5)];
    insta::assert_snapshot!(funcs(&text("lut"), &sizes), @r"
    T.gathered(j, k, i) = T(j, max(min(I(k, i), T.extent(1) - 1), 0))
    O.sum(j, i) = 0.0
    O.sum(j, i) = O.sum(j, i) + T.gathered(j, k, i)  over k in (0, I.extent(0))  in any order
    O(j, i) = O.sum(j, i)
    ");
    // A pointwise statement has its own elements already.
    insta::assert_snapshot!(funcs(&text("pick"), &sizes[..3]), @r"
    O(j, i) = T(j, max(min(I(i), T.extent(1) - 1), 0))
    ");
    // One index of an index, a let, and a read that only some indices of the statement need.
    let nested = "def nested(float(E) T, int32(N) I, int32(N) J, float(M) w) -> (O, P) {
        O(j) +=! x * x * w(j) where x = T(I(J(k)))
        P(i,j) = T(I(i)) * w(j)
    }";
    let sizes = [("E", 11), ("N", 5), ("M", 3)];
    insta::assert_snapshot!(funcs(nested, &sizes), @r"
    I.gathered(k) = I(max(min(J(k), I.extent(0) - 1), 0))
    T.gathered(k) = T(max(min(I.gathered(k), T.extent(0) - 1), 0))
    O.sum(j) = 0.0
    O.sum(j) = O.sum(j) + T.gathered(k) * T.gathered(k) * w(j)  over k in (0, I.extent(0))  in any order
    O(j) = O.sum(j)
    T.gathered2(i) = T(max(min(I(i), T.extent(0) - 1), 0))
    P(j, i) = T.gathered2(i) * w(j)
    ");
    agrees(nested, &sizes, &["j 0:3, k 0:5", "i 0:5, j 0:3"]);
}

#[test]
fn long_chains_of_gathers_are_no_trouble() {
    let chain = (0..120).fold("i".to_string(), |at, _| format!("I({at})"));
    let lets: Vec<String> = (1..60).map(|n| format!("x{n} = I(x{0}) + I(x{0} + i)", n - 1)).collect();
    let lets = lets.join(", ");
    let text = format!("def chain(int32(N) I) -> (s) {{ s +=! {chain} + x59 where x0 = I(i), {lets} }}");
    let (pipeline, _) = definition(&text).realise(&[("N", 5)]).unwrap();
    // Every read but the first of either chain, the sum and its copy.
    assert_eq!(pipeline.funcs().len(), 119 + 2 * 59 + 2);
}
