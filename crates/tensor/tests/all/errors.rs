//! Every mistake that a text or its sizes can have, as users see it.

use warploom_tensor::{Errors, parse};

/// A text that is wrong by itself.
fn refused(text: &str) -> Errors {
    match parse("wrong.tc", text) {
        Ok(program) => panic!("accepted: {program:?}"),
        Err(errors) => errors,
    }
}

/// A text that is wrong at these sizes.
fn refused_at(text: &str, sizes: &[(&str, i64)]) -> Errors {
    let definition =
        parse("wrong.tc", text).unwrap_or_else(|errors| panic!("{errors}")).define(None).unwrap();
    match definition.realise(sizes) {
        Ok((pipeline, _)) => panic!("accepted: {pipeline}"),
        Err(errors) => errors,
    }
}

fn listed(all: impl IntoIterator<Item = Errors>) -> String {
    all.into_iter().map(|errors| format!("{errors}\n\n")).collect()
}

/// A definition of two vectors `A`, `B` and a scalar `c` with one statement.
fn with(statement: &str) -> String {
    format!("def f(float(N) A, int32(N,M) B, float c, int32 d) -> (C) {{\n  {statement}\n}}")
}

#[test]
fn syntax() {
    let long = "x".repeat(101);
    let texts = [
        "C(i) = A(i)".to_string(),
        "def (float a) -> (b) {}".to_string(),
        "def where(float a) -> (b) {}".to_string(),
        "def f(a) -> (b) {}".to_string(),
        "def f(float a, ) -> (b) {}".to_string(),
        "def f(float a b) -> (b) {}".to_string(),
        "def f(float(N+1) a) -> (b) {}".to_string(),
        "def f(float a) (b) {}".to_string(),
        "def f(float a) -> (b) b = 1".to_string(),
        "def f(float a) -> (b) { b = 1".to_string(),
        "def 2LUT(float a) -> (b) { b = 1 }".to_string(),
        with("C(0) = 1"),
        with("C(i+1) = 1"),
        with("C(i) == 1"),
        with("C(i) -= 1"),
        with("C(i) = A(i) +"),
        with("C(i) = (A(i)"),
        with("C(i) = A(i) ? 1"),
        with("C(i) = min(A(i))"),
        with("C(i) = float 1"),
        with("C(i) = A."),
        with("C(i) = A(i) where"),
        with("C(i) = A(i) where i"),
        with("C(i) = A(i) where i in 0"),
        with("C(i) = A(i) <=> sgemm"),
        with("C(i) = A(i);"),
        with("C(i) = A(i) & 1 | 2"),
        with("C(i) = 99999999999"),
        with("C(i) = 1e99"),
        with("C(i) = 3x"),
        with("(C, D) = other(A)"),
        with(&format!("C(i) = {long}")),
        "def f(float a\u{202e}) -> (b) { b = 1 }".to_string(),
    ];
    insta::assert_snapshot!(listed(texts.iter().map(|text| refused(text))));
}

#[test]
fn names() {
    let texts = [
        with("C(i) = X(i)"),
        with("C(i) = A(i) * D(i)  D(i) = A(i)"),
        with("C(i) = C(i) + A(i)"),
        with("A(i) = 1 C(i) = A(i)"),
        with("D(i) = A(i)"),
        with("C(i) = A(i)  D(i) = A(i)"),
        with("C(N) = A(N)"),
        with("C(A) = A(0)"),
        with("C(exp) = A(0)"),
        with("exp(i) = A(i) C(i) = A(i)"),
        with("C(i) = A(i) + sqrt"),
        with("C(i) = erfc(A(i))"),
        with("C(i) = pow(A(i))"),
        with("C(i) = x(i) where x = A(i)"),
        with("C(i) = y where y = x + 1, x = A(i)"),
        with("C(i) = A(i) where A = 1"),
        with("C(i) = A(i) where i = 1"),
        with("C(i) = A(i) where exp = 1"),
        with("C(i) = A(i) + x where x = 1, x = 2"),
        with("C(i) = A(i) where k in 0:2"),
        with("C(i) = A(i) where N in 0:2"),
        with("C(i) = A(i) where i in 0:2, i in 0:3"),
        with("C(i) = A(i) where i in 0:k"),
        with("C(i) = A(i) where i in 0:A(0)"),
        with("C(i) = A(i) where i in 0:c"),
        with("C(i) = A(i) where exists B(i,k)"),
        "def f(float a, float a) -> (b) { b = 1 }".to_string(),
        "def f(float(N) N) -> (b) { b = 1 }".to_string(),
        "def f(float exp) -> (b) { b = 1 }".to_string(),
        "def f(float a) -> (b, b) { b = 1 }".to_string(),
        "def f(float a) -> () { b = 1 }".to_string(),
        "def f(float a) -> (b) { b = a }\ndef f(float a) -> (b) { b = a }".to_string(),
        "def f(float(N) A) -> (float(K) B) { B(i) = A(i) }".to_string(),
        "def f(float(N) A, float(N) A_in) -> (A) { A(i) = A_in(i) }".to_string(),
    ];
    insta::assert_snapshot!(listed(texts.iter().map(|text| refused(text))));
}

