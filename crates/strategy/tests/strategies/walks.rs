//! Spaces, random points, walks, and the search that walks systematically.

use crate::made_up::{Gemm, Mixed, factors, run};
use std::collections::{BTreeMap, BTreeSet};
use warploom_strategy::{Axis, Coordinate, Draw, Moves, Point, Space, make, space};

#[test]
fn matrix_products_have_as_many_points_as_the_paper_counts() {
    for (side, points) in [(512, 484_000), (1024, 899_756), (2048, 1_589_952)] {
        assert_eq!(space::size(&Gemm::new(side)), points);
    }
}

fn axes() -> [Axis; 5] {
    [
        factors(36, 2),
        factors(12, 3),
        Axis::Order { name: "order".to_owned(), len: 3 },
        Axis::Numbers { name: "number".to_owned(), values: vec![1, 2, 4, 8, 16] },
        Axis::Choice { name: "choice".to_owned(), len: 4 },
    ]
}

fn values(axis: &Axis) -> Vec<Coordinate> {
    (0..axis.count()).map(|index| axis.coordinate(index)).collect()
}

/// How often each value of an axis comes, of all draws.
fn shares(axis: &Axis, draws: usize, mut one: impl FnMut() -> Coordinate) -> Vec<f64> {
    let mut counts: BTreeMap<Coordinate, usize> = BTreeMap::new();
    for _ in 0..draws {
        *counts.entry(one()).or_default() += 1;
    }
    values(axis).iter().map(|value| counts.get(value).copied().unwrap_or(0) as f64 / draws as f64).collect()
}

#[test]
fn random_values_are_equally_likely() {
    let mut draw = Draw::new(2);
    for axis in axes() {
        let wanted = 1.0 / axis.count() as f64;
        for share in shares(&axis, 40_000, || axis.random(&mut draw)) {
            assert!((share - wanted).abs() < 0.1 * wanted, "{axis:?}: {share} {wanted}");
        }
    }
}

/// (1 - q) (I - Q)^-1 e, where Q has q / |S(u)| from u to each of its neighbours, by elimination.
fn ends_of_walks(axis: &Axis, from: usize, q: f64) -> Vec<f64> {
    let values = values(axis);
    let len = values.len();
    let mut rows: Vec<Vec<f64>> = (0..len)
        .map(|row| {
            (0..=len)
                .map(|column| f64::from(column == row) + f64::from(column == len && row == from))
                .collect()
        })
        .collect();
    for (u, value) in values.iter().enumerate() {
        let near = Moves::Prime.on_axis(axis, value);
        for v in near.iter().map(|near| values.iter().position(|value| value == near).expect("a value")) {
            rows[v][u] -= q / near.len() as f64;
        }
    }
    for pivot in 0..len {
        let row: Vec<f64> = rows[pivot].iter().map(|entry| entry / rows[pivot][pivot]).collect();
        for (number, other) in rows.iter_mut().enumerate() {
            let scale = other[pivot];
            if number == pivot {
                other.clone_from(&row);
            } else {
                other.iter_mut().zip(&row).for_each(|(entry, by)| *entry -= scale * by);
            }
        }
    }
    rows.iter().map(|row| (1.0 - q) * row[len]).collect()
}

