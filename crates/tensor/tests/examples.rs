//! The worked examples of the notation, at odd sizes: ranges, and values against a naive evaluator.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod naive;

use naive::{Ranges, harness};
use warploom_tensor::{Definition, parse};

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

#[test]
fn ex01_to_06_products() {
    let mv = &[("M", 5), ("K", 7)];
    agrees("def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }", mv, &["i 0:5, k 0:7"]);
    agrees(
        "def mv2(float(M,K) A, float(K) x) -> (C) { C(i) = 0  C(i) += A(i,k) * x(k) }",
        mv,
        &["i 0:5", "i 0:5, k 0:7"],
    );
    agrees(
        "def sgemm(float a, float b, float(N,M) A, float(M,K) B, float(N,K) C) -> (C) {
            C(i,j) = b * C(i,j)            # old values
            C(i,j) += a * A(i,k) * B(k,j)  # accumulation
        }",
        &[("N", 3), ("M", 5), ("K", 7)],
        &["i 0:3, j 0:7", "i 0:3, j 0:7, k 0:5"],
    );
    agrees(
        "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }",
        &[("M", 3), ("K", 9), ("N", 5)],
        &["m 0:3, n 0:5, k 0:9"],
    );
    let bmm = &[("B", 2), ("N", 3), ("M", 5), ("K", 7)];
    agrees(
        "def bmm(float(B,N,M) X, float(B,M,K) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,m,k) }",
        bmm,
        &["b 0:2, n 0:3, k 0:7, m 0:5"],
    );
    agrees(
        "def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }",
        bmm,
        &["b 0:2, n 0:3, k 0:7, m 0:5"],
    );
}

#[test]
fn ex07_and_08_layers() {
    agrees(
        "def mlp1(float(B,M) I, float(N,M) W, float(N) C) -> (O) {
            O(b,n) +=! I(b,m) * W(n,m)
            O(b,n) = fmax(O(b,n) + C(n), 0)
        }",
        &[("B", 3), ("M", 5), ("N", 7)],
        &["b 0:3, n 0:7, m 0:5", "b 0:3, n 0:7"],
    );
    agrees(
        "def mlp3(float(B,N) I, float(O,N) W2, float(O) B2, float(P,O) W3, float(P) B3, float(Q,P) W4, float(Q) B4)
            -> (O2, O3, O4) {
            O2(b,o) +=! I(b,n) * W2(o,n)    O2(b,o) = fmaxf(O2(b,o) + B2(o), 0)
            O3(b,p) +=! O2(b,o) * W3(p,o)   O3(b,p) = fmaxf(O3(b,p) + B3(p), 0)
            O4(b,q) +=! O3(b,p) * W4(q,p)   O4(b,q) = fmaxf(O4(b,q) + B4(q), 0)
        }",
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
    let conv = "def conv2d(float(B,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
        O(b,f,h,w) +=! I(b,c,h+y,w+x) * K(f,c,y,x)
    }";
    agrees(conv, sizes, &["b 0:2, f 0:2, h 0:7, w 0:7, c 0:3, y 0:3, x 0:2"]);
    agrees(
        &conv.replace("h+y,w+x", "2*h+y,3*w+x"),
        sizes,
        &["b 0:2, f 0:2, h 0:4, w 0:3, c 0:3, y 0:3, x 0:2"],
    );
    let scalars = conv.replace("float(B,C,H,W) I", "int32 s, int32 t, float(B,C,H,W) I");
    agrees(
        &scalars.replace("h+y,w+x", "s*h+y,t*w+x"),
        &[&sizes[..], &[("s", 2), ("t", 3)]].concat(),
        &["b 0:2, f 0:2, h 0:4, w 0:3, c 0:3, y 0:3, x 0:2"],
    );
    agrees(
        "def pool(float(B,C,H,W) I) -> (O) {
            O(b,c,i,j) max=! I(b,c,2*i+u,2*j+v) where u in 0:2, v in 0:2
        }",
        &sizes[..4],
        &["b 0:2, c 0:3, i 0:4, j 0:4, u 0:2, v 0:2"],
    );
}

