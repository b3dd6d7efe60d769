//! Kernels that may start before their predecessor has ended: in the text of every app and of random pipelines, each kernel
//! that follows another waits before it touches memory, and what kernels write is read and written only after that; and
//! the compiler leaves it so.

use std::collections::{BTreeMap, BTreeSet};

use warploom::codegen::build::build;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::plan::Problem;
use warploom::randpipe::{Options, random_pipeline};
use warploom::runtime::cuda::nvrtc;
use warploom::runtime::testing;
use warploom::schedule::Schedule;
use warploom::target::program::{Code, Kernel, Program, Role};

use crate::common::{h200, hand_written, problem};

const WAIT: &str = "const unsigned long long origin = wl_await_previous();";

/// Which kernels wait, by following the launches one by one.
fn waiting(program: &Program) -> Vec<bool> {
    let mut waiting = vec![false; program.kernels.len()];
    let mut first = true;
    let all: Result<(), ()> = program.for_each_launch(|kernel, _| {
        waiting[kernel] |= !first;
        first = false;
        Ok(())
    });
    all.expect("nothing fails");
    waiting
}

fn text(program: &Program) -> &str {
    let Code::Source { text, .. } = &program.code else { panic!("it is text") };
    text
}

/// The parameters of a kernel that point to what kernels write.
fn changing<'a>(program: &Program, kernel: &Kernel, head: &'a str) -> BTreeSet<&'a str> {
    let (_, parameters) = head.split_once(&format!(" {}(", kernel.entry)).expect("it has a name");
    let names = parameters.split(',').filter_map(|parameter| parameter.trim().split(' ').next_back());
    let changes = |&buffer: &usize| !matches!(program.buffers[buffer].role, Role::Input(_));
    let changing = names.zip(&kernel.buffers).filter(|(_, buffer)| changes(buffer));
    changing.map(|(name, _)| name).collect()
}

/// The pointers that are advanced by the origin in the lines after the wait, up to the first other line.
fn advanced(body: &str) -> BTreeSet<&str> {
    let lines = body.lines().skip(1).map(str::trim);
    let pointers = lines.map_while(|line| {
        let (pointer, value) = line.split_once(" = ")?;
        (value == format!("wl_after({pointer}, origin);")).then_some(pointer)
    });
    pointers.collect()
}

/// Checks the text of a program; gives the number of kernels that wait.
fn check(name: &str, program: &Program) -> usize {
    let text = text(program);
    if program.launches() == 1 {
        assert!(!text.contains("griddepcontrol") && !text.contains("wl_after"), "{name}\n{text}");
    }
    assert!(!text.contains("launch_dependents"), "{name}");
    let parts: Vec<&str> = text.split("extern \"C\" __global__").skip(1).collect();
    assert_eq!(parts.len(), program.kernels.len());
    let waiting = waiting(program);
    for ((part, kernel), &waits) in parts.into_iter().zip(&program.kernels).zip(&waiting) {
        let (head, body) = part.split_once(") {\n").expect("it has a body");
        let begins = body.trim_start().starts_with(WAIT);
        assert_eq!((begins, kernel.waits), (waits, waits), "{name}\n{part}");
        if waits {
            assert_eq!(advanced(body), changing(program, kernel, head), "{name}\n{part}");
        }
    }
    waiting.into_iter().filter(|&waits| waits).count()
}

fn described(problem: &Problem, schedule: &Schedule, name: &str) -> Program {
    let program = build(problem, schedule).unwrap_or_else(|error| panic!("{name}: {error}"));
    PRINTER.describe(&program, Build::Timing)
}

fn in_apps(choose: impl Fn(&Problem) -> Schedule) -> usize {
    let all = warploom_apps::APPS.iter().map(|app| {
        let problem = problem(app, &[]);
        check(&app.name, &described(&problem, &choose(&problem), &app.name))
    });
    all.sum()
}

#[test]
fn kernels_of_default_schedules_wait() {
    assert!(in_apps(Problem::default_schedule) > 100);
}

#[test]
fn kernels_of_hand_written_schedules_wait() {
    assert!(in_apps(|problem| hand_written(problem.pipeline())) > 50);
}

#[test]
fn kernels_of_random_schedules_wait() {
    for seed in 1..=5 {
        assert!(in_apps(|problem| problem.random_schedule(seed)) > 50, "{seed}");
    }
}

