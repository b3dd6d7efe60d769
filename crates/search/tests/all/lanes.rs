//! Kernels in which lanes share what they compute: found next to schedules without, and never by weights that do not know them.

use warploom_cost::Analytic;
use warploom_schedule::{Nest, Schedule};
use warploom_search::{Options, neighbourhoods, search};

use crate::common::{h200, named};

/// What the search finds for `harris` with trained weights.
const SEARCHED: &str = "harris  inline Ix, Iy, Ixx, Sxx, Iyy, Syy, Ixy, Sxy, det, trace
  kernel output  block x 32, y 32
    gray    threads x 36, y 4  serial y 9  unroll  shared  pitch 37
    output  threads x 32, y 8  serial y 4  unroll
";

fn uses_lanes(schedule: &Schedule) -> bool {
    schedule.nests().any(|nest: &Nest| nest.numbers.lanes || nest.numbers.slide)
}

/// One step puts all of `harris` in lanes.
#[test]
fn the_schedule_by_hand_is_next_to_the_searched_one() {
    let problem = named("harris");
    let parse = |text: &str| Schedule::parse(text, problem.pipeline()).unwrap();
    let by_hand = format!("{}/../../apps/schedules/harris.schedule", env!("CARGO_MANIFEST_DIR"));
    let by_hand = parse(&std::fs::read_to_string(by_hand).unwrap());
    assert!(uses_lanes(&by_hand));
    let model = Analytic::new(&h200());
    let near = neighbourhoods(&problem, &model, &Options::default(), &[parse(SEARCHED)]);
    let [Some(of_searched)] = &near[..] else { panic!("a search could make it") };
    for other in &of_searched.neighbours {
        assert_eq!(problem.check(&other.schedule).err(), None);
    }
    let shares = of_searched.neighbours.iter().filter(|other| uses_lanes(&other.schedule)).count();
    assert!(shares >= 9, "{shares}");
    assert!(of_searched.neighbours.iter().any(|other| other.schedule == by_hand));
}

/// A kernel with little in registers, which threads could also compute alone.
const LITTLE: &str = "harris  inline Ix, Iy, Ixx, Sxx, Iyy, Syy, Ixy, Sxy, det, trace
  kernel output  block x 28, y 32
    output  threads x 32, y 4  serial y 8  unroll  lanes
      gray  registers
";

/// Lanes stop sharing, and rows come in turn or all at once, in one step.
#[test]
fn lanes_and_rows_are_single_steps() {
    let problem = named("harris");
    let [shared, alone, in_turn] =
        [LITTLE, &LITTLE.replace("lanes", ""), &LITTLE.replace("lanes", "lanes slide")]
            .map(|text| Schedule::parse(text, problem.pipeline()).unwrap());
    let near = |from: &Schedule, to: &Schedule| {
        let model = Analytic::new(&h200());
        let found = neighbourhoods(&problem, &model, &Options::default(), std::slice::from_ref(from));
        found[0].as_ref().is_some_and(|near| near.neighbours.iter().any(|other| other.schedule == *to))
    };
    for (one, other) in [(&shared, &alone), (&shared, &in_turn)] {
        assert!(near(one, other) && near(other, one));
    }
}

/// Weights rank lanes by the analytic model alone, which is not comparable. So a search with them leaves lanes out.
#[test]
fn weights_that_do_not_know_lanes_do_not_choose_them() {
    let problem = named("harris");
    let model = warploom::model_for(&h200()).model;
    let options = Options { beam: 4, passes: 3, samples: 4, ..Options::default() };
    let outcome = search(&problem, &*model, &options, &|_| {});
    assert!(outcome.candidates.len() > 10);
    assert!(!outcome.candidates.iter().any(|candidate| uses_lanes(&candidate.schedule)));
}
