//! Networks learn which directions are good.

use crate::made_up::run;
use warploom_strategy::anneal_q::{AnnealQ, AnnealQSettings};
use warploom_strategy::n_a2c::{NA2c, NA2cSettings};
use warploom_strategy::{Axis, Coordinate, Draw, Point, Settings, Space, Verdict, space};

/// Three numbers from 0 to 29. Only the first one matters: each step up saves a tenth of the time.
struct Ladder([Axis; 3]);

impl Ladder {
    fn new() -> Ladder {
        Ladder(
            ["one", "two", "three"]
                .map(|name| Axis::Numbers { name: name.to_owned(), values: (0..30).collect() }),
        )
    }

    fn verdict(point: &Point) -> Verdict {
        match point.at[0] {
            Coordinate::Index(at) => Verdict::Time(100.0 * 0.9f64.powi(i32::from(at))),
            _ => Verdict::Failed,
        }
    }

    /// Points from which there are six directions.
    fn inner(&self) -> Vec<Point> {
        let mut draw = Draw::new(0);
        let inner = |point: &Point| point.at.iter().all(|at| (1..29).any(|n| *at == Coordinate::Index(n)));
        std::iter::repeat_with(|| space::random(self, &mut draw)).filter(inner).take(200).collect()
    }
}

impl Space for Ladder {
    fn templates(&self) -> usize {
        1
    }

    fn axes(&self, _: u16) -> &[Axis] {
        &self.0
    }

    fn origin(&self, _: u16) -> Point {
        Point { template: 0, at: vec![Coordinate::Index(0), Coordinate::Index(15), Coordinate::Index(15)] }
    }

    fn refusal(&self, _: &Point) -> Option<String> {
        None
    }
}

/// The number of the direction in which the first number rises.
const UP: usize = 1;

#[test]
fn the_actor_learns_the_good_direction() {
    let space = Ladder::new();
    let mean = |actor: &mut NA2c| {
        let share = |actor: &mut NA2c, point: &Point| actor.policy(&space, point)[UP].2;
        space.inner().iter().map(|point| share(actor, point)).sum::<f32>() / 200.0
    };
    let settings = NA2cSettings::default().parse("updates=8").expect("the settings are right");
    let mut actor = NA2c::new(settings, 1);
    let before = mean(&mut actor);
    run(&mut actor, &space, Ladder::verdict, 600, 6);
    let after = mean(&mut actor);
    assert!(before < 0.3 && after > 0.6, "{before} {after}");
}

#[test]
fn values_of_directions_are_learned() {
    let space = Ladder::new();
    let right = |learner: &mut AnnealQ| {
        let best = |values: Vec<f32>| (0..6).max_by(|a, b| values[*a].total_cmp(&values[*b]));
        space.inner().iter().filter(|point| best(learner.values(&space, point)) == Some(UP)).count()
    };
    let settings =
        AnnealQSettings::of(2000).parse("moves=prime,rate=1,starts=1000,every=1,explore=1,least=1");
    let mut learner = AnnealQ::new(settings.expect("the settings are right"), 1);
    let before = right(&mut learner);
    run(&mut learner, &space, Ladder::verdict, 2000, 100);
    let after = right(&mut learner);
    assert!(before < 80 && after > 150, "{before} {after}");
}
