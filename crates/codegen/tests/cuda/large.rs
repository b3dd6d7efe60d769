//! Arrays on both sides of what an index of 32 bits can count.

use warploom_codegen::export::{Manifest, header, source};
use warploom_codegen::ir::{ArrayId, Kernel, NARROW_ELEMENTS, NodeId, NodeKind, Program, Space, every_stmt};
use warploom_codegen::lower::{LowerError, Options, lower};
use warploom_codegen::printer::{Build, PRINTER};
use warploom_codegen::verify::verify;
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_runtime::cuda::nvrtc::{self, Arch};
use warploom_runtime::testing;
use warploom_schedule::Schedule;
use warploom_target::Device;

use crate::addresses::{Touched, touched};

fn device() -> Device {
    Device::preset("h200").unwrap()
}

/// A blur in two passes of an image with one channel.
fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let edge = Input::u8("input", 2).repeat_edge();
    let row =
        func("row", (x, y), edge.at((x - 1, y)).u16() + edge.at((x, y)).u16() + edge.at((x + 1, y)).u16());
    let sum = row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1));
    Pipeline::new("blur", [func("blur", (x, y), (sum / 9).u8())]).unwrap()
}

/// The same of three channels: planes, or with the channels of a pixel side by side.
fn blur_of_channels(order: [usize; 3]) -> Pipeline {
    let (x, y, c) = vars!(x, y, c);
    let edge = Input::u8("input", 3).stored(order).repeat_edge();
    let at = |dx: i32| edge.at((x + dx, y, c)).u16();
    let row = func("row", (x, y, c), at(-1) + at(0) + at(1));
    let sum = row.at((x, y - 1, c)) + row.at((x, y, c)) + row.at((x, y + 1, c));
    Pipeline::new("blur", [func("blur", (x, y, c), (sum / 9).u8())]).unwrap()
}

fn problem(pipeline: &Pipeline, extents: &[i64]) -> Problem {
    let region = Region::of_extents(extents);
    let request = Realisation::new(pipeline).input("input", region.clone()).output("blur", region);
    Problem::new(pipeline, &request, &device()).unwrap()
}

/// Everything at root; a Func in a flat loop and an input staged in shared memory; registers.
const SCHEDULES: [&str; 4] = [
    "default",
    "blur inline input.repeat_edge
  kernel blur  block x 64, y 16
    row   flat                        shared
    blur  threads x 32, y 8  serial x 2, y 2  unroll
",
    "blur inline input.repeat_edge, row
  kernel blur  block x 32, y 16
    input.stage  flat                 shared
    blur  threads x 32, y 4  serial y 4
",
    "blur inline input.repeat_edge
  kernel blur  block x 64, y 8
    blur  threads x 64, y 8
      row   registers
",
];

fn schedules(problem: &Problem) -> Vec<Schedule> {
    let schedule = |text: &str| match text {
        "default" => problem.default_schedule(),
        text => Schedule::parse(text, problem.pipeline()).unwrap_or_else(|errors| panic!("{errors}")),
    };
    let all: Vec<Schedule> = SCHEDULES.into_iter().map(schedule).collect();
    for schedule in &all {
        if let Err(violations) = problem.check(schedule) {
            panic!("{}", violations[0]);
        }
    }
    all
}

fn lowered(problem: &Problem, schedule: &Schedule) -> Program {
    let program = lower(problem, &problem.plan(schedule), Options::default()).unwrap();
    verify(&program).unwrap();
    program
}

/// The elements that some blocks of a kernel touch are elements of their arrays, up to the very first and last of
/// those that are written to global memory.
fn check_addresses(kernel: &Kernel) {
    let last = kernel.grid.map(|blocks| blocks - 1);
    let middle = last.map(|last| last / 2);
    let blocks: Vec<Touched> = [[0; 3], middle, last].iter().map(|block| touched(kernel, *block)).collect();
    for (id, array) in kernel.arrays.iter() {
        let elements = array.elements as i64;
        for block in &blocks {
            let all = block.read.iter().chain(&block.written);
            for (_, element) in all.filter(|(array, _)| *array == id) {
                assert!((0..elements).contains(element), "{}: {element} of {}", kernel.name, array.name);
            }
        }
        let written = |block: &Touched| -> Vec<i64> {
            block.written.iter().filter(|(array, _)| *array == id).map(|(_, element)| *element).collect()
        };
        if let (Space::Global(_), false) = (array.space, written(&blocks[0]).is_empty()) {
            assert_eq!(written(&blocks[0]).iter().min(), Some(&0), "{}: {}", kernel.name, array.name);
            assert_eq!(
                written(&blocks[2]).iter().max(),
                Some(&(elements - 1)),
                "{}: {}",
                kernel.name,
                array.name
            );
        }
    }
}

