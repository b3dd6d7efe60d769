//! Types of 16 and 64 bits: values against the naive evaluator bit for bit, and pipelines.

use warploom_interp::Evaluation;
use warploom_interp::buffer::Buffer;
use warploom_lang::{Pipeline, Realisation, Region, Type, Value};
use warploom_tensor::{Definition, parse};

use crate::naive::{Ranges, harness};

const FLOATS: [&str; 4] = ["float16", "bfloat16", "float", "double"];

const SIZES: [(&str, i64); 4] = [("N", 5), ("K", 7), ("M", 3), ("d", 2)];

fn definition(text: &str) -> Definition {
    parse("types.tc", text).unwrap_or_else(|errors| panic!("{errors}")).define(None).unwrap()
}

/// Checks values, and that the listing gives the same pipeline.
fn agrees_within(text: &str, tolerance: f64) {
    let definition = definition(text);
    let sizes: Vec<(&str, i64)> =
        SIZES.into_iter().filter(|(name, _)| definition.sizes().contains(name)).collect();
    let ranges = definition.ranges(&sizes).unwrap_or_else(|errors| panic!("{errors}"));
    let ranges: Vec<Ranges> = ranges
        .iter()
        .map(|all| all.iter().map(|one| (one.index.clone(), one.range.min, one.range.end())).collect())
        .collect();
    harness::compare(&definition, &sizes, &ranges, tolerance)
        .unwrap_or_else(|difference| panic!("{difference}"));
    let again = parse("listing.tc", &definition.to_text()).unwrap().define(None).unwrap();
    let hash = |definition: &Definition| definition.realise(&sizes).unwrap().0.structural_hash();
    assert_eq!(hash(&again), hash(&definition), "{}", definition.to_text());
}

/// Checks values bit for bit.
fn agrees(text: &str) {
    agrees_within(text, 0.0);
}

/// The lines of a pipeline.
fn listing(text: &str) -> String {
    let definition = definition(text);
    let sizes: Vec<(&str, i64)> =
        SIZES.into_iter().filter(|(name, _)| definition.sizes().contains(name)).collect();
    definition.realise(&sizes).unwrap().0.to_string()
}

/// A temporary tensor has the type that stands where it is written first.
#[test]
fn temporaries_can_be_declared_with_a_type() {
    let mean = "def mean(float(N,K) A) -> (C) { double s(i) +=! A(i,k)  C(i) = float(s(i) / K) }";
    insta::assert_snapshot!(listing(mean), @"
    pipeline mean
      input  A(d0, d1): f32
      s.sum(i) = 0.0
      s.sum(i) = s.sum(i) + f64(A(k, i))  over k in (0, A.extent(0))  in any order
      C(i) = f32(s.sum(i) / f64(A.extent(0)))
    ");
    assert_eq!(
        definition(mean).to_text(),
        "def mean(float(N, K) A) -> (C) {\n  double s(i) +=! A(i, k)\n  C(i) = float(s(i) / K)\n}\n"
    );
    for ty in FLOATS {
        agrees(&mean.replace("float", ty));
        // Literals take the type of the temporary; what is narrower fits.
        agrees(
            &"def f(T(N) A, int8(N) B) -> (C) { double t(i) = 0.1  t(i) += A(i)  int64 n(i) = B(i)  n(i) *= 3  C(i) = t(i) * n(i) }"
                .replace('T', ty),
        );
    }
    // A temporary without dimensions, and one that is updated by several statements.
    agrees("def f(float(N) A) -> (C) { double s +=! A(i)  s *= 2.0  C(i) = float(A(i) / s) }");
}

/// Scalars have defaults, which a caller need not give.
#[test]
fn scalars_can_have_defaults() {
    let text = "def f(float(N) A, double a = -0.1, int32 d = 2, uint8 e = 7, float b) -> (C) {
        C(i) = float(A(i + d) * a) + e * b where i in 0:N - d
    }";
    let definition = definition(text);
    assert_eq!(definition.sizes(), ["N", "d"]);
    let default = |request: &Realisation, pipeline: &Pipeline, name: &str| {
        pipeline.param_named(name).and_then(|id| request.params[id])
    };
    let (pipeline, request) = definition.realise(&[("N", 9)]).unwrap();
    assert_eq!(request.outputs[0].as_ref().unwrap().extents(), [7]);
    assert_eq!(default(&request, &pipeline, "a"), Some(Value::from(-0.1_f64)));
    assert_eq!(default(&request, &pipeline, "d"), Some(Value::from(2_i32)));
    assert_eq!(default(&request, &pipeline, "e"), Some(Value::from(7_u8)));
    assert_eq!(default(&request, &pipeline, "b"), None);
    // A size that is given counts, and so do the defaults of the listing.
    let (_, request) = definition.realise(&[("N", 9), ("d", 4)]).unwrap();
    assert_eq!(request.outputs[0].as_ref().unwrap().extents(), [5]);
    let listed = definition.to_text();
    assert!(listed.contains("double a = -0.1, int32 d = 2, uint8 e = 7, float b)"), "{listed}");
    let again = parse("listing.tc", &listed).unwrap().define(None).unwrap();
    assert_eq!(again.to_text(), listed);
    assert_eq!(
        again.realise(&[("N", 9)]).unwrap().1.params,
        definition.realise(&[("N", 9)]).unwrap().1.params
    );
}