#[test]
fn ex12_to_14_tables_and_groups() {
    let sizes = &[("E", 11), ("D", 3), ("B", 4), ("L", 5)];
    agrees(
        "def lut(float(E,D) T, int32(B,L) I) -> (O) { O(i,j) +=! T(I(i,k),j) }",
        sizes,
        &["i 0:4, j 0:3, k 0:5"],
    );
    agrees(
        "def lut2(float(E,D) T, int32(B,L) I, float(F,D) S, uint8(B,M) J) -> (O, P) {
            O(i,j) +=! T(I(i,k),j)
            P(i,j) +=! S(J(i,k),j)
        }",
        &[&sizes[..], &[("F", 6), ("M", 2)]].concat(),
        &["i 0:4, j 0:3, k 0:5", "i 0:4, j 0:3, k 0:2"],
    );
    agrees(
        "def gconv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) K, float(G,F) B) -> (O) {
            O(n,g,f,h,w) +=! I(n,g,c,h+y,w+x) * K(g,f,c,y,x)
            O(n,g,f,h,w) = O(n,g,f,h,w) + B(g,f)
        }",
        &[("N", 2), ("G", 2), ("C", 3), ("H", 5), ("W", 6), ("F", 2), ("KH", 3), ("KW", 2)],
        &["n 0:2, g 0:2, f 0:2, h 0:3, w 0:5, c 0:3, y 0:3, x 0:2", "n 0:2, g 0:2, f 0:2, h 0:3, w 0:5"],
    );
}

#[test]
fn ex15_and_16_contractions() {
    agrees(
        "def kronecker(float(D0,N0) W0, float(D1,N1) W1, float(D2,N2) W2, float(M,N0,N1,N2) X) -> (Y) {
            P(m,a,b,d) +=! X(m,a,b,n) * W2(d,n)
            Q(m,a,d,e) +=! P(m,a,n,e) * W1(d,n)
            Y(m,d,e,f) +=! Q(m,n,e,f) * W0(d,n)
        }",
        &[("D0", 2), ("N0", 3), ("D1", 4), ("N1", 5), ("D2", 3), ("N2", 2), ("M", 3)],
        &[
            "m 0:3, a 0:3, b 0:5, d 0:3, n 0:2",
            "m 0:3, a 0:3, d 0:4, e 0:3, n 0:5",
            "m 0:3, d 0:2, e 0:4, f 0:3, n 0:3",
        ],
    );
    agrees(
        "def outer(float(P,Q,R) A, float(S,R,T) B) -> (O) { O(p,s,q,t) +=! A(p,q,r) * B(s,r,t) }",
        &[("P", 2), ("Q", 3), ("R", 5), ("S", 4), ("T", 3)],
        &["p 0:2, s 0:4, q 0:3, t 0:3, r 0:5"],
    );
}

const MOMENTS: &str = "mean(n) +=! I(n,k)
    var(n) +=! I(n,k)*I(n,k)
    mean(n) = mean(n)/K
    var(n) = var(n)/K - mean(n)*mean(n)";

#[test]
fn ex17_to_20_norms() {
    let sizes = &[("N", 3), ("K", 7)];
    let ranges = ["n 0:3, k 0:7", "n 0:3, k 0:7", "n 0:3", "n 0:3"];
    agrees(&format!("def moments(float(N,K) I) -> (mean, var) {{ {MOMENTS} }}"), sizes, &ranges);
    agrees(
        &format!(
            "def layernorm(float(N,K) I, float(K) g, float(K) h, float eps) -> (O, mean, var) {{ {MOMENTS}
                O(n,k) = (I(n,k) - mean(n)) * rsqrt(var(n) + eps * eps + 0.1) * g(k) + h(k) }}"
        ),
        sizes,
        &[&ranges[..], &["n 0:3, k 0:7"]].concat(),
    );
    let all = "n 0:2, c 0:3, h 0:5, w 0:4";
    agrees(
        "def batchnorm(float(N,C,H,W) I) -> (O, mean) {
            mean(c) +=! I(n,c,h,w)
            mean(c) = mean(c) / (N*H*W)
            d(n,c,h,w) = I(n,c,h,w) - mean(c)
            v(c) +=! d(n,c,h,w) * d(n,c,h,w)
            v(c) = v(c) / (N*H*W)
            O(n,c,h,w) = d(n,c,h,w) * rsqrt(v(c))
        }",
        &[("N", 2), ("C", 3), ("H", 5), ("W", 4)],
        &[all, "c 0:3", all, all, "c 0:3", all],
    );
    let all = "n 0:2, g 0:2, d 0:3, h 0:3, w 0:4";
    agrees(
        "def groupnorm(float(N,G,D,H,W) I, float(G,D) gamma, float(G,D) beta) -> (O) {
            s(n,g) +=! I(n,g,d,h,w)
            q(n,g) +=! I(n,g,d,h,w) * I(n,g,d,h,w)
            O(n,g,d,h,w) = gamma(g,d) * (I(n,g,d,h,w) - mu) * rsqrt(q(n,g) / count - mu * mu + 1e-5) + beta(g,d)
                where count = I.2 * I.3 * I.4, mu = s(n,g) / count
        }",
        &[("N", 2), ("G", 2), ("D", 3), ("H", 3), ("W", 4)],
        &[all, all, all],
    );
}

