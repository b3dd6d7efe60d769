//! OpEvo: evolution in which children take each parameter from one of the best points and walk on from there.

use crate::space::{self, Point, Space};
use crate::unseen::{TRIES, Unseen};
use crate::{Draw, Field, Settings, Strategy, Verdict};
use std::collections::VecDeque;

/// The settings of [`OpEvo`].
#[derive(Clone, Debug, PartialEq)]
pub struct OpEvoSettings {
    /// L: the number of best points that have children, and of random points at the start.
    pub parents: usize,
    /// R: the number of children bred at a time.
    pub children: usize,
    /// Each parameter of a child walks on with this probability, and again after every step.
    pub q: f64,
    /// The probability that a child starts from the origin of another template. The paper has one template.
    pub hop: f64,
}

impl OpEvoSettings {
    /// The paper's settings, with fewer parents and children if 8 are more than a tenth of the trials.
    pub fn of(trials: usize) -> OpEvoSettings {
        let few = (trials / 10).clamp(2, 8);
        OpEvoSettings { parents: few, children: few, q: 0.5, hop: 0.1 }
    }
}

impl Settings for OpEvoSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::count("parents", &mut self.parents, 1..=10_000),
            Field::count("children", &mut self.children, 1..=10_000),
            Field::real("q", &mut self.q, 0.0..=0.99),
            Field::real("hop", &mut self.hop, 0.0..=1.0),
        ]
    }
}

/// Evolution as in the OpEvo paper. First come `parents` random points. Then each of `children` children takes each
/// parameter from one of the best `parents` points, chosen for each parameter in proportion to 1 / time, and every
/// parameter makes an independent q-random walk.
///
/// A child that is refused or was seen repeats its walks from where it was bred; after 1,000 failures it is replaced by
/// a random point. A batch is bred when all verdicts on the last one are known, as in the paper; the public code breeds
/// when any result comes in. If nothing has run yet, children are random, as in the code.
pub struct OpEvo {
    settings: OpEvoSettings,
    seed: u64,
    draw: Draw,
    unseen: Unseen,
    started: bool,
    /// Points that were bred and not asked for yet.
    waiting: VecDeque<Point>,
    /// The best points by time, at most `parents`. Nothing else of the paper's queue is ever used.
    best: Vec<(f64, Point)>,
}

impl OpEvo {
    /// A run with a seed.
    pub fn new(settings: OpEvoSettings, seed: u64) -> OpEvo {
        let (waiting, best) = (VecDeque::new(), Vec::new());
        OpEvo {
            settings,
            seed,
            draw: Draw::new(seed),
            unseen: Unseen::default(),
            started: false,
            waiting,
            best,
        }
    }

    /// The current parents with their times, fastest first.
    pub fn parents(&self) -> &[(f64, Point)] {
        &self.best
    }

    fn breed(&mut self, space: &dyn Space) {
        let many = if self.started { self.settings.children } else { self.settings.parents };
        self.started = true;
        for _ in 0..many {
            let child = self.child(space).or_else(|| self.unseen.draw(space, &mut self.draw));
            self.waiting.extend(child);
        }
    }

    fn child(&mut self, space: &dyn Space) -> Option<Point> {
        let parents: Vec<(&Point, f64)> = self.best.iter().map(|(time, point)| (point, 1.0 / time)).collect();
        let mut bred = space::cross(&parents, &mut self.draw)?;
        if space.templates() > 1 && self.draw.chance(self.settings.hop) {
            let other = (usize::from(bred.template) + 1 + self.draw.position(space.templates() - 1))
                % space.templates();
            bred = space.origin(other as u16);
        }
        let mut walks = (0..TRIES).map(|_| space::walk(space, &bred, self.settings.q, &mut self.draw));
        let child = walks.find(|child| self.unseen.open(space, child))?;
        self.unseen.see(&child);
        Some(child)
    }
}

impl Strategy for OpEvo {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        if self.waiting.is_empty() {
            self.breed(space);
        }
        self.waiting.drain(..most.min(self.waiting.len())).collect()
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, verdict) in results {
            self.unseen.see(point);
            if let Verdict::Time(time) = verdict {
                let at = self.best.partition_point(|(other, _)| other <= time);
                self.best.insert(at, (*time, point.clone()));
                self.best.truncate(self.settings.parents);
            }
        }
    }

    fn key(&self) -> String {
        format!("opevo {} seed={}", self.settings.text(), self.seed)
    }
}
