//! Any text is read or refused: no panic, no stack overflow, no long wait.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use warploom_lang::{Value, infer};
use warploom_tensor::ast::{
    Assign, Binary, Clause, Declared, Def, Dim, Expr, ExprKind, Name, Number, Reduction, ResultName,
    Statement, TensorType, Unary,
};
use warploom_tensor::types::Scalar;
use warploom_tensor::{Fault, MAX_NESTING, Span, parse};

use crate::mutate::{Mutator, WORDS};

/// Reads a text, and computes ranges and pipelines of what can be read.
fn exercise(text: &str) -> bool {
    let Ok(program) = parse("fuzz.tc", text) else { return false };
    let again = parse("listing.tc", &program.to_text());
    assert!(again.is_ok(), "{text}\n{again:?}");
    for name in program.definitions() {
        let definition = program.define(Some(name)).unwrap();
        let sizes: Vec<(&str, i64)> =
            definition.sizes().iter().enumerate().map(|(i, name)| (*name, 2 + (i as i64 * 7) % 5)).collect();
        match definition.realise(&sizes) {
            Ok((pipeline, request)) => {
                let mut request = request;
                for (id, param) in pipeline.params().iter() {
                    request.params[id].get_or_insert(Value::zero(param.ty));
                }
                // Every read is in bounds by the language's own inference, too.
                let inferred = infer(&pipeline, &request);
                assert!(inferred.is_ok(), "{text}\n{pipeline}\n{}", inferred.unwrap_err());
            }
            Err(errors) => assert!(!errors.to_string().is_empty()),
        }
    }
    true
}

fn fuzz(count: usize, seed: u64) -> usize {
    let mut mutator = Mutator::new(seed);
    (0..count).filter(|_| exercise(&mutator.text())).count()
}

#[test]
fn mutated_texts_do_no_harm() {
    let read = fuzz(3_000, 0x9e37_79b9_7f4a_7c15);
    assert!(read > 150, "only {read} texts were still programs");
}

/// `WARPLOOM_TENSOR_MUTATIONS` sets the number; a million by default.
#[test]
#[ignore = "takes minutes"]
fn a_million_mutated_texts_do_no_harm() {
    let count = std::env::var("WARPLOOM_TENSOR_MUTATIONS").ok().and_then(|count| count.parse().ok());
    let count = count.unwrap_or(1_000_000);
    let read = fuzz(count, 0x1234_5678_9abc_def1);
    println!("{read} of {count} texts were programs");
    assert!(read > count / 20, "only {read} of {count} texts were still programs");
}

/// One of ten attempts must be in time, because the machine may be busy.
fn in_a_second(what: &str, text: &str) {
    let attempt = || {
        let start = Instant::now();
        let outcome = parse("large.tc", text);
        if let Err(errors) = &outcome {
            assert!(!errors.to_string().is_empty());
        }
        start.elapsed()
    };
    let mut best = Duration::MAX;
    for _ in 0..10 {
        best = best.min(attempt());
        if best < Duration::from_secs(1) {
            return;
        }
    }
    panic!("{what}: {best:?}");
}

#[test]
fn a_megabyte_is_read_or_refused_within_a_second() {
    let full = |unit: &str| unit.repeat(1_000_000 / unit.len());
    let numbered = |unit: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for i in 0.. {
            if text.len() > 1_000_000 {
                break;
            }
            text += &unit(i);
        }
        text
    };
    let inside = |body: &str| format!("def f(float(N) A) -> (C) {{ {body} }}");
    in_a_second("definitions", &numbered(&|i| format!("def f{i}(float(N) A) -> (C) {{ C(i) = A(i) }}\n")));
    in_a_second("equal definitions", &full("def f(float(N) A) -> (C) { C(i) = A(i) }\n"));
    in_a_second("statements", &inside(&full("C(i) = A(i) ")));
    in_a_second("tensors", &inside(&numbered(&|i| format!("T{i}(i) = A(i) "))));
    in_a_second("a chain", &inside(&format!("C(i) = A(i){}", full(" + A(i)"))));
    in_a_second("parentheses", &inside(&format!("C(i) = {}", full("("))));
    in_a_second("signs", &inside(&format!("C(i) = {}", full("-"))));
    in_a_second("choices", &inside(&format!("C(i) = {}", full("i ? i : "))));
    in_a_second("arguments", &inside(&format!("C(i) = A({}i)", full("i, "))));
    in_a_second("indices", &inside(&format!("C({}i) = A(i)", numbered(&|i| format!("i{i}, ")))));
    in_a_second(
        "lets",
        &inside(&format!("C(i) = A(i) where {}y = 1", numbered(&|i| format!("x{i} = x{}, ", i + 1)))),
    );
    in_a_second(
        "chained lets",
        &inside(&format!("C(i) = A(i) where x0 = i{}", numbered(&|i| format!(", x{} = x{i} + x{i}", i + 1)))),
    );
    in_a_second(
        "parameters",
        &format!("def f({}float b) -> (C) {{ C = b }}", numbered(&|i| format!("float(N{i}) A{i}, "))),
    );
    in_a_second("keywords", &full("def "));
    in_a_second("a name", &full("x"));
    in_a_second("digits", &full("7"));
    in_a_second("a comment", &full("#"));
    in_a_second("symbols", &full("\u{2028}"));
    in_a_second("blanks", &full(" \n"));
}

