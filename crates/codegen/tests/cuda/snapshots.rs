//! What the printer prints.

use warploom_codegen::cuda::{Build, describe, print};
use warploom_codegen::ir::{AtomicOp, Program};
use warploom_lang::Type;

use crate::programs;

fn both(name: &str, program: &Program) {
    let (checking, timing) = (print(program, Build::Checking), print(program, Build::Timing));
    if checking == timing {
        insta::assert_snapshot!(name, checking);
    } else {
        insta::assert_snapshot!(format!("{name}_checking"), checking);
        insta::assert_snapshot!(format!("{name}_timing"), timing);
    }
}

#[test]
fn copy() {
    both("copy", &programs::copy(1000));
}

#[test]
fn blur_in_shared_memory() {
    both("blur", &programs::blur());
}

#[test]
fn product_in_registers() {
    both("product", &programs::product());
}

#[test]
fn launches_in_loops() {
    both("rounds", &programs::rounds());
}

#[test]
fn atomics() {
    let ops = [
        (AtomicOp::Add, Type::I32),
        (AtomicOp::Max, Type::F32),
        (AtomicOp::Add, Type::U8),
        (AtomicOp::Min, Type::I16),
    ];
    both("atomics", &programs::atomics(&ops));
}

#[test]
fn every_operation() {
    for ty in Type::ALL {
        both(&format!("operations_{ty}"), &programs::operations(ty, 64));
    }
}

#[test]
fn index_arithmetic() {
    both("indices", &programs::indices());
}

#[test]
fn long_expressions_are_cut() {
    let text = print(&programs::long(2000), Build::Timing);
    assert!(text.lines().all(|line| line.len() < 220), "{text}");
    both("long", &programs::long(20));
}

#[test]
fn the_same_program_gives_the_same_text() {
    assert_eq!(print(&programs::blur(), Build::Timing), print(&programs::blur(), Build::Timing));
}

#[test]
fn descriptions() {
    let mut program = describe(&programs::rounds(), Build::Checking);
    program.validate().unwrap();
    program.code = warploom_target::program::Code::Ptx(String::new());
    insta::assert_debug_snapshot!("description", program);
}
