//! NVRTC compiles everything that is printed, in both builds and without a warning.

use warploom_codegen::ir::Program;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::Type;
use warploom_runtime::cuda::nvrtc::{self, Arch, Image};
use warploom_runtime::testing;
use warploom_target::program::Code;

use crate::programs;

fn compile(program: &Program, build: Build) -> Image {
    let text = PRINTER.print(program, build);
    let image = nvrtc::compile(&text, Arch::Machine(90), &PRINTER.options(build));
    let image = image.unwrap_or_else(|error| panic!("{}, {build:?}: {error}\n{text}", program.name));
    assert_eq!(image.log, "", "{}, {build:?}\n{text}", program.name);
    assert_eq!(image.kernels.len(), program.kernels.len());
    image
}

#[test]
fn every_program_compiles_in_both_builds() {
    if !testing::has_nvrtc("nvrtc::every_program_compiles_in_both_builds") {
        return;
    }
    let mut all = vec![
        programs::copy(1000),
        programs::blur(),
        programs::product(),
        programs::rounds(),
        programs::atomics(&programs::all_atomics()),
        programs::shuffles(),
        programs::copies(1),
        programs::copies(2),
        programs::copies(4),
        programs::indices(),
        programs::long(1000),
        programs::names(),
    ];
    all.extend(Type::ALL.map(|ty| programs::operations(ty, 64)));
    all.extend(Type::ALL.into_iter().filter(|ty| ty.is_int()).map(|ty| programs::constants(ty, 64)));
    for program in &all {
        for build in [Build::Checking, Build::Timing] {
            let image = compile(program, build);
            for (name, kernel) in &image.kernels {
                println!("{} {build:?} {name}: {kernel:?} {:?}", program.name, image.time);
            }
        }
    }
}

/// Copies bypass registers, and nothing is read before the wait.
#[test]
fn copies_are_asynchronous() {
    if !testing::has_nvrtc("nvrtc::copies_are_asynchronous") {
        return;
    }
    let wide = Type::ALL.into_iter().filter(|ty| ty.bytes() == 8).count();
    // The 32-bit types are three.
    for (width, longest, others) in [(1, 0, wide + 3), (2, wide, 3), (4, 3, 0)] {
        let ptx = compile(&programs::copies(width), Build::Timing).ptx;
        assert_eq!(ptx.matches("cp.async.cg.shared.global").count(), longest, "{ptx}");
        assert_eq!(ptx.matches("cp.async.ca.shared.global").count(), others, "{ptx}");
        assert!(!ptx.contains("ld.global"), "{ptx}");
        let (wait, load) = (ptx.find("cp.async.wait_group 0;"), ptx.find("ld.shared"));
        assert!(wait.is_some() && wait < load, "{ptx}");
    }
}

#[test]
fn every_part_compiles_to_its_kernel() {
    if !testing::has_nvrtc("nvrtc::every_part_compiles_to_its_kernel") {
        return;
    }
    for program in [programs::rounds(), programs::blur()] {
        let described = PRINTER.describe_in_parts(&program, Build::Timing);
        described.validate().unwrap();
        let whole = compile(&program, Build::Timing);
        let Code::Parts(parts) = &described.code else { panic!("{:?}", described.code) };
        for (kernel, part) in described.kernels.iter().zip(parts) {
            let Code::Source { text, options } = part else { panic!("{part:?}") };
            let image = nvrtc::compile(text, Arch::Machine(90), options).unwrap();
            assert_eq!(image.kernels.keys().collect::<Vec<_>>(), [&kernel.entry]);
            assert_eq!(image.kernels[&kernel.entry], whole.kernels[&kernel.entry]);
        }
    }
}

#[test]
fn registers_hold_what_is_unrolled() {
    if !testing::has_nvrtc("nvrtc::registers_hold_what_is_unrolled") {
        return;
    }
    let image = compile(&programs::product(), Build::Timing);
    assert_eq!(image.kernels["out"].local_bytes, 0, "{:?}", image.kernels);
}

#[test]
fn only_the_timing_build_fuses() {
    if !testing::has_nvrtc("nvrtc::only_the_timing_build_fuses") {
        return;
    }
    let fused = |build| compile(&programs::product(), build).ptx.contains("fma.rn.f32");
    assert!(fused(Build::Timing) && !fused(Build::Checking));
}

#[test]
fn only_the_checking_build_rounds_quotients_and_roots() {
    if !testing::has_nvrtc("nvrtc::only_the_checking_build_rounds_quotients_and_roots") {
        return;
    }
    let fast = |build| {
        let ptx = compile(&programs::operations(Type::F32, 64), build).ptx;
        [ptx.contains("div.full.f32"), ptx.contains("sqrt.approx.f32")]
    };
    assert_eq!((fast(Build::Timing), fast(Build::Checking)), ([true; 2], [false; 2]));
}
