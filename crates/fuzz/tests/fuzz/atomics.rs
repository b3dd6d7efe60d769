//! Updates that threads and blocks make at once, by atomics: the evaluator's bits in the simulator, and no
//! barrier too many.

use warploom_codegen::ir::{Program, Stmt, every_stmt};
use warploom_codegen::lower::Options as Lowering;
use warploom_codegen::verify::verify;
use warploom_fuzz::{Case, Failure, Fate, Mutant, Mutation, Verdict};
use warploom_lang::*;
use warploom_schedule::Schedule;
use warploom_sim::SimError;

use crate::support::*;

pub fn case(outputs: Vec<Func>, sizes: &[(&str, &[i64])], lines: &str) -> Case {
    let pipeline = Pipeline::new("p", outputs).unwrap();
    let request = sizes.iter().fold(Realisation::new(&pipeline), |request, (name, extents)| {
        let region = Region::of_extents(extents);
        match pipeline.input_named(name) {
            Some(_) => request.input(name, region),
            None => request.output(name, region),
        }
    });
    let schedule = Schedule::parse(&format!("p\n{lines}"), &pipeline).unwrap();
    Case { pipeline, request, schedule, seed: 3 }
}

/// Histograms of the rows of an image, their sum, and the cumulative histogram.
fn histogram(lines: &str) -> Case {
    let (b, y) = vars!(b, y);
    let image = Input::u8("image", 2);
    let (rx, ry, rb) = (rdom!(rx: (0, 37)), rdom!(ry: (0, 41)), rdom!(rb: (1, 255)));
    let rows = func("rows", (b, y), 0).over(&rx, |f| f.add((image.at((rx.x, y)).i32(), y), 1));
    let count = func("count", b, 0).over(&ry, |f| f.add(b, rows.at((b, ry.x))));
    let total = func("total", b, count.at(0)).over(&rb, |f| f.set(rb.x, f.at(rb.x - 1) + count.at(rb.x)));
    case(vec![total], &[("image", &[37, 41]), ("total", &[256])], lines)
}

/// Partial histograms in shared memory, 20 rows at a time.
const IN_SHARED: &str = "
  kernel count.0 block b 256 threads b 256
  kernel count.1
    over count.1.ry 20
      rows.0 flat shared
      rows.1 threads rx 16, y 20 atomic shared
      count.1 threads b 256
  kernel total.0 flat
  kernel total.1 flat
";

/// Everything in global memory, which blocks and threads share.
const IN_GLOBAL: &str = "
  kernel rows.0 block y 8 flat
  kernel rows.1 block rx 16, y 7
    rows.1 threads rx 4, y 7 serial rx 2 unroll atomic
  kernel count.0 flat
  kernel count.1 block b 64
    over count.1.ry 7
      count.1 threads ry 3, b 32 serial b 2 atomic
  kernel total.0 flat
  kernel total.1 flat
";

#[test]
fn histograms_give_the_reference() {
    for lines in [IN_SHARED, IN_GLOBAL] {
        let case = histogram(lines);
        assert_eq!(case.check(&device()).unwrap(), Verdict::Passed, "{lines}");
        let program = case.lower_with(&device(), Lowering::default()).unwrap();
        assert!(stmts(&program, |stmt| matches!(stmt, Stmt::Atomic { .. })) > 0);
    }
}

/// Every operator, on signed and unsigned values, shared by blocks and threads.
#[test]
fn every_operator_gives_the_reference() {
    type Combine = fn(Expr, Expr) -> Expr;
    let ops: [Combine; 6] =
        [|a, b| a + b, |a, b| min(a, b), |a, b| max(b, a), |a, b| a & b, |a, b| a | b, |a, b| b ^ a];
    let r = rdom!(r: (0, 300));
    for ty in [Type::I32, Type::U32] {
        for op in ops {
            let values = Input::new("values", ty, 1);
            let all =
                func("all", (), Expr::from(5).cast(ty)).over(&r, |f| f.set((), op(f.at(()), values.at(r.x))));
            let lines = "
  kernel all.0 flat
  kernel all.1 block r 100
    all.1 threads r 48 atomic
";
            let case = case(vec![all], &[("values", &[300]), ("all", &[])], lines);
            assert_eq!(case.check(&device()).unwrap(), Verdict::Passed, "{}", case.pipeline);
        }
    }
}

pub fn stmts(program: &Program, is: impl Fn(&Stmt) -> bool) -> usize {
    program.kernels.values().map(|kernel| every_stmt(&kernel.body).filter(|stmt| is(stmt)).count()).sum()
}

/// Removes the barrier with this number from a list of statements and those inside it.
fn remove_barrier(body: &mut Vec<Stmt>, left: &mut usize) {
    let mut kept = Vec::new();
    for mut stmt in body.drain(..) {
        if stmt == Stmt::Barrier {
            *left = left.wrapping_sub(1);
            if *left == usize::MAX {
                continue;
            }
        }
        stmt.lists_mut().into_iter().flatten().for_each(|list| remove_barrier(list, left));
        kept.push(stmt);
    }
    *body = kept;
}

/// Without any one of its barriers, the kernel races, and the rules of the IR are broken where atomics and
/// plain accesses mix.
#[test]
fn no_barrier_is_too_many() {
    let case = histogram(IN_SHARED);
    let program = case.lower_with(&device(), Lowering::default()).unwrap();
    let barriers = stmts(&program, |stmt| *stmt == Stmt::Barrier);
    assert_eq!(barriers, 3);
    let mut mixed = 0;
    for number in 0..barriers {
        let (mut wrong, mut left) = (program.clone(), number);
        for id in program.kernels.keys() {
            remove_barrier(&mut wrong.kernels[id].body, &mut left);
        }
        mixed += usize::from(verify(&wrong).is_err());
        let failure = case.check_with(|run| run.simulate(&wrong, &device()).map(|()| Verdict::Passed));
        let Err(Failure::Fault(error)) = failure else { panic!("barrier {number}: {failure:?}") };
        assert!(matches!(*error, SimError::Conflict { .. }), "{number}: {error}");
    }
    assert_eq!(mixed, 2);
}

/// A change of a barrier or atomic breaks the rules of the IR, races, or gives other counts.
#[test]
fn every_mutant_of_a_histogram_is_noticed() {
    for (lines, count) in [(IN_SHARED, 10), (IN_GLOBAL, 28)] {
        let kernels = histogram(lines).mutate(&device()).unwrap();
        let mutants: Vec<&Mutant> = kernels.iter().flat_map(|found| &found.mutants).collect();
        assert_eq!(mutants.len(), count);
        for mutant in mutants {
            let noticed = match mutant.mutation {
                Mutation::NoBarrier | Mutation::PlainAtomic => {
                    matches!(mutant.fate, Fate::Refused | Fate::Stopped)
                }
                _ => mutant.fate == Fate::Wrong,
            };
            assert!(noticed, "{mutant}: {:?}", mutant.fate);
        }
    }
}
