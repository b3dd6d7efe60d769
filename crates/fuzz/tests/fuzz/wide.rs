//! Kernels with indices of 64 bits, as for arrays that memory has no room for.

use std::collections::BTreeSet;
use std::sync::Mutex;

use warploom_codegen::ir::{NodeKind, Program, Space, every_stmt};
use warploom_codegen::lower::Options as Lowering;
use warploom_fuzz::{Case, Options, Verdict, fuzz, random_schedules};

use crate::support::*;

/// What an offset is for: a load or a write, and where.
type Use = (&'static str, &'static str);

fn space(space: Space) -> &'static str {
    match space {
        Space::Global(_) => "global",
        Space::Shared => "shared",
        Space::Thread => "thread",
    }
}

/// How the offsets of a program are used.
fn uses(program: &Program) -> BTreeSet<Use> {
    let mut uses = BTreeSet::new();
    for kernel in program.kernels.values() {
        for (_, node) in kernel.exprs.nodes().iter() {
            if let (NodeKind::Load(array), [index]) = (node.kind, &node.args[..])
                && kernel.exprs.is_offset(*index)
            {
                uses.insert(("load", space(kernel.arrays[array].space)));
            }
        }
        for stmt in every_stmt(&kernel.body) {
            if let Some(array) = stmt.written()
                && kernel.exprs.is_offset(stmt.operands()[0])
            {
                uses.insert(("write", space(kernel.arrays[array].space)));
            }
        }
        if kernel.name.ends_with(".copy") {
            uses.insert(("copy", "global"));
        }
    }
    uses
}

#[test]
fn wide_kernels_give_the_reference() {
    let seen = Mutex::new(BTreeSet::new());
    for (seed, narrow_elements) in [(71, 1), (72, 20), (73, 300)] {
        let check = |case: &Case| {
            case.check_with(|run| {
                let program = run.case.lower_with(&device(), Lowering { narrow_elements, pitched: false })?;
                seen.lock().unwrap().extend(uses(&program));
                run.simulate(&program, &device()).map(|()| Verdict::Passed)
            })
        };
        let options = Options { pipelines: 60, seed, ..Options::default() };
        let summary = fuzz(&options, &device(), &random_schedules(2), &check, &|_| ()).unwrap();
        let failures: Vec<String> = summary.failures.iter().map(|found| found.failure.to_string()).collect();
        assert!(failures.is_empty(), "{narrow_elements}: {failures:#?}");
        assert!(summary.skipped_pairs() * 20 <= summary.pairs, "{summary:?}");
    }
    let every =
        ["global", "shared", "thread"].into_iter().flat_map(|space| [("load", space), ("write", space)]);
    let every: BTreeSet<Use> = every.chain([("copy", "global")]).collect();
    assert_eq!(*seen.lock().unwrap(), every);
}

/// The seed of a case decides whether its kernels are checked in both widths; some of all seeds do.
#[test]
fn some_cases_have_wide_kernels_too() {
    let mut case = case();
    let widths: Vec<usize> = (0..40)
        .map(|seed| {
            case.seed = seed;
            let programs = case.programs(&device()).unwrap();
            assert!(uses(&programs[0]).iter().all(|(what, _)| *what == "copy"));
            programs.len()
        })
        .collect();
    assert!(widths.contains(&1) && widths.contains(&2), "{widths:?}");
}
