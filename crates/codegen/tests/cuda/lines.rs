//! The nest that each line of a kernel comes from.

use warploom_codegen::build::build;
use warploom_codegen::ir::{PlanPart, Program, Stmt};
use warploom_codegen::printer::{Build, LineOrigin, PRINTER};
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;

const SCHEDULE: &str = "tiles
  kernel output  block x 64, y 16
    blur_x       flat                                   shared
    output       threads x 64, y 4  serial y 4  unroll
      twice      registers
";

/// A blur in a tile of shared memory, and a Func in registers.
fn program() -> Program {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let row = input.at((x - 1, y)) + input.at((x, y)) + input.at((x + 1, y));
    let blur_x = func("blur_x", (x, y), row / 3.0);
    let twice = func("twice", (x, y), input.at((x, y)) * 2.0);
    let column = blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1));
    let output = func("output", (x, y), column / 3.0 - twice.at((x, y)));
    let pipeline = Pipeline::new("tiles", [output]).unwrap();
    let request = Realisation::new(&pipeline)
        .input("input", Region(vec![Range::new(-1, 1026), Range::new(-1, 1026)]))
        .output("output", Region::of_extents(&[1024, 1000]));
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
    build(&problem, &Schedule::parse(SCHEDULE, &pipeline).unwrap()).unwrap()
}

#[test]
fn every_line_of_a_nest_is_known() {
    let program = program();
    let listing = PRINTER.print_lines(&program, Build::Timing);
    assert_eq!(listing.text, PRINTER.print(&program, Build::Timing), "the text does not change");
    let lines: Vec<(&str, &LineOrigin)> = listing.text.lines().zip(&listing.lines).collect();
    assert_eq!(lines.len(), listing.lines.len());
    let of = |text: &str| -> Vec<&LineOrigin> {
        lines.iter().filter(|(line, _)| line.trim().starts_with(text)).map(|(_, origin)| *origin).collect()
    };
    let nest = |number: usize| Some(PlanPart::Nest(Id::new(number)));
    // The last rows of blocks are cut off, so there are two versions of everything.
    let (tiles, twice, output) = (of("blur_x["), of("twice["), of("output["));
    assert!(tiles.len() >= 2 && tiles.iter().all(|origin| origin.place == nest(0)), "{tiles:?}");
    assert!(output.len() >= 2 && output.iter().all(|origin| origin.place == nest(1)), "{output:?}");
    assert!(!twice.is_empty() && twice.iter().all(|origin| origin.place == nest(1)), "{twice:?}");
    assert!(twice.iter().all(|origin| origin.array.as_deref() == Some("twice")), "{twice:?}");
    let rounds = of("for (int round");
    assert!(!rounds.is_empty() && rounds.iter().all(|origin| origin.place == nest(0)), "{rounds:?}");
    assert!(of("__syncthreads").iter().all(|origin| origin.place == Some(PlanPart::Block)));
    assert!(
        of("} else {").iter().any(|origin| origin.place == Some(PlanPart::Block)),
        "the choice of a version"
    );
    for outside in ["// tiles", "extern", "__shared__", "const int thread"] {
        assert!(of(outside).iter().all(|origin| origin.place.is_none()), "{outside}");
    }
}

#[test]
fn changed_kernels_do_not_know() {
    let mut program = program();
    for kernel in program.kernels.keys() {
        program.kernels[kernel].body.push(Stmt::Barrier);
    }
    let listing = PRINTER.print_lines(&program, Build::Timing);
    assert!(listing.lines.iter().all(|origin| origin.place.is_none()));
}