#[test]
fn shapes_types_and_reductions() {
    let many: Vec<String> = (0..65).map(|i| format!("i{i}")).collect();
    let texts = [
        with("C(i) = A(i,j)"),
        with("C(i) = A + 1"),
        with("C(i) = A(i)  C(i,j) = B(i,j)"),
        with("C(i) = A(i) + A.1"),
        with("C(i) = A(i) + X.0"),
        with("C(i,i) = B(i,i)"),
        "def f(float(N) A) -> (float(N,N) B) { B(i) = A(i) }".to_string(),
        with("C(i) = A(0.5 * i)"),
        with("C(i) = A(A(i))"),
        with("C(i) = A(i) ? 1 : 2"),
        with("C(i) = A(i) && A(i) > 0"),
        with("C(i) = !A(i)"),
        with("C(i) = (A(i) > 0) + 1"),
        with("C(i) = exp(A(i) > 0)"),
        with("C(i) = A(i) > 0 ? 1 : A(i) > 1"),
        with("C +=! A(i) > 0"),
        with("C(i) = A(i) > 0  C(i) = 1"),
        "def f(float(N) A) -> (int32(N) B) { B(i) = A(i) }".to_string(),
        "def f(float(N) A) -> (uint8(N) B) { B(i) = 256 where exists A(i) }".to_string(),
        "def conv1d(float(M) I, float(N) K) -> (O) { O(i) = K(x) * I(i+x) }".to_string(),
        with("C(i) += A(i)"),
        with("C(i) max= A(k) where i in 0:3"),
        "def swap(float(N,N) B) -> (A) { A(i,j) = B(i,j)  A(i,j) = A(j,i) }".to_string(),
        format!("def f(float A) -> (B) {{ B({}) = A }}", many.join(",")),
    ];
    insta::assert_snapshot!(listed(texts.iter().map(|text| refused(text))));
}

#[test]
fn types_of_other_widths() {
    let typed = |result: &str, statement: &str| {
        format!(
            "def f(double(N) D, half(N) H, bfloat16(N) B, int64(N) I, uint64(N) U, float(N) F) -> ({result}) {{\n  {statement}\n}}"
        )
    };
    let texts = [
        // Functions that double does not have, also of a literal that becomes one.
        typed("C", "C(i) = erf(D(i)) + exp(D(i))"),
        typed("C", "C(i) = atan2(1, D(i))"),
        typed("C", "C(i) = x * D(i) where x = exp2(0.5 * i)"),
        typed("C", "C(i) = double(log1p(0.1)) where exists D(i)"),
        typed("double(N) C", "C(i) = tan(0.5) where exists D(i)"),
        // Results that are declared too narrow.
        typed("float(N) C", "C(i) = D(i)"),
        typed("float16(N) C", "C(i) = F(i)"),
        typed("half(N) C", "C(i) = H(i) * B(i)"),
        typed("bfloat16(N) C", "C(i) = H(i)"),
        typed("int32(N) C", "C(i) = I(i)"),
        typed("uint64(N) C", "C(i) = U(i) - 1"),
        typed("int64(N) C", "C(i) = 0.5 where exists I(i)"),
        // Literals that do not fit.
        typed("C", "C(i) = H(i) + 70000.0"),
        typed("C", "C(i) = B(i) < 1e39"),
        typed("C", "C +=! H(i) * 1e39"),
        typed("C", "C(i) = 1e39 * i where exists D(i)"),
        typed("C", "C(i) = 1e39 where exists D(i)  E(i) = C(i)  C(i) += D(i) * E(i)"),
        typed("C", "C(i) = D(i) * 1e309"),
        typed("C", "C(i) = F(H(i))"),
        typed("C", "C(i) = I(i) ? 1 : 2"),
    ];
    insta::assert_snapshot!(listed(texts.iter().map(|text| refused(text))));
}

