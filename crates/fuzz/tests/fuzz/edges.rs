//! Kernels that compute only the part of their Func beyond which its values repeat: the evaluator's bits in the
//! simulator, wherever the readers are.

use warploom_codegen::ir::{Kernel, NodeId, NodeKind, Program, Role, Stmt, every_stmt};
use warploom_codegen::lower::Options as Lowering;
use warploom_codegen::verify::verify;
use warploom_fuzz::{Case, Verdict};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::*;

use crate::atomics::case;
use crate::support::device;

/// The boxes of the buffers that hold Funcs which are not outputs, by name.
fn buffers(program: &Program) -> Vec<(String, String)> {
    let temporary = program.buffers.values().filter(|buffer| buffer.role == Role::Temporary);
    temporary.map(|buffer| (buffer.name.clone(), buffer.region.to_string())).collect()
}

fn checked(case: &Case) -> Vec<(String, String)> {
    assert_eq!(case.check(&device()).unwrap(), Verdict::Passed);
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    assert_eq!(verify(&program), Ok(()));
    buffers(&program)
}

fn named(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, region)| (name.to_string(), region.to_string())).collect()
}

/// A pyramid over a picture of 37x29 points, read far beyond the picture.
fn pyramid(exterior: bool, lines: &str) -> Case {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::I32, 2);
    let edge = if exterior { input.constant_exterior(5) } else { input.repeat_edge() }.named("edge");
    let half = func("half", (x, y), edge.at((2 * x - 1, 2 * y)) + 3 * edge.at((2 * x + 1, 2 * y + 1)));
    let rows = func("rows", (x, y), half.at((x - 1, y)) * 2 + half.at((x + 1, y)));
    let up = func("up", (x, y), rows.at((x / 2, y / 2)) - rows.at(((x + 1) / 2, y / 2 + 1)));
    let out = func("out", (x, y), up.at((x - 60, y - 50)) ^ (up.at((x + 60, y + 50)) + up.at((x, y))));
    case(vec![out], &[("input", &[37, 29]), ("out", &[40, 31])], lines)
}

/// Everything in a kernel of its own.
const ALL_AT_ROOT: &str = "
  inline edge
  kernel half block x 8, y 4 threads x 8, y 4
  kernel rows block x 16, y 4 threads x 16, y 4
  kernel up   block x 16, y 8 threads x 16, y 2 serial y 4 unroll
  kernel out  block x 8, y 8 threads x 8, y 8
";

#[test]
fn kernels_end_where_values_repeat() {
    let boxes =
        [("half", "[-1, 20) x [-1, 15)"), ("rows", "[-2, 21) x [-1, 15)"), ("up", "[-4, 41) x [-3, 29)")];
    assert_eq!(checked(&pyramid(false, ALL_AT_ROOT)), named(&boxes));
    let boxes =
        [("half", "[-1, 20) x [-1, 16)"), ("rows", "[-2, 21) x [-1, 16)"), ("up", "[-4, 41) x [-3, 31)")];
    assert_eq!(checked(&pyramid(true, ALL_AT_ROOT)), named(&boxes));
}

/// Readers in shared memory, in private memory, in registers and inlined compute all points that they are asked for.
#[test]
fn readers_in_a_block_read_the_nearest_point() {
    let schedules = [
        "
  inline edge
  kernel half flat
  kernel out block x 8, y 8
    rows flat shared
    up flat shared
    out threads x 8, y 4
",
        "
  inline edge
  kernel half block x 4 flat
  kernel up block x 8, y 8
    up threads x 8, y 8
      rows registers
  kernel out flat
",
        "
  inline edge, rows
  kernel half flat
  kernel up block x 16, y 8 threads x 8, y 8
  kernel out flat
",
        "
  inline edge, up
  kernel half flat
  kernel rows block x 4, y 4 threads x 4, y 4
  kernel out block x 8 threads x 8
",
        "
  inline half, up
  kernel edge block x 32 flat
  kernel rows flat
  kernel out block x 7, y 5 flat
",
        "
  inline edge, half, up
  kernel rows block x all, y 1 threads x 8 serial x 3
  kernel out flat
",
    ];
    for lines in schedules {
        for exterior in [false, true] {
            assert!(!checked(&pyramid(exterior, lines)).is_empty(), "{lines}");
        }
    }
}