#[test]
fn many_statements_are_realised_in_little_time() {
    let body: String = (0..5_000).map(|i| format!("T{}(i) = T{i}(i) + A(i)  ", i + 1)).collect();
    let text = format!("def f(float(N) A) -> (T5000) {{ T0(i) = A(i) {body} }}");
    let start = Instant::now();
    let definition = parse("long.tc", &text).unwrap().define(None).unwrap();
    let (pipeline, _) = definition.realise(&[("N", 9)]).unwrap();
    assert_eq!(pipeline.funcs().len(), 5_001);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    println!("{:?}", start.elapsed());
}

#[test]
fn long_lets_and_large_products_stay_small() {
    let lets: String = (0..60).map(|i| format!(", x{} = (x{i} + x{i}) * (x{i} + N)", i + 1)).collect();
    let text = format!("def f(float(N) A) -> (C) {{ C(i) = A(i) + x60 where x0 = i{lets} }}");
    let start = Instant::now();
    assert!(exercise(&text));
    let factors = "*(N+M+K+L+P)".repeat(100);
    assert!(exercise(&format!(
        "def f(float(N,M,K,L,P) A) -> (C) {{ C(i) = A(i,0,0,0,0) where i in 0:1{factors} }}"
    )));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |open: &str, close: &str, levels: usize| {
        format!("def f(float(N) A) -> (C) {{ C(i) = {}A(i){} }}", open.repeat(levels), close.repeat(levels))
    };
    for (open, close) in [("(", ")"), ("-", ""), ("exp(", ")"), ("float(", ")"), ("max(1, ", ")")] {
        // The read itself has an index, which is one level more.
        let levels = MAX_NESTING - 1;
        assert!(exercise(&nested(open, close, levels)), "{open}");
        let errors = parse("deep.tc", &nested(open, close, levels + 1)).unwrap_err();
        assert_eq!(errors.list()[0].fault, Fault::Nested { most: MAX_NESTING }, "{open}");
        assert!(parse("deep.tc", &nested(open, close, 300_000)).is_err());
    }
    // Chains inside chains are as deep as nesting.
    let mut text = "1".to_string();
    for _ in 0..4 {
        text = format!("({text}{})", " + 1".repeat(500));
    }
    let errors = parse("deep.tc", &format!("def f(float a) -> (C) {{ C = {text} }}")).unwrap_err();
    assert!(matches!(errors.list()[0].fault, Fault::Chain { .. }), "{errors}");
    assert!(exercise(&format!("def f(float a) -> (C) {{ C = 1{} }}", " + 1".repeat(500))));
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![Just("A"), Just("B"), Just("i"), Just("j"), Just("_x1"), Just("N"), Just("exp"), Just("in")]
        .prop_map(|text| Name { text: text.to_string(), span: Span::default() })
}

fn scalar() -> impl Strategy<Value = Scalar> {
    use Scalar::*;
    prop::sample::select(vec![Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, Bf16, F32, F64])
}