#[test]
fn ranges() {
    let pool = "def pool(float(B,C,H,W) I) -> (O) { O(b,c,i,j) max=! I(b,c,2*i+u,2*j+v) }";
    let shift = "def shift(float(N) B, float(M) C) -> (A) { A(i) = B(i) + C(i-2) }";
    let three = "def three(float(N) B, float(K) C, float(M) D) -> (A) { A(i,j) = B(i) * C(i+j) * D(j) }";
    let vector = |statement: &str| format!("def f(float(N) B, int32 d) -> (A) {{ {statement} }}");
    let n = [("N", 5)];
    let found = [
        refused_at(pool, &[("B", 1), ("C", 1), ("H", 8), ("W", 8)]),
        refused_at(shift, &[("N", 9), ("M", 9)]),
        refused_at("def reverse(float(I) B) -> (A) { A(i) = B(10-i) }", &[("I", 10)]),
        refused_at(&vector("A(i,j) = B(i+j)"), &n),
        refused_at(three, &[("N", 3), ("K", 6), ("M", 5)]),
        refused_at(&vector("A(i) = 0"), &n),
        refused_at(&vector("A(i) = i * 2"), &n),
        refused_at(&vector("A(i) = B(i) where i in 0:6"), &n),
        refused_at(&vector("A(i) = B(i) where i in 3:3"), &n),
        refused_at(&vector("A(i) = B(i) where i in 0:(d > 1 ? 2 : 3)"), &[("N", 5), ("d", 1)]),
        refused_at(&vector("A(i) = B(i+7)"), &n),
        refused_at(&vector("A(i) = B(i % 7) where i in 0:9"), &n),
        refused_at(&vector("A(i) = B(i*i)  where i in 0:4"), &n),
        refused_at(&vector("A(i) = B(i)  A(i) = B(i+1)"), &n),
        refused_at(&vector("A(i) = B(i)  A(i) += B(i+1) * B(k)"), &n),
        refused_at(&vector("A(i) = B(d*i)"), &[("N", 5), ("d", 0)]),
        refused_at(&vector("A(i) = B(i) where i in 0:2000000000*1000"), &n),
        refused_at("def f(float(N) A, float(M) B) -> (float(M) C) { C(i) = A(i) }", &[("N", 3), ("M", 4)]),
        // Two statements are wrong; the third only depends on the first.
        refused_at(&vector("T(i) = B(i-1)\n S(i) = B(i-2)\n A(i) = T(i) + S(i)"), &n),
    ];
    insta::assert_snapshot!(listed(found));
}

#[test]
fn sizes() {
    let text =
        "def f(float(N,M) A, float(M,3) B, int32 d) -> (C) { C(i,j) +=! A(i,k) * B(k,j) where k in 0:d }";
    let definition = parse("sizes.tc", text).unwrap().define(None).unwrap();
    let good = [("N", 2), ("M", 5), ("d", 4)];
    assert!(definition.realise(&good).is_ok());
    let with = |name: &'static str, value: i64| {
        let sizes: Vec<(&str, i64)> =
            good.iter().map(|one| if one.0 == name { (name, value) } else { *one }).collect();
        definition.realise(&sizes).unwrap_err()
    };
    let found = [
        definition.realise(&[]).unwrap_err(),
        definition.realise(&[&good[..], &[("Q", 1), ("N", 3)]].concat()).unwrap_err(),
        with("N", 0),
        with("M", (1 << 30) + 1),
        with("d", 1 << 40),
        with("d", 6),
        with("d", -3),
        definition.sizes_of(&[("A", &[2, 5]), ("B", &[4, 3])]).unwrap_err(),
        definition.sizes_of(&[("A", &[2, 5]), ("B", &[5, 4])]).unwrap_err(),
        definition.sizes_of(&[("A", &[2]), ("X", &[5, 4])]).unwrap_err(),
    ];
    insta::assert_snapshot!(listed(found));
    let vector = parse("f.tc", "def f(float(0) A) -> (B) { B(i) = A(i) }").unwrap().define(None).unwrap();
    assert!(vector.realise(&[]).unwrap_err().to_string().contains("sizes are from 1 to 2^30"));
}