#[test]
fn sums_of_sixteen_bits_are_rounded_once() {
    let mm = "def mm(float16(N,K) A, float16(K,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
    insta::assert_snapshot!(listing(mm), @r"
    pipeline mm
      input  A(d0, d1): f16
      input  B(d0, d1): f16
      C.sum(j, i) = 0.0
      C.sum(j, i) = C.sum(j, i) + f32(A(k, i)) * f32(B(j, k))  over k in (0, A.extent(0))  in any order
      C(j, i) = f16(C.sum(j, i))
    ");
    for ty in FLOATS {
        agrees(&mm.replace("float16", ty));
        // Everything on the right is computed in 32 bits, but for explicit conversions.
        agrees(
            &"def all(T(N,K) A, T(K) x, T c) -> (C, D, E, F) {
                C(i) +=! A(i,k) * x(k) * 0.1 + c * k - (A(i,k) > 0.1 ? x(k) : 0.3) + y * y / 3 where y = x(k) + 0.7
                D(i) +=! T(A(i,k) * x(k)) * c
                E(i) *=! A(i,k) * x(k) + 1.7
                F(i) max=! A(i,k) * x(k) - c
            }"
            .replace('T', ty),
        );
        // A pointwise update too.
        agrees(&"def one(T(N) A, T(N) B) -> (C, D) { C(i) +=! A(i) * B(i) + B(i)  D(i) = A(i)  D(i) += A(i) * B(i) }".replace('T', ty));
        // A tensor that is updated again continues from its rounded value.
        agrees(
            &"def more(T(N,K) A, T(K) x) -> (C, D, E) {
                C(i) = A(i,0) * 1.3  C(j) += A(j,k) * x(k)  C(i) += A(i,k)  C(i) *= A(i,1)
                D(i) +=! A(i,k)  E(i) = D(i) * 0.1  D(i) min= A(i,k) * x(k)
            }"
            .replace('T', ty),
        );
        agrees(&"def onto(T(N) C, T(N,K) A) -> (C) { C(i) += A(i,k) * 0.1 }".replace('T', ty));
        agrees(&"def read(T(N) A, int64(K) I) -> (s) { s +=! A(I(k)) * A(I(k)) }".replace('T', ty));
    }
    // A wider result keeps what the sum has.
    agrees("def wide(float16(N,K) A, float16(K) x) -> (float(N) C) { C(i) +=! A(i,k) * x(k) }");
    agrees("def count(int32(N,K) A) -> (bfloat16(N) C) { C(i) +=! A(i,k) * 300 + 1 }");
}

/// 4099 ones: an accumulator of 16 bits would stay at 2048.
#[test]
fn long_sums_of_sixteen_bits_do_not_stall() {
    let (pipeline, request) =
        definition("def ones(half(N) A) -> (s) { s +=! A(i) }").realise(&[("N", 4099)]).unwrap();
    let mut ones = Buffer::zeros(Type::F16, Region::of_extents(&[4099])).unwrap();
    for at in 0..4099 {
        ones.set(&[at], Value::one(Type::F16)).unwrap();
    }
    let region = request.outputs[0].clone().unwrap();
    let sum = Evaluation::new(&pipeline).input("A", &ones).output("s", region).run().unwrap();
    assert_eq!((sum[0].ty(), sum[0].get(&[]).unwrap().as_f64()), (Type::F16, 4100.0));
}

