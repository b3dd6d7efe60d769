//! The cost model as a strategy: asks for the points with the best predicted times.

use std::collections::HashSet;

use warploom_cost::{CostModel, Featurizer};
use warploom_schedule::Schedule;
use warploom_search::points::{Schedules, Template};
use warploom_strategy::space::random_legal;
use warploom_strategy::{Draw, Field, Moves, Point, Settings, Space, Strategy, Verdict};

use super::MODEL_FIXED;

/// The most draws of a random point until one is legal.
const TRIES: usize = 1000;

/// A space whose points are schedules.
pub(crate) trait Built: Space {
    /// The schedule of a point; `None` if it is refused.
    fn built(&self, point: &Point) -> Option<Schedule>;

    /// The templates, in the order of their numbers.
    fn made_of(&self) -> &[Template];
}

impl Built for Schedules {
    fn built(&self, point: &Point) -> Option<Schedule> {
        self.schedule(point).ok()
    }

    fn made_of(&self) -> &[Template] {
        self.all()
    }
}

/// The settings of [`ModelFixed`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelFixedSettings {
    /// Random points that are drawn before each batch.
    pool: usize,
    /// The fastest points whose neighbours are ranked too.
    parents: usize,
    /// Points that are asked for at a time.
    batch: usize,
}

impl Default for ModelFixedSettings {
    fn default() -> ModelFixedSettings {
        ModelFixedSettings { pool: 256, parents: 4, batch: 16 }
    }
}

impl Settings for ModelFixedSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::count("pool", &mut self.pool, 1..=100_000),
            Field::count("parents", &mut self.parents, 0..=1000),
            Field::count("batch", &mut self.batch, 1..=1000),
        ]
    }
}

/// Ranks random legal points of all templates, their origins and the neighbours of the fastest points so far by
/// predicted time, and asks for the best ones that it has not asked for yet. Points with the same schedule count once.
/// The model does not learn.
pub(super) struct ModelFixed<'a> {
    settings: ModelFixedSettings,
    seed: u64,
    draw: Draw,
    space: &'a dyn Built,
    model: &'a dyn CostModel,
    /// One per template, because each may have its own rewritten pipeline.
    featurizers: Vec<Featurizer>,
    seen: HashSet<Schedule>,
    /// Ranked points that were not asked for yet, with their predicted times, best first.
    pool: Vec<(f64, Point)>,
    /// The fastest points, with their times.
    best: Vec<(f64, Point)>,
}

impl<'a> ModelFixed<'a> {
    pub fn new(
        settings: ModelFixedSettings,
        seed: u64,
        space: &'a dyn Built,
        model: &'a dyn CostModel,
    ) -> ModelFixed<'a> {
        let featurizers =
            space.made_of().iter().map(|template| Featurizer::new(template.problem())).collect();
        let (seen, pool, best) = (HashSet::new(), Vec::new(), Vec::new());
        ModelFixed { settings, seed, draw: Draw::new(seed), space, model, featurizers, seen, pool, best }
    }

    /// Adds a point to the pool, if it is legal and new.
    fn rank(&mut self, point: Point) {
        let Some(schedule) = self.space.built(&point) else { return };
        if self.seen.contains(&schedule) {
            return;
        }
        if let Some(featurizer) = self.featurizers.get(usize::from(point.template)) {
            let predicted_us = featurizer.cost(&schedule, self.model);
            self.seen.insert(schedule);
            self.pool.push((predicted_us, point));
        }
    }

    /// `watched` is the same space, and counts the points that it refuses.
    fn refill(&mut self, watched: &dyn Space) {
        for template in 0..self.space.made_of().len() {
            self.rank(self.space.origin(template as u16));
        }
        for (_, parent) in self.best.clone() {
            let near = Moves::Prime.neighbours(self.space, &parent).into_iter().map(|(_, point)| point);
            near.filter(|point| watched.refusal(point).is_none()).for_each(|point| self.rank(point));
        }
        for _ in 0..self.settings.pool {
            let Some(point) = random_legal(watched, &mut self.draw, TRIES) else { break };
            self.rank(point);
        }
        self.pool.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    }
}

impl Strategy for ModelFixed<'_> {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        self.refill(space);
        let batch = self.settings.batch.min(most).min(self.pool.len());
        self.pool.drain(..batch).map(|(_, point)| point).collect()
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, verdict) in results {
            if let Verdict::Time(time) = verdict {
                self.best.push((*time, point.clone()));
            }
        }
        self.best.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.best.truncate(self.settings.parents);
    }

    fn key(&self) -> String {
        format!("{MODEL_FIXED} {} model={} seed={}", self.settings.text(), self.model.name(), self.seed)
    }
}
