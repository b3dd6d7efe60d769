//! What the two evolutions keep, and where children come from.

use crate::made_up::{Gemm, best};
use warploom_strategy::genetic::{Genetic, GeneticSettings};
use warploom_strategy::opevo::{OpEvo, OpEvoSettings};
use warploom_strategy::{Point, Settings, Strategy, Verdict};

/// Asks once and tells; what was told.
fn round(strategy: &mut dyn Strategy, space: &Gemm, most: usize) -> Vec<(Point, Verdict)> {
    let asked = strategy.ask(space, most);
    let results: Vec<_> = asked.into_iter().map(|point| (point.clone(), space.verdict(&point))).collect();
    strategy.tell(space, &results);
    results
}

/// Whether each coordinate of a child is that of one of the parents.
fn comes_from(child: &Point, parents: &[Point]) -> bool {
    child.at.iter().enumerate().all(|(axis, at)| parents.iter().any(|parent| parent.at[axis] == *at))
}

#[test]
fn elites_are_never_lost() {
    let space = Gemm::new(512);
    let mut genetic = Genetic::new(GeneticSettings::of(200), 3);
    let mut told = Vec::new();
    for _ in 0..15 {
        told.extend(round(&mut genetic, &space, 1000));
        let elites = genetic.elites();
        assert_eq!(elites.len(), 2);
        assert_eq!(space.verdict(&elites[0]), Verdict::Time(best(&told)));
        told.extend(round(&mut genetic, &space, 1000));
        assert_eq!(genetic.generation().len(), 20);
        assert!(elites.iter().all(|elite| genetic.generation().contains(elite)));
    }
}

#[test]
fn genes_come_from_the_generation_before() {
    let space = Gemm::new(512);
    let settings = GeneticSettings::of(1000).parse("mutation=0,crossover=1").expect("the settings are right");
    let mut genetic = Genetic::new(settings, 1);
    round(&mut genetic, &space, 1000);
    let mut bred = 0;
    for _ in 0..3 {
        let before = genetic.generation().to_vec();
        for (child, _) in round(&mut genetic, &space, 1000) {
            assert!(comes_from(&child, &before), "{child:?}");
            assert!(!before.contains(&child));
            bred += 1;
        }
    }
    assert!(bred > 100, "{bred}");
}

#[test]
fn parents_are_the_best_of_all() {
    let space = Gemm::new(512);
    let mut opevo = OpEvo::new(OpEvoSettings::of(500), 2);
    let mut times = Vec::new();
    for _ in 0..20 {
        for (_, verdict) in round(&mut opevo, &space, 1000) {
            times.extend(if let Verdict::Time(time) = verdict { Some(time) } else { None });
        }
        times.sort_by(f64::total_cmp);
        let parents: Vec<f64> = opevo.parents().iter().map(|(time, _)| *time).collect();
        assert_eq!(parents, times[..times.len().min(8)]);
    }
}

#[test]
fn children_without_walks_are_made_of_their_parents() {
    let space = Gemm::new(512);
    let settings = OpEvoSettings::of(500).parse("q=0").expect("the settings are right");
    let mut opevo = OpEvo::new(settings, 4);
    round(&mut opevo, &space, 1000);
    let parents: Vec<Point> = opevo.parents().iter().map(|(_, point)| point.clone()).collect();
    let children = round(&mut opevo, &space, 1000);
    assert_eq!(children.len(), 8);
    assert!(children.iter().filter(|(child, _)| comes_from(child, &parents)).count() >= 7);
}