#[test]
fn kernels_of_random_pipelines_wait() {
    let all = (1..=200).map(|seed| {
        let random = random_pipeline(seed, &Options::default());
        let problem = Problem::new(&random.pipeline, &random.request, &h200()).expect("the sizes fit");
        let name = format!("pipeline {seed}");
        let schedules = [problem.default_schedule(), problem.random_schedule(seed)];
        schedules.map(|schedule| check(&name, &described(&problem, &schedule, &name))).iter().sum::<usize>()
    });
    assert!(all.sum::<usize>() > 400);
}

/// A program with the last such line of its text gone.
fn without(line: &str) -> Program {
    let app = warploom_apps::find("local_laplacian").expect("it is an app");
    let problem = problem(app, &[]);
    let mut program = described(&problem, &problem.default_schedule(), &app.name);
    check("whole", &program);
    let Code::Source { text, .. } = &mut program.code else { panic!("it is text") };
    let start = text.rfind(line).expect("it has such a line");
    let end = start + text[start..].find('\n').expect("it is a line");
    text.replace_range(start..end, "");
    program
}

#[test]
#[should_panic(expected = "one without a wait")]
fn a_missing_wait_is_noticed() {
    check("one without a wait", &without(WAIT));
}

#[test]
#[should_panic(expected = "one too early")]
fn a_pointer_that_does_not_depend_on_the_wait_is_noticed() {
    check("one too early", &without(" = wl_after("));
}

/// How often each instruction for global memory occurs.
fn accesses(ptx: &str) -> BTreeMap<&str, usize> {
    const KINDS: [&str; 5] = ["ld.global", "st.global", "atom.", "red.", "cp.async.c"];
    let mut counts = BTreeMap::new();
    for line in ptx.lines().map(|line| line.trim_start()) {
        let line =
            if line.starts_with('@') { line.split_once(' ').map_or("", |(_, rest)| rest) } else { line };
        if KINDS.iter().any(|kind| line.starts_with(kind)) {
            *counts.entry(line.split_whitespace().next().unwrap_or_default()).or_default() += 1;
        }
    }
    counts
}

/// A program whose kernels do not wait.
fn careless(program: &Program) -> Program {
    let mut program = program.clone();
    let Code::Source { text, .. } = &mut program.code else { panic!("it is text") };
    let waits = |line: &str| line.contains(WAIT) || line.contains(" = wl_after(");
    *text = text.lines().filter(|line| !waits(line)).map(|line| format!("{line}\n")).collect();
    program
}

/// In PTX, a kernel touches nothing before it waits, and what it touches then it does with the same instructions as
/// without the wait: constant memory is loaded as such, and loads are as wide.
#[test]
fn nvrtc_the_compiler_moves_no_access_before_the_wait_and_changes_none() {
    if !testing::has_nvrtc("nvrtc_the_compiler_moves_no_access_before_the_wait_and_changes_none") {
        return;
    }
    let ptx = |program: &Program| {
        let (compiled, _) = nvrtc::compile_program(program, nvrtc::Arch::Virtual(90)).expect("it compiles");
        let Code::Virtual(ptx) = compiled.code else { panic!("it is virtual code") };
        ptx
    };
    let mut waiting = 0;
    for app in warploom_apps::APPS.iter() {
        let problem = problem(app, &[]);
        let program = described(&problem, &hand_written(problem.pipeline()), &app.name);
        if program.launches() == 1 {
            continue;
        }
        let text = ptx(&program);
        assert_eq!(accesses(&text), accesses(&ptx(&careless(&program))), "{}", app.name);
        for kernel in &program.kernels {
            let (_, entry) = text.split_once(&format!(".entry {}(", kernel.entry)).expect("it is compiled");
            let entry = entry.split(".entry ").next().unwrap_or_default();
            let before = entry.split_once("griddepcontrol.wait").map(|(before, _)| before);
            assert_eq!(before.is_some(), kernel.waits, "{}: {}", app.name, kernel.entry);
            assert_eq!(accesses(before.unwrap_or_default()), BTreeMap::new(), "{}: {entry}", app.name);
            waiting += usize::from(kernel.waits);
        }
    }
    assert!(waiting > 50, "{waiting}");
}
