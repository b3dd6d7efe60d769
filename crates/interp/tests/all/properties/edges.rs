//! Values beyond the core of a Func: each is that of the nearest point of the core.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use warploom_lang::*;

use super::maker::Maker;
use super::{Case, Outcome, config, plans, same};
use crate::naive::Naive;

/// A Func whose core is smaller than its region.
struct Shrunk {
    func: FuncId,
    region: Region,
    core: Region,
}

impl Case {
    fn shrunk(&self) -> Vec<Shrunk> {
        let regions = infer(&self.pipeline, &self.request()).expect("the case has regions");
        let cores = cores(&self.pipeline, &regions);
        let all = regions.funcs.iter().map(|(func, found)| {
            let (region, core) = (found.region.clone(), cores[func].clone());
            assert!(region.covers(&core) && core.is_empty() == region.is_empty(), "{core} of {region}");
            Shrunk { func, region, core }
        });
        all.filter(|shrunk| shrunk.region != shrunk.core).collect()
    }

    /// Compares every point with the nearest one of the core. The error describes the first difference.
    fn check_edges(&self) -> Result<(), String> {
        let mut naive = Naive::new(&self.pipeline, self.images.iter().collect(), self.params.clone());
        for Shrunk { func, region, core } in self.shrunk() {
            for point in points(&region) {
                let near = point.iter().zip(&core.0);
                let near = near.map(|(at, range)| Range::new(*at.clamp(&range.min, &range.last()), 1));
                let at = Region(point.iter().map(|at| Range::new(*at, 1)).collect());
                let (got, expected) = (naive.values(func, &at), naive.values(func, &Region(near.collect())));
                if !got.iter().flatten().zip(expected.iter().flatten()).all(|(a, b)| same(*a, *b)) {
                    let name = &self.pipeline.funcs()[func].name;
                    return Err(format!("`{name}` at {at}, core {core}: {got:?}, not {expected:?}"));
                }
            }
        }
        Ok(())
    }
}

/// All points of a box.
fn points(region: &Region) -> Vec<Vec<i64>> {
    region.0.iter().fold(vec![Vec::new()], |points, range| {
        let longer = |point: &Vec<i64>| {
            let point = point.clone();
            range.iter().map(move |at| [point.as_slice(), &[at]].concat()).collect::<Vec<_>>()
        };
        points.iter().flat_map(longer).collect()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn values_beyond_the_core_repeat(plan in plans()) {
        let case = Maker::case(plan);
        if case.outlook() == Outcome::Evaluated {
            let found = case.check_edges();
            prop_assert!(found.is_ok(), "{}\n{}\n{:?}", found.unwrap_err(), case.pipeline, case.request());
        }
    }
}

#[test]
fn many_random_funcs_have_a_smaller_core() {
    let mut runner = TestRunner::deterministic();
    let (mut pure, mut updated) = (0, 0);
    for _ in 0..400 {
        let case = Maker::case(plans().new_tree(&mut runner).unwrap().current());
        if case.outlook() == Outcome::Evaluated {
            for shrunk in case.shrunk() {
                let stages = case.pipeline.funcs()[shrunk.func].stages.len();
                if stages == 1 { pure += 1 } else { updated += 1 }
            }
        }
    }
    assert!(pure > 300 && updated > 50, "{pure} pure ones, {updated} with updates");
}