/// Arrays that are indexed by offsets of 64 bits are those that need them.
fn check_widths(kernel: &Kernel) {
    let mut accesses: Vec<(ArrayId, NodeId)> = Vec::new();
    for (_, node) in kernel.exprs.nodes().iter() {
        if let NodeKind::Load(array) = node.kind {
            accesses.push((array, node.args[0]));
        }
    }
    for stmt in every_stmt(&kernel.body) {
        accesses.extend(stmt.written().map(|array| (array, stmt.operands()[0])));
    }
    for (array, index) in accesses {
        let array = &kernel.arrays[array];
        let large = array.elements > NARROW_ELEMENTS as usize;
        assert_eq!(kernel.exprs.is_offset(index), large, "{}: {}", kernel.name, array.name);
    }
}

/// Checks what a pipeline becomes at a size where its arrays are large, or are not.
fn check_size(pipeline: &Pipeline, extents: &[i64], large: bool) {
    let problem = problem(pipeline, extents);
    for (number, schedule) in schedules(&problem).iter().enumerate() {
        let program = lowered(&problem, schedule);
        let text = PRINTER.print(&program, Build::Timing);
        assert_eq!(text.contains("long long"), large, "{extents:?}, schedule {number}:\n{text}");
        // Of a negative constant only one that wrapped is ever taken for unsigned.
        assert!(!text.contains("(unsigned)-"), "{extents:?}, schedule {number}:\n{text}");
        for kernel in program.kernels.values() {
            check_widths(kernel);
            check_addresses(kernel);
        }
    }
}

#[test]
fn one_channel_below_the_boundary() {
    check_size(&blur(), &[46_340, 46_340], false);
}

#[test]
fn one_channel_above_the_boundary() {
    check_size(&blur(), &[46_341, 46_341], true);
    check_size(&blur(), &[60_000, 60_000], true);
}

/// Up to exactly 2^31 elements, the last of which is the last that 32 bits can count.
#[test]
fn the_boundary_itself() {
    check_size(&blur(), &[1 << 16, 1 << 15], false);
    check_size(&blur(), &[1 << 16, (1 << 15) + 1], true);
}

#[test]
fn three_channels_on_both_sides_of_the_boundary() {
    for order in [[0, 1, 2], [2, 0, 1]] {
        let pipeline = blur_of_channels(order);
        check_size(&pipeline, &[26_754, 26_754, 3], false);
        check_size(&pipeline, &[26_755, 26_755, 3], true);
    }
}

/// 2.26e9 elements of workspace, some of them written by scatters in loops of threads.
#[test]
fn a_large_table_of_counts() {
    let (x, y, bin) = vars!(x, y, bin);
    let edge = Input::u8("input", 2).repeat_edge();
    let r = rdom([(-1, 3), (-1, 3)]);
    let counts = func("counts", (x, y, bin), 0_u8)
        .over(&r, |counts| counts.add((x, y, edge.at((x + r.x, y + r.y)).i32()), 1_u8));
    let blur = func("blur", (x, y), counts.at((x, y, 255)));
    let pipeline = Pipeline::new("counted", [blur]).unwrap();
    let problem = problem(&pipeline, &[4096, 2160]);
    let program = lowered(&problem, &problem.default_schedule());
    for kernel in program.kernels.values() {
        check_widths(kernel);
    }
    let text = PRINTER.print(&program, Build::Timing);
    assert!(text.contains("long long") && !text.contains("(unsigned)-"), "{text}");
    // The input has fewer elements, and every index of it 32 bits.
    let loads = text.split("input[").skip(1).map(|rest| rest.split(']').next().unwrap());
    let loads: Vec<&str> = loads.collect();
    assert!(!loads.is_empty() && loads.iter().all(|index| !index.contains("LL")), "{loads:?}");
}

/// An output of which more is computed than was asked for is copied.
#[test]
fn large_copies() {
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 2);
    let first = func("first", (x, y), input.at((x, y)) + 1);
    let second = func("second", (x, y), first.at((x + 1, y)) * 2);
    let pipeline = Pipeline::new("pair", [first, second]).unwrap();
    for (width, height, blocks) in [(46_340, 46_340, 8_388_265), (46_341, 46_341, 182 * 46_341)] {
        let region = Region::of_extents(&[width, height]);
        let request = Realisation::new(&pipeline)
            .input("input", Region::of_extents(&[width + 1, height]))
            .output("first", region.clone())
            .output("second", region);
        let problem = Problem::new(&pipeline, &request, &device()).unwrap();
        let program = lowered(&problem, &problem.default_schedule());
        let copy = program.kernels.values().find(|kernel| kernel.name == "first.copy").unwrap();
        assert_eq!(copy.grid, [blocks, 1, 1]);
        for kernel in program.kernels.values() {
            check_widths(kernel);
            check_addresses(kernel);
        }
    }
}