fn binary() -> impl Strategy<Value = Binary> {
    use Binary::*;
    prop::sample::select(vec![Or, And, Lt, Gt, Le, Ge, Eq, Ne, Add, Sub, Mul, Div, Mod, Min, Max])
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0..=i64::from(i32::MAX)).prop_map(ExprKind::Int),
        (0.0f64..1e30).prop_map(ExprKind::Float),
        prop_oneof![Just(0.0), Just(1.0), Just(1e-5), Just(3e38), Just(1e300)].prop_map(ExprKind::Float),
        name().prop_map(ExprKind::Name),
        (name(), 0..5usize).prop_map(|(name, dimension)| ExprKind::Size(name, dimension)),
    ];
    let whole = |kind| Expr { kind, span: Span::default() };
    leaf.prop_map(whole).prop_recursive(6, 40, 4, move |inner| {
        let some = inner.clone();
        prop_oneof![
            (name(), prop::collection::vec(some.clone(), 0..4))
                .prop_map(|(name, all)| ExprKind::Call(name, all)),
            (scalar(), some.clone()).prop_map(|(scalar, one)| ExprKind::Cast(scalar, Box::new(one))),
            (prop_oneof![Just(Unary::Neg), Just(Unary::Not)], some.clone())
                .prop_map(|(op, one)| ExprKind::Unary(op, Box::new(one))),
            (binary(), some.clone(), some.clone())
                .prop_map(|(op, a, b)| ExprKind::Binary(op, Box::new([a, b]))),
            (some.clone(), some.clone(), some).prop_map(|(a, b, c)| ExprKind::Select(Box::new([a, b, c]))),
        ]
        .prop_map(whole)
    })
}

fn tensor_type() -> impl Strategy<Value = TensorType> {
    let dim = prop_oneof![
        name().prop_map(Dim::Name),
        (0..1000i64).prop_map(|number| Dim::Number(number, Span::default()))
    ];
    (scalar(), prop::collection::vec(dim, 0..4)).prop_map(|(scalar, dims)| TensorType {
        scalar,
        dims,
        span: Span::default(),
    })
}

fn clause() -> impl Strategy<Value = Clause> {
    prop_oneof![
        (name(), expr(), expr()).prop_map(|(index, low, high)| Clause::Range { index, low, high }),
        (name(), expr()).prop_map(|(name, value)| Clause::Let { name, value }),
        expr().prop_map(Clause::Exists),
    ]
}

fn assign() -> impl Strategy<Value = Assign> {
    let op = prop::sample::select(vec![Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max]);
    prop_oneof![
        Just(Assign::Set),
        (op, any::<bool>()).prop_map(|(op, initialised)| Assign::Reduce { op, initialised })
    ]
}

fn statement() -> impl Strategy<Value = Statement> {
    let indices = prop::collection::vec(name(), 0..4);
    let equivalent = prop::option::of((name(), prop::collection::vec(expr(), 0..2)));
    let ty = prop::option::of(scalar().prop_map(|scalar| (scalar, Span::default())));
    (ty, name(), indices, assign(), expr(), equivalent, prop::collection::vec(clause(), 0..3)).prop_map(
        |(ty, target, indices, assign, value, equivalent, clauses)| {
            let assign_span = Span::default();
            Statement { ty, target, indices, assign, value, equivalent, clauses, assign_span }
        },
    )
}

fn def() -> impl Strategy<Value = Def> {
    let most = f64::from(i32::MAX);
    let span = Span::default();
    let number = prop_oneof![
        (-most..most).prop_map(move |value| Number { value: value.round(), is_float: false, span }),
        (-1e30..1e30).prop_map(move |value| Number { value, is_float: true, span }),
    ];
    let declared = (tensor_type(), name(), prop::option::of(number))
        .prop_map(|(ty, name, default)| Declared { ty, name, default });
    let result = (prop::option::of(tensor_type()), name()).prop_map(|(ty, name)| ResultName { ty, name });
    let (params, results) = (prop::collection::vec(declared, 0..4), prop::collection::vec(result, 0..3));
    (name(), params, results, prop::collection::vec(statement(), 0..4))
        .prop_map(|(name, params, results, statements)| Def { name, params, results, statements })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_as_itself(defs in prop::collection::vec(def(), 0..3)) {
        let text: String = defs.iter().map(|def| def.to_string()).collect();
        let read = warploom_tensor::read("printed.tc", &text);
        prop_assert!(read.is_ok(), "{}\n{:?}", text, read);
        prop_assert_eq!(read.unwrap(), defs);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        exercise(&text);
    }

    #[test]
    fn any_words_are_read_or_refused(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..40)) {
        exercise(&words.join(" "));
        exercise(&format!("def f(float(N) A) -> (C) {{ C(i) = {} }}", words.join(" ")));
    }
}