#[test]
fn ex21_and_22_networks() {
    agrees(
        "def softmax(float(N,D) I) -> (O) {
            m(n) max=! I(n,d)
            s(n) +=! exp(I(n,d) - m(n))
            O(n,d) = exp(I(n,d) - m(n)) / s(n)
        }",
        &[("N", 3), ("D", 7)],
        &["n 0:3, d 0:7", "n 0:3, d 0:7", "n 0:3, d 0:7"],
    );
    let gru = "def gru(float(B,I) x, float(B,H) h, float(G,H,I) W, float(G,H,H) U) -> (y) {
        a(b,g,j) +=! x(b,i)*W(g,j,i)
        c(b,g,j) +=! h(b,k)*U(g,j,k)
        z(b,j) = 1/(1+exp(-a(b,0,j)-c(b,0,j)))
        r(b,j) = 1/(1+exp(-a(b,1,j)-c(b,1,j)))
        n(b,j) = tanh(a(b,2,j) + r(b,j)*c(b,2,j))
        y(b,j) = (1-z(b,j))*n(b,j) + z(b,j)*h(b,j)
    }";
    let pair = "b 0:3, j 0:4";
    agrees(
        gru,
        &[("B", 3), ("I", 5), ("H", 4), ("G", 3)],
        &["b 0:3, g 0:3, j 0:4, i 0:5", "b 0:3, g 0:3, j 0:4, k 0:4", pair, pair, pair, pair],
    );
    let errors = definition(gru).realise(&[("B", 3), ("I", 5), ("H", 4), ("G", 2)]).unwrap_err();
    assert!(
        errors.to_string().contains("index 1 of `a` is `2`, which reaches 2 where `a` has 0 to 1"),
        "{errors}"
    );
}

#[test]
fn ex23_to_30_small_ones() {
    agrees(
        "def conv1d(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i+x) }",
        &[("M", 9), ("N", 4)],
        &["i 0:6, x 0:4"],
    );
    agrees("def average(float(I) B) -> (A) { A(i) = B(2*i) + B(2*i+1) }", &[("I", 9)], &["i 0:4"]);
    agrees("def reverse(float(I) B) -> (A) { A(i) = B(10-i) }", &[("I", 11)], &["i 0:11"]);
    agrees(
        "def precondition(float(N) B, float(K) C, float(M) D) -> (A) { A(i,j) = B(i) * C(i+j) * D(j) }",
        &[("N", 3), ("K", 7), ("M", 5)],
        &["i 0:3, j 0:5"],
    );
    agrees("def fill(float(N) A, float c) -> (B) { B(i) = c where exists A(i) }", &[("N", 5)], &["i 0:5"]);
}

#[test]
fn ex31_dilated_causal() {
    let text = "def causal(float(B,R,T) D, float(C,R,2) F) -> (O) {
        O(b,c,t) +=! D(b,r,t)*F(c,r,1) + (t-4 >= 0 ? D(b,r,t-4)*F(c,r,0) : 0) where t in 0:T
    }";
    let sizes = [("B", 2), ("R", 3), ("T", 9), ("C", 3)];
    let ranges = &["b 0:2, c 0:3, t 0:9, r 0:3"];
    agrees(text, &sizes, ranges);
    // The same with the guard in another form, and with a scalar.
    agrees(
        &text.replace("t-4 >= 0 ? D(b,r,t-4)*F(c,r,0) : 0", "t < 4 ? 0 : D(b,r,t-4)*F(c,r,0)"),
        &sizes,
        ranges,
    );
    let scalar = text.replace("t-4", "t-d").replace("float(B,R,T) D", "int32 d, float(B,R,T) D");
    agrees(&scalar, &[&sizes[..], &[("d", 2)]].concat(), ranges);
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
    let text = "def conv2d(float(B,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
        O(b,f,h,w) +=! I(b,c,2*h+y,w+x) * K(f,c,y,x)
    }";
    let definition = definition(text);
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
    let text = "def mv2(float(M,K) A, float(K) x) -> (C) { C(i) = 0  C(i) += A(i,k) * x(k) }";
    let (pipeline, _) = definition(text).realise(&[("M", 5), ("K", 7)]).unwrap();
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
