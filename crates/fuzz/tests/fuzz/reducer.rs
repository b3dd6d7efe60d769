//! Failures that are made up have the smallest cases that show them.

use warploom_fuzz::{Case, Failure, REDUCTION_TIME, Verdict, reduce};
use warploom_lang::ir::NodeKind;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::*;
use warploom_schedule::Schedule;

use crate::support::*;

fn has_op(case: &Case, op: BinaryOp) -> bool {
    case.pipeline.exprs().nodes().values().any(|node| node.kind == NodeKind::Op(Op::Binary(op)))
}

fn text(case: &Case) -> String {
    case.schedule.to_text(&case.pipeline)
}

fn scheduled() -> Case {
    let case = case();
    let schedule = Schedule::parse(SCHEDULE, &case.pipeline).unwrap();
    Case { schedule, ..case }
}

/// Reduces with a checker that fails where `broken` says so and the case is right otherwise.
fn reduced(case: Case, broken: impl Fn(&Case) -> bool + Sync) -> Case {
    let check = |case: &Case| match case.check(&device()) {
        Ok(Verdict::Passed) if broken(case) => Err(made_up()),
        other => other,
    };
    let failure = check(&case).unwrap_err();
    let reduced = reduce(case, failure, &check, REDUCTION_TIME);
    assert!(!reduced.out_of_time);
    assert_eq!(reduced.failure.symptom(), "numeric");
    reduced.case
}

#[test]
fn an_operation_alone() {
    let small = reduced(scheduled(), |case| has_op(case, BinaryOp::Mod));
    assert_eq!(small.pipeline.to_string(), "pipeline made_up\n  other(x, y) = 0.0 % 0.0\n");
    assert_eq!(text(&small), "made_up\n  kernel other  flat\n");
    assert_eq!(small.request.outputs, [Some(Region::of_extents(&[1, 1]))]);
}

#[test]
fn a_schedule_alone() {
    let small = reduced(scheduled(), |case| text(case).contains("shared") && text(case).contains("unroll"));
    let pipeline = "\
pipeline made_up
  input  mask(d0, d1): f32
  out(x, y) = mask(x, y)
";
    let schedule = "\
made_up
  kernel out
    mask.stage  flat          shared
    out               unroll
";
    assert_eq!((small.pipeline.to_string().as_str(), text(&small).as_str()), (pipeline, schedule));
}

/// Also if the update is atomic at first.
#[test]
fn an_update_and_its_place() {
    let atomic = "  kernel histogram.1  block ry 2\n    histogram.1  threads rx 4  atomic\n";
    let schedule = SCHEDULE.replace("  kernel histogram.1  threads\n", atomic);
    let case = case();
    let schedule = Schedule::parse(&schedule, &case.pipeline).unwrap();
    assert!(schedule.nests().any(|nest| nest.numbers.atomic));
    let small = reduced(Case { schedule, ..case }, |case| {
        let updates = case.pipeline.funcs().values().any(|func| func.stages.len() > 1);
        updates && has_op(case, BinaryOp::Div)
    });
    assert_eq!(small.pipeline.to_string(), "pipeline made_up\n  histogram(x) = 1\n  histogram(1 / 1) = 1\n");
    assert_eq!(text(&small), "made_up\n  kernel histogram.0  flat\n  kernel histogram.1  flat\n");
}

#[test]
fn a_refused_schedule_keeps_its_reason() {
    let mut case = scheduled();
    case.schedule.root.swap(1, 2);
    let check = |case: &Case| case.check(&device());
    let failure = check(&case).unwrap_err();
    let symptom = failure.symptom();
    let small = reduce(case, failure, &check, REDUCTION_TIME);
    assert_eq!(small.failure.symptom(), symptom);
    assert!(matches!(small.failure, Failure::Illegal(_)));
    assert_eq!(text(&small.case), "made_up\n  kernel histogram.1  flat\n  kernel histogram.0  flat\n");
    assert_eq!(small.case.pipeline.exprs().len(), 2);
}

/// A failure that needs a schedule is not mistaken for one of a pipeline that reads what it never wrote.
#[test]
fn undefined_points_stay_unread() {
    let x = vars!(x);
    let r = rdom([(0, 8)]);
    let scan = func("scan", x, undef(Type::F32)).over(&r, |f| f.set(r.x, r.x.f32()));
    let pipeline = Pipeline::new("scans", [func("out", x, scan.at(x) * 2.0)]).unwrap();
    let request = Realisation::new(&pipeline).output("out", Region::of_extents(&[8]));
    let schedule = "scans\n  kernel scan.1  threads\n  kernel out  block x 4  threads x 4\n";
    let schedule = Schedule::parse(schedule, &pipeline).unwrap();
    let case = Case { pipeline, request, schedule, seed: 0 };
    let is_broken = |case: &Case| {
        let mut funcs = case.pipeline.funcs().values();
        funcs.any(|func| func.stages[0].values.is_empty()) && text(case).contains("block")
    };
    // The simulator refuses reads of what nothing wrote: that must not pass for the same failure.
    let check = |case: &Case| match case.check(&device()) {
        Ok(Verdict::Passed) if !is_broken(case) => Ok(Verdict::Passed),
        _ => Err(made_up()),
    };
    let small = reduce(case, made_up(), &check, REDUCTION_TIME).case;
    assert_eq!(small.check(&device()).unwrap(), Verdict::Passed);
    assert!(is_broken(&small));
}