#[test]
fn pointwise_statements_round_every_operation() {
    for ty in FLOATS {
        agrees(
            &"def f(T(N) A, T(N) B) -> (C) { C(i) = A(i) * B(i) + A(i) / B(i) - (A(i) % B(i)) }"
                .replace('T', ty),
        );
        agrees(
            &"def f(T(N) A) -> (C) { C(i) = A(i) > 0.1 ? min(A(i), 0.3) : max(-A(i), K) where K = 2 }"
                .replace('T', ty),
        );
        for other in FLOATS {
            agrees(&format!(
                "def f({ty}(N) A, {other}(N) B) -> (C, s) {{ C(i) = A(i) * B(i) + 0.1  s +=! A(i) * B(i) }}"
            ));
        }
    }
    insta::assert_snapshot!(
        listing("def f(float16(N) A, bfloat16(N) B, int64(N) I) -> (C, D) { C(i) = A(i) * B(i)  D(i) = A(i) * I(i) }"),
        @r"
        pipeline f
          input  A(d0): f16
          input  B(d0): bf16
          input  I(d0): i64
          C(i) = f32(A(i)) * f32(B(i))
          D(i) = A(i) * f16(I(i))
        "
    );
}

#[test]
fn literals_take_the_type_of_the_float_that_they_meet() {
    insta::assert_snapshot!(
        listing("def f(float16(N) H, double(N) D) -> (A, B, C, E) {
            A(i) = H(i) * 0.1
            B(i) = D(i) * 0.1 + 0.2 * i
            C(i) = (x + 1) * H(i) + x * D(i) where x = 1.0 / 3
            E(i) = 0.1 where exists D(i)
        }"),
        @r"
        pipeline f
          input  H(d0): f16
          input  D(d0): f64
          A(i) = H(i) * 0.099975586
          B(i) = D(i) * 0.1 + 0.2 * f64(i)
          C(i) = f64((1.0 / 3.0 + 1.0) * H(i)) + 1.0 / 3.0 * D(i)
          E(i) = 0.1
        "
    );
    for ty in FLOATS {
        agrees(&"def f(T(N) A) -> (C) { C(i) = 0.1 * i * A(i) + (2.5 - 0.7) / i }".replace('T', ty));
        agrees(
            &"def f(T(N) A) -> (C) { C(i) = y * A(i) + y where x = 0.1 * i, y = x * x + 0.3 }"
                .replace('T', ty),
        );
        agrees(&"def f(T(N) A) -> (C) { C(i) = T(0.1) + A(i) * (A(i) > 0 ? 0.1 : 3) }".replace('T', ty));
        // Literals that are stored wait for the next statement.
        agrees(&"def f(T(N,K) A) -> (C) { C(i) = 0.1 + i  C(x) += A(x,k) }".replace('T', ty));
        agrees(&"def f(T(N) A) -> (C) { C(i) = 0.1 * i  C(x) *= A(x) }".replace('T', ty));
        agrees(
            &"def f(T(N) A) -> (C, D) { C(i) = 0.1 where exists A(i)  D(i) = C(i)  C(x) += A(x) }"
                .replace('T', ty),
        );
        agrees(&"def f(int32(N) A) -> (T(N) C) { C(i) = 0.1 * A(i)  C(i) += A(i) + 0.2 }".replace('T', ty));
        agrees(&"def f(T c, T(N) A) -> (C) { C(i) = c + A(i) * 1e-3 }".replace('T', ty));
    }
    agrees("def f(double(N) A) -> (C) { C(i) = A(i) * 1e99 }");
    // Its own statement reads it, so it is a float before.
    agrees("def f(double(N,K) A) -> (C) { C(i) = 0.1 where i in 0:N  C(i) += C(i) * A(i,k) }");
}