#[test]
fn nvrtc_large_programs_compile() {
    if !testing::has_nvrtc("nvrtc_large_programs_compile") {
        return;
    }
    for (pipeline, extents) in
        [(blur(), vec![46_341, 46_341]), (blur_of_channels([2, 0, 1]), vec![26_755, 26_755, 3])]
    {
        let problem = problem(&pipeline, &extents);
        for schedule in schedules(&problem) {
            let text = PRINTER.print(&lowered(&problem, &schedule), Build::Timing);
            let image = nvrtc::compile(&text, Arch::Machine(90), &PRINTER.options(Build::Timing));
            let image = image.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(image.log, "", "{text}");
        }
    }
}

/// C's own rule makes a constant as wide as its digits need.
#[test]
fn exported_sizes_are_whole() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let before = func("before", (x, y), input.at((x, y)) * 0.5);
    let out = func("out", (x, y), before.at((x, y)) + 1.0);
    let pipeline = Pipeline::new("scale", [out]).unwrap();
    let region = Region::of_extents(&[60_000, 60_000]);
    let request = Realisation::new(&pipeline).input("input", region.clone()).output("out", region);
    let text = "scale\n  kernel before  block x 64, y 4  threads x 64, y 4\n  kernel out  block x 64, y 4  threads x 64, y 4\n";
    let schedule = Schedule::parse(text, &pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    let problem = Problem::new(&pipeline, &request, &device()).unwrap();
    let manifest = Manifest::new(&pipeline, &request, &device(), &[], &lowered(&problem, &schedule));
    assert_eq!(manifest.workspace_bytes, 14_400_000_000);
    let text = header(&manifest) + &source(&manifest, &[]);
    for line in ["SCALE_INPUT_BYTES 14400000000\n", "SCALE_OUT_BYTES 14400000000\n", "return 14400000000;\n"]
    {
        assert!(text.contains(line), "{text}");
    }
}

/// What 32 bits cannot count even so is refused in a sentence.
#[test]
fn indices_that_cannot_be_are_refused() {
    let pipeline = blur();
    let refused = |schedule: &str, extents: &[i64]| {
        let schedule = Schedule::parse(schedule, &pipeline).unwrap_or_else(|errors| panic!("{errors}"));
        let problem = problem(&pipeline, extents);
        lower(&problem, &problem.plan(&schedule), Options::default()).unwrap_err()
    };
    let inlined = "blur inline input.repeat_edge, row\n";
    let flat = refused(&format!("{inlined}  kernel blur\n    blur  flat\n"), &[46_341, 46_341]);
    assert_eq!(flat, LowerError::Index { kernel: "blur".into(), number: 2_147_488_255 });
    assert_eq!(
        flat.to_string(),
        "the kernel of `blur` would need an index of 2147488255, but indices have 32 bits; use smaller \
         sizes or tiles, or threads instead of a flat loop"
    );
    let points = format!("{inlined}  kernel blur  block x 1, y 1  threads\n");
    let blocks = refused(&points, &[1 << 16, 1 << 17]);
    let limit = u64::from(device().threads.grid_dims[0]);
    let kernel = "blur".to_string();
    assert_eq!(blocks, LowerError::Limit { kernel, what: "blocks", needed: 1 << 33, limit });
}

/// Where a box starts is computed from multiples of coordinates.
#[test]
fn fractions_of_large_coordinates_are_refused() {
    let x = vars!(x);
    let far = func("far", x, Input::u8("input", 1).at(x / 4 + (3 << 28)));
    let pipeline = Pipeline::new("far", [far]).unwrap();
    let region = Region::of_extents(&[1 << 30]);
    let request = Realisation::new(&pipeline).input("input", region.clone()).output("far", region);
    let problem = Problem::new(&pipeline, &request, &device()).unwrap();
    let lower = |text: &str| {
        let schedule = Schedule::parse(text, &pipeline).unwrap_or_else(|errors| panic!("{errors}"));
        lower(&problem, &problem.plan(&schedule), Options::default())
    };
    assert!(lower("far\n  kernel far  block x 256  threads x 256\n").is_ok());
    let staged = "far\n  kernel far  block x 250\n    input.stage  flat  shared\n    far  threads x 250\n";
    assert!(matches!(lower(staged), Err(LowerError::Index { number, .. }) if number > 1 << 31));
}

/// An input that nobody could index, whatever is computed of it.
#[test]
fn inputs_that_cannot_be_are_refused() {
    let (x, y, z) = vars!(x, y, z);
    let input = Input::u8("input", 3);
    let pipeline = Pipeline::new("part", [func("part", (x, y, z), input.at((x, y, z)))]).unwrap();
    let of = |extent: i64| {
        let input = Region::of_extents(&[extent, extent, extent]);
        let request = Realisation::new(&pipeline).input("input", input);
        infer(&pipeline, &request.output("part", Region::of_extents(&[8, 8, 8])))
    };
    assert!(of(10_000).is_ok());
    for extent in [1 << 14, 1 << 30] {
        assert!(matches!(of(extent), Err(BoundsError::TooLarge { func, .. }) if func == "input"), "{extent}");
    }
}