#[test]
fn declarations() {
    let cases = [
        (
            with("float(N) t(i) = A(i)\n C(i) = t(i)"),
            "2:8: expected the name of a tensor but found `(`; a temporary is declared as `float t(i) = ..`, without \
             sizes, which follow from the statement",
        ),
        (
            with("float C(i) = A(i)"),
            "2:3: `C` is a result and cannot get a type here; write its type in the list of results",
        ),
        (
            with("t(i) = A(i)\n float t(i) += A(i)\n C(i) = t(i)"),
            "3:2: `t` is written before and cannot get a type here; write its type at the first statement that writes it",
        ),
        (
            with("half t(i) = A(i)\n C(i) = t(i)"),
            "2:15: `t` is declared float16 and cannot hold float without loss; convert the value with float16(..)",
        ),
        (
            "def f(float(N) A = 1) -> (C) { C(i) = A(i) }".to_string(),
            "1:20: `A` is a tensor, and only scalars have defaults; remove it",
        ),
        (
            "def f(float(N) A, int8 c = 300) -> (C) { C(i) = A(i) * c }".to_string(),
            "1:28: the default of `c` is no value of int8; choose another number",
        ),
        (
            "def f(float(N) A, uint8 c = -1) -> (C) { C(i) = A(i) * c }".to_string(),
            "1:29: the default of `c` is no value of uint8; choose another number",
        ),
        (
            "def f(float(N) A, int c = 0.5) -> (C) { C(i) = A(i) * c }".to_string(),
            "1:27: the default of `c` is no value of int32; choose another number",
        ),
        (
            "def f(float(N) A, half c = 1e9) -> (C) { C(i) = A(i) * c }".to_string(),
            "1:28: the default of `c` is no value of float16; choose another number",
        ),
        (
            "def f(float(N) A, float c = N) -> (C) { C(i) = A(i) * c }".to_string(),
            "1:29: expected a number but found `N`; a default is one number, as in `float c = 0.5`",
        ),
    ];
    for (text, message) in cases {
        let errors = refused(&text).to_string();
        assert_eq!(errors.lines().next(), Some(format!("wrong.tc:{message}").as_str()), "{text}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported() {
    let text = "def a(float(N) A) -> (C) { C(i) = A(i,j) + X(i) }\n\
                def b(float(N) A) -> (C) { C(i) = }\n\
                def c(float(N) A) -> (C) { C(i) = A(k) }";
    let errors = refused(text);
    let lines: Vec<usize> = errors.list().iter().map(|mistake| errors.position(mistake).0).collect();
    assert_eq!(lines, [1, 1, 2, 3], "{errors}");
    let many = "def ".repeat(1000);
    assert!(refused(&many).to_string().ends_with("and 80 more"), "{}", refused(&many));
}

#[test]
fn a_definition_is_chosen_by_name() {
    let text = "def a(float x) -> (y) { y = x }\ndef b(float x) -> (y) { y = x }";
    let program = parse("two.tc", text).unwrap();
    assert_eq!(program.define(Some("b")).unwrap().name(), "b");
    let message = |program: &warploom_tensor::Program, name| program.define(name).unwrap_err().to_string();
    assert_eq!(message(&program, None), "two.tc has several definitions; choose one of a, b");
    assert_eq!(message(&program, Some("\u{1b}")), "two.tc has no definition named `<U+001B>`; it has a, b");
    let empty = parse("no.tc", "# nothing").unwrap();
    assert!(message(&empty, None).starts_with("no.tc has no definition;"));
}