#[test]
fn integers_of_sixty_four_bits() {
    for (ty, other) in [("int64", "int32"), ("uint64", "uint8"), ("int64", "uint32"), ("uint64", "int16")] {
        agrees(&format!(
            "def f({ty}(N,K) A, {other}(N,K) B) -> (s, p, m, q) {{
                s(i) +=! A(i,k) * B(i,k) + 1000000 * A(i,k) * 1000000
                p(i) *=! A(i,k) + 1
                m(i) max=! A(i,k) - B(i,k) * 2
                q(i,k) = (A(i,k) - 5) / (B(i,k) - 4) + (A(i,k) - 7) % 3
            }}"
        ));
    }
    insta::assert_snapshot!(
        listing("def f(int64(N) A, uint64(N) B) -> (a, b, c, e) { a min=! A(i)  b max=! A(i)  c min=! B(i)  e max=! B(i) }"),
        @r"
        pipeline f
          input  A(d0): i64
          input  B(d0): u64
          a.min() = 9223372036854775807
          a.min() = min(a.min(), A(i))  over i in (0, A.extent(0))
          a() = a.min()
          b.max() = -9223372036854775808
          b.max() = max(b.max(), A(i))  over i in (0, A.extent(0))
          b() = b.max()
          c.min() = 18446744073709551615
          c.min() = min(c.min(), B(i))  over i in (0, A.extent(0))
          c() = c.min()
          e.max() = 0
          e.max() = max(e.max(), B(i))  over i in (0, A.extent(0))
          e() = e.max()
        "
    );
}

#[test]
fn indices_of_sixty_four_bits_are_clamped() {
    for ty in ["int64", "uint64"] {
        agrees(
            &"def f(float(N) T, I(K) I) -> (C, s) { C(i) = T(I(i) * 4) + T(I(i) + 1)  s +=! T(I(i)) }"
                .replace("I(K)", &format!("{ty}(K)")),
        );
    }
    let far = "def f(float(N) T, int64(K) I) -> (C) { C(i) = T(I(i) * 1000000 * 1000000 - 1) + T(2 - I(i) * 1000000 * 1000000) }";
    agrees(far);
    insta::assert_snapshot!(listing("def f(float(N,M) T, int64(K) I) -> (C) { C(i,j) = T(I(i),j) }"), @r"
    pipeline f
      input  I(d0): i64
      input  T(d0, d1): f32
      C(j, i) = T(j, max(min(saturate_i32(I(i)), T.extent(1) - 1), 0))
    ");
    // A scalar in indices and ranges.
    agrees("def f(float(N) A, int64 d) -> (C) { C(i) = A(i + d) + d * i where i in 0:N-d }");
    agrees("def f(float(N) A, int64 d) -> (C) { C(i) +=! A(i + int64(k)) where k in 0:d }");
}

#[test]
fn functions() {
    let double = "def f(double(N) A) -> (C) {
        C(i) = fabs(x) + log(x + 2) + round(x * 3) + trunc(x * 3) + fdim(x, 0.5) + fdivide(x, 3) + fmin(x, 0.1) + hypot(x, 2)
            + rhypot(x, 2) + fma(x, x, 1) + norm3d(x, 1, 2) + rnorm4d(x, 1, 2, 3) + pow(x + 2, 1.5) + floor(x) + ceil(x)
            + sin(x) + cos(x) + sqrt(x + 2) + rsqrt(x + 3) + exp(x) + tanh(x) + fmax(x, 0.1) + exp(0.1 * i) + sqrt(A.0)
            where x = A(i)
    }";
    agrees_within(double, 1e-13);
    for ty in ["float16", "bfloat16"] {
        agrees_within(&double.replace("double", ty), 1e-3);
        // Rounded once, whatever the formula.
        agrees(&"def f(T(N) A) -> (C) { C(i) = hypot(A(i), 0.3) }".replace('T', ty));
        agrees_within(
            &"def f(T(N) A) -> (C) { C(i) = cosh(A(i)) + exp2(A(i)) + erf(A(i)) + cbrt(A(i)) + log1p(A(i) + 1) }".replace('T', ty),
            1e-3,
        );
    }
    insta::assert_snapshot!(
        listing("def f(float16(N) A, double(N) B) -> (C, D, s) { C(i) = exp(A(i))  D(i) = exp(B(i) * 0.1)  s +=! exp(A(i)) }"),
        @r"
        pipeline f
          input  A(d0): f16
          input  B(d0): f64
          C(i) = f16(exp(f32(A(i))))
          D(i) = exp(B(i) * 0.1)
          s.sum() = 0.0
          s.sum() = s.sum() + exp(f32(A(i)))  over i in (0, A.extent(0))  in any order
          s() = f16(s.sum())
        "
    );
}

#[test]
fn conversions() {
    let types = ["float16", "bfloat16", "float", "double", "int64", "uint64", "int32", "uint8", "bool"];
    for from in types {
        let value = if from == "bool" { "A(i)" } else { "A(i) * 3" };
        for to in types {
            agrees(&format!("def f({from}(N) A) -> (C) {{ C(i) = {to}({value}) }}"));
        }
    }
}