#[test]
fn walks_end_where_the_formula_says() {
    let mut draw = Draw::new(11);
    for axis in axes() {
        for (from, q) in [(0, 0.5), (1, 0.8)] {
            let wanted = ends_of_walks(&axis, from, q);
            assert!((wanted.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let start = axis.coordinate(from as u128);
            let found = shares(&axis, 100_000, || axis.walk(&start, q, &mut draw));
            for (wanted, found) in wanted.iter().zip(&found) {
                assert!((wanted - found).abs() < 0.006, "{axis:?} q={q}: {wanted} {found}");
            }
        }
    }
}

#[test]
fn random_points_are_drawn_again_until_they_are_legal() {
    let space = Gemm::new(1024);
    let mut draw = Draw::new(1);
    let refused = (0..500).filter(|_| space.refusal(&space::random(&space, &mut draw)).is_some()).count();
    assert!(refused > 50, "{refused}");
    for _ in 0..500 {
        let point = space::random_legal(&space, &mut draw, 1000).expect("many points are legal");
        assert_eq!(space.refusal(&point), None);
    }
    assert_eq!(space::random_legal(&space, &mut draw, 0), None);
}

#[test]
fn crossover_follows_weights_and_keeps_one_template() {
    let space = Mixed::new();
    let [a, b, other] = [(0, 1), (5, 1), (3, 0)]
        .map(|(seed, template)| space::random_of(&space, template, &mut Draw::new(seed)));
    assert_ne!(a.at[0], b.at[0]);
    let mut draw = Draw::new(0);
    let mut from_b = 0;
    for _ in 0..10_000 {
        let child =
            space::cross(&[(&a, 1.0), (&b, 3.0), (&other, 0.0)], &mut draw).expect("parents have weight");
        assert_eq!(child.template, 1);
        assert!(child.at.iter().enumerate().all(|(axis, at)| *at == a.at[axis] || *at == b.at[axis]));
        from_b += usize::from(child.at[0] == b.at[0]);
    }
    assert!((7_300..7_700).contains(&from_b), "{from_b}");
    assert_eq!(space::cross(&[(&a, 0.0)], &mut draw), None);
}

#[test]
fn inputs_are_logarithms_and_one_hot() {
    let space = Mixed::new();
    let at = vec![
        Coordinate::Factors(vec![1, 24, 1]),
        Coordinate::Order(vec![2, 0, 1]),
        Coordinate::Index(3),
        Coordinate::Index(1),
    ];
    let inputs = space::inputs(&space, &Point { template: 1, at });
    assert_eq!(inputs, [0., 1., 0., 0., 0., 1., 1., 0., 0., 0., 1., 0., 1., 0., 1., 0.]);
}

#[test]
fn directions_have_the_same_numbers_everywhere() {
    let space = Mixed::new();
    let mut draw = Draw::new(4);
    for moves in [Moves::Prime, Moves::Double, Moves::Divisor] {
        for _ in 0..50 {
            let point = space::random(&space, &mut draw);
            let directions = moves.directions(&space, point.template);
            let near = moves.neighbours(&space, &point);
            assert_eq!(near.iter().map(|(_, point)| point).collect::<BTreeSet<_>>().len(), near.len());
            for (number, neighbour) in near {
                assert_ne!(neighbour, point);
                assert_eq!(directions[number].apply(&space, &point), Some(neighbour));
            }
        }
    }
}

/// Paths of a best-first search: every point but the first is a neighbour of one that was told before.
#[test]
fn best_first_search_expands_what_it_knows() {
    let space = Gemm::new(64);
    let mut strategy = make("g-bfs", 300, 5, "").expect("there is such a strategy");
    let steps = run(strategy.as_mut(), &space, |point| space.verdict(point), 300, 16);
    assert_eq!(steps[0].0, space.origin(0));
    let mut known = BTreeSet::from([space.origin(0)]);
    for (point, _) in &steps[1..] {
        let near = Moves::Double.neighbours(&space, point);
        assert!(
            near.iter().any(|(_, near)| known.contains(near) || space.refusal(near).is_some()),
            "{point:?}"
        );
        known.insert(point.clone());
    }
}

#[test]
fn best_first_search_with_all_neighbours_covers_the_space() {
    let space = Gemm::new(8);
    let mut strategy = make("g-bfs", 10, 0, "rho=all").expect("the settings are right");
    let steps = run(strategy.as_mut(), &space, |point| space.verdict(point), usize::MAX, 26);
    let legal = space::points(&space).filter(|point| space.refusal(point).is_none()).count();
    assert_eq!(space::size(&space), 1600);
    assert_eq!(steps.len(), legal);
}
