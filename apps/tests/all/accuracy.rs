//! What apps state about their accuracy holds for the reference with other roundings.

use warploom::check::{SEED, small_settings};
use warploom::interp::expected::Closeness;
use warploom::tune::workload::PERTURBED_RUNS;
use warploom_apps::APPS;

/// A run that is none of those that tolerances are made from.
const UNSEEN: u64 = 1_000_000;

#[test]
fn other_roundings_stay_within_what_apps_state() {
    for app in APPS.iter() {
        let workload = app.workload(&small_settings(app).unwrap(), SEED).unwrap();
        let expected = workload.expected(app.tolerance, PERTURBED_RUNS).unwrap();
        for (known, stated) in expected.conditioning().iter().zip(app.tolerance) {
            let fits = !known.ty.is_float() || known.global_spread <= stated;
            assert!(fits, "{}: the runs lie apart by {:.1e}", app.name, known.global_spread);
            assert_eq!(known.broken, 0, "{}", app.name);
        }
        let outputs = workload.evaluation().perturbed(UNSEEN).run().unwrap();
        let fault = expected.closeness(&outputs).iter().find_map(Closeness::sentence);
        assert_eq!(fault, None, "{}", app.name);
    }
}

/// Integers that no rounding reaches have to be exact in every build.
#[test]
fn integers_are_exact_where_they_can_be() {
    let exact = APPS.iter().filter(|app| {
        let workload = app.workload(&small_settings(app).unwrap(), SEED).unwrap();
        let reached =
            warploom::lang::rounding::reached(&workload.pipeline, warploom::lang::rounding::Rounding::Timing);
        workload.pipeline.outputs().iter().all(|id| reached[*id].iter().all(|reached| !reached))
    });
    assert_eq!(exact.map(|app| app.name.as_str()).collect::<Vec<_>>(), ["stencil_chain"]);
}