/// A kernel that ends early holds fewer points of the Funcs inside it; none of them is computed from points that are not held.
#[test]
fn what_a_block_holds_ends_with_its_kernel() {
    let (x, y) = vars!(x, y);
    let edge = Input::new("input", Type::I32, 2).repeat_edge().named("edge");
    let source = func("source", (x, y), edge.at((x, y)) * 3);
    let diagonal = func("diagonal", x, source.at((x, x)));
    let both = func("both", (x, y), source.at((x, y)) - diagonal.at(x));
    let out = func("out", (x, y), both.at((x - 40, y - 40)) + both.at((x + 40, y + 40)));
    let sizes: [(&str, &[i64]); 2] = [("input", &[21, 13]), ("out", &[21, 13])];
    for nests in [
        "
  kernel both block x 8, y 4
    both threads x 8, y 2 serial y 2
      source registers
      diagonal registers
",
        "
  kernel both block x 8, y 4
    source flat shared
    diagonal flat shared
    both threads x 8, y 4
",
        "
  kernel both block x 8, y 4
    source threads x 8, y 4 shared
    both threads x 4, y 4 serial x 2
      diagonal registers
",
    ] {
        let lines = format!("\n  inline edge{nests}  kernel out flat\n");
        let boxes = checked(&case(vec![out.clone()], &sizes, &lines));
        assert_eq!(boxes, named(&[("both", "[0, 21) x [0, 13)")]), "{lines}");
    }
}

/// An output is computed in the box that was asked for, even where its values repeat.
#[test]
fn outputs_are_whole() {
    let x = vars!(x);
    let edge = Input::new("input", Type::I32, 1).repeat_edge().named("edge");
    let wide = func("wide", x, edge.at(x) * 3);
    let out = func("out", x, wide.at(x - 30) + wide.at(x + 30));
    let sizes: [(&str, &[i64]); 3] = [("input", &[9]), ("wide", &[50]), ("out", &[9])];
    let lines = "
  inline edge
  kernel wide flat
  kernel out flat
";
    let boxes = checked(&case(vec![wide, out], &sizes, lines));
    assert_eq!(boxes, named(&[("wide", "[-30, 50)")]));
}

/// The sums of an update, in a kernel of its own and over a loop.
#[test]
fn updates_end_where_values_repeat() {
    let (x, y) = vars!(x, y);
    let (edge, r) = (Input::new("input", Type::I32, 2).repeat_edge().named("edge"), rdom!(r: (0, 5)));
    let sums = func("sums", (x, y), 0).over(&r, |f| f.add((x, y), edge.at((x + r.x, y - r.x))));
    let out = func("out", (x, y), sums.at((x - 40, y)) + sums.at((x + 40, y + 40)));
    let sizes: [(&str, &[i64]); 2] = [("input", &[21, 13]), ("out", &[21, 13])];
    for lines in [
        "
  inline edge
  kernel sums.0 flat
  kernel sums.1 block x 8, y 8 threads x 8, y 4
  kernel out flat
",
        "
  inline edge
  kernel sums.0 flat
  kernel sums.1 block x 8
    over sums.1.r 2
      sums.1 flat
  kernel out flat
",
        "
  inline edge
  kernel sums.0 block x 4 flat
  kernel sums.1 flat
  kernel out block x 8, y 3 flat
",
    ] {
        let boxes = checked(&case(vec![out.clone()], &sizes, lines));
        assert_eq!(boxes, named(&[("sums", "[-4, 21) x [0, 17)")]), "{lines}");
    }
}

/// Blocks away from the edge read at plain indices.
#[test]
fn interior_blocks_have_no_clamps() {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge().named("edge");
    let blur = func("blur", (x, y), edge.at((x - 1, y)) + edge.at((x + 1, y)));
    let out = func("out", (x, y), blur.at((x, y - 40)) * blur.at((x + 2, y + 40)));
    let lines = "
  inline edge
  kernel blur block x 32, y 8 threads x 32, y 8
  kernel out block x 32, y 20 threads x 32, y 20
";
    let case = case(vec![out], &[("input", &[256, 120]), ("out", &[256, 120])], lines);
    assert_eq!(checked(&case), named(&[("blur", "[0, 257) x [0, 120)")]));
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    let kernel = program.kernels.values().last().unwrap();
    let [Stmt::If { body, otherwise, .. }] = &kernel.body[..] else { panic!("the block has two versions") };
    assert_eq!((clamps(kernel, body), clamps(kernel, otherwise)), (0, 3));
}

/// The number of different minima and maxima in some statements.
fn clamps(kernel: &Kernel, body: &[Stmt]) -> usize {
    let nodes = kernel.exprs.reachable(every_stmt(body).flat_map(Stmt::operands));
    let is_clamp = |id: &NodeId| {
        matches!(kernel.exprs[*id].kind, NodeKind::Op(Op::Binary(BinaryOp::Min | BinaryOp::Max)))
    };
    nodes.iter().filter(|id| is_clamp(id)).count()
}

/// Kernels for any size store all that is required.
#[test]
fn sizes_at_launch_keep_all_points() {
    let case = pyramid(false, ALL_AT_ROOT);
    let whole = infer(&case.pipeline, &case.request).unwrap();
    let up = case.pipeline.func_named("up").unwrap();
    let also = |program: &Program| {
        let mut buffers = program.buffers.values();
        let buffer = buffers.find(|buffer| buffer.name == "up").unwrap();
        assert!(buffer.region.covers(&whole.funcs[up].region), "{}", buffer.region);
        Ok(())
    };
    assert_eq!(case.check_dynamic(&device(), &also).unwrap(), Verdict::Passed);
}
