//! FlexTensor's search: starts chosen by annealing, directions by Q-learning (Q-method), or all of them (P-method).

use crate::maths;
use crate::settings::Word;
use crate::space::{Moves, Point, Space};
use crate::unseen::Unseen;
use crate::{Draw, Field, Settings, Strategy, Verdict};
use learner::{Learner, Move};
use std::collections::{BTreeMap, VecDeque};

mod learner;

/// The most refused points that a step may pass through.
const THROUGH: usize = 16;

/// The choice of directions from a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// One direction, by Q-learning.
    Q,
    /// All directions.
    P,
}

impl Word for Method {
    fn words(&self) -> &'static [&'static str] {
        &["q", "p"]
    }

    fn word(&self) -> &'static str {
        if *self == Method::Q { "q" } else { "p" }
    }

    fn set(&mut self, word: &str) -> bool {
        *self = if word == "p" { Method::P } else { Method::Q };
        self.words().contains(&word)
    }
}

/// The settings of [`AnnealQ`].
#[derive(Clone, Debug, PartialEq)]
pub struct AnnealQSettings {
    /// One direction or all.
    pub method: Method,
    /// The number of random points at the start. The code has 200.
    pub warmup: usize,
    /// The number of starts in a round (ours).
    pub starts: usize,
    /// g: the penalty on slow starts (code).
    pub gamma: f64,
    /// The probability of a random direction in the first round (code).
    pub explore: f64,
    /// The decay of this probability: a factor of e to the power of minus this, each round (code).
    pub cool: f64,
    /// Its lower limit (code).
    pub least: f64,
    /// a: the weight of the next step's value (paper).
    pub discount: f64,
    /// The width of the three hidden layers (code; the paper has four layers in all).
    pub hidden: usize,
    /// AdaDelta's rate (code).
    pub rate: f64,
    /// The number of rounds between trainings, "trials" in the paper.
    pub every: usize,
    /// The number of passes of a training over its steps (code).
    pub epochs: usize,
    /// The most steps in a training (code).
    pub samples: usize,
    /// The number of steps in a batch (code).
    pub batch: usize,
    /// The upper limit of rewards (ours).
    pub clip: f64,
    /// The set of neighbours.
    pub moves: Moves,
}

impl AnnealQSettings {
    /// The paper's settings, and the public code's where the paper has none; a tenth of the trials, at most 200, are
    /// random points at the start.
    pub fn of(trials: usize) -> AnnealQSettings {
        AnnealQSettings {
            method: Method::Q,
            warmup: (trials / 10).clamp(1, 200),
            starts: 4,
            gamma: 0.5,
            explore: 0.8,
            cool: 0.01,
            least: 0.1,
            discount: 0.9,
            hidden: 64,
            rate: 0.02,
            every: 5,
            epochs: 20,
            samples: 1000,
            batch: 32,
            clip: 4.0,
            moves: Moves::Divisor,
        }
    }
}

impl Settings for AnnealQSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::word("method", &mut self.method),
            Field::count("warmup", &mut self.warmup, 1..=10_000),
            Field::count("starts", &mut self.starts, 1..=10_000),
            Field::real("gamma", &mut self.gamma, 0.0..=100.0),
            Field::real("explore", &mut self.explore, 0.0..=1.0),
            Field::real("cool", &mut self.cool, 0.0..=100.0),
            Field::real("least", &mut self.least, 0.0..=1.0),
            Field::real("discount", &mut self.discount, 0.0..=0.999),
            Field::count("hidden", &mut self.hidden, 1..=4096),
            Field::real("rate", &mut self.rate, 0.0..=10.0),
            Field::count("every", &mut self.every, 1..=10_000),
            Field::count("epochs", &mut self.epochs, 0..=10_000),
            Field::count("samples", &mut self.samples, 1..=1_000_000),
            Field::count("batch", &mut self.batch, 1..=10_000),
            Field::real("clip", &mut self.clip, 0.0..=1e6),
            Field::word("moves", &mut self.moves),
        ]
    }
}

/// FlexTensor's search. Random points come first, then rounds. A round goes through the measured points from the
/// fastest on; each becomes a start with probability `exp(-gamma * (E* - E) / E*)`, where `E` is 1 / time and `E*` the
/// best, until there are enough. Each start makes one step, in the direction with the highest value among those that
/// lead to unseen points, or in a random one; with `method=p` in all directions. No point is visited twice.
///
/// Choices between paper and public code: the reward is the paper's, `(E' - E) / E`; the code's is never negative and
/// almost 0 for fast kernels. The loss is on the value of the start of a step, as in the code; the paper prints its
/// end. Training comes every five rounds, as in the paper. A start makes one step in a round; the code makes one on
/// each axis. All measured points can become starts, as in the paper.
///
/// A step to a refused point has reward -1 and continues from there, up to 16 times, until it reaches a legal point,
/// whose gain is relative to the start. The points in between are not asked for.
pub struct AnnealQ {
    settings: AnnealQSettings,
    seed: u64,
    draw: Draw,
    unseen: Unseen,
    round: usize,
    /// All points with a time, the fastest first.
    measured: Vec<Start>,
    waiting: VecDeque<Point>,
    /// The last steps to points without a verdict, with the start's time.
    open: BTreeMap<Point, (f64, Point, usize)>,
    learner: Learner,
}

#[derive(Clone)]
struct Start {
    time: f64,
    point: Point,
    /// Whether all neighbours were seen.
    spent: bool,
}

impl AnnealQ {
    /// A run with a seed.
    pub fn new(settings: AnnealQSettings, seed: u64) -> AnnealQ {
        AnnealQ {
            learner: Learner::new(settings.clone()),
            settings,
            seed,
            draw: Draw::new(seed),
            unseen: Unseen::default(),
            round: 0,
            measured: Vec::new(),
            waiting: VecDeque::new(),
            open: BTreeMap::new(),
        }
    }

    /// The value of each direction from a point, as the network has learned it.
    pub fn values(&mut self, space: &dyn Space, point: &Point) -> Vec<f32> {
        self.learner.values(space, point, &mut self.draw)
    }

    fn warm_up(&mut self, space: &dyn Space) {
        for _ in 0..self.settings.warmup {
            self.waiting.extend(self.unseen.draw(space, &mut self.draw));
        }
    }

    /// A round of steps; further rounds until one leads to a legal point.
    fn go(&mut self, space: &dyn Space) {
        self.round += 1;
        while self.waiting.is_empty() && self.measured.iter().any(|start| !start.spent) {
            for at in self.starts() {
                let start = self.measured[at].clone();
                self.measured[at].spent = !self.step(space, &start);
            }
        }
        if self.waiting.is_empty() {
            self.waiting.extend(self.unseen.draw(space, &mut self.draw));
        }
    }

    /// Starts, chosen from the measured points by annealing.
    fn starts(&mut self) -> Vec<usize> {
        let best = self.measured.first().map_or(0.0, |start| start.time);
        let mut starts = Vec::new();
        for (at, start) in self.measured.iter().enumerate().filter(|(_, start)| !start.spent) {
            let share = maths::exp(-self.settings.gamma * (1.0 - best / start.time));
            if starts.len() < self.settings.starts && self.draw.chance(share) {
                starts.push(at);
            }
        }
        starts
    }

    /// Steps from a start; false if all its neighbours were seen.
    fn step(&mut self, space: &dyn Space, start: &Start) -> bool {
        let near = self.unseen.neighbours(space, self.settings.moves, &start.point);
        let first: Vec<(usize, Point)> = match self.settings.method {
            Method::Q => self.choose(space, &start.point, near).into_iter().collect(),
            Method::P => near,
        };
        let any = !first.is_empty();
        for (direction, to) in first {
            self.reach(space, start, direction, to);
        }
        any
    }

    /// Goes to a point, and through it if it is refused.
    fn reach(&mut self, space: &dyn Space, start: &Start, mut direction: usize, mut to: Point) {
        let mut from = start.point.clone();
        for _ in 0..THROUGH {
            if !self.unseen.see(&to) {
                return;
            }
            if space.refusal(&to).is_none() {
                self.open.insert(to.clone(), (start.time, from, direction));
                self.waiting.push_back(to);
                return;
            }
            self.learner.keep(Move { from, direction, to: to.clone(), reward: -1.0 });
            let near = self.unseen.neighbours(space, self.settings.moves, &to);
            let Some((next, beyond)) = self.choose(space, &to, near) else { return };
            (from, direction, to) = (to, next, beyond);
        }
    }

    fn choose(
        &mut self,
        space: &dyn Space,
        from: &Point,
        mut near: Vec<(usize, Point)>,
    ) -> Option<(usize, Point)> {
        if near.is_empty() {
            return None;
        }
        let settings = &self.settings;
        let explore = (settings.explore * maths::exp(-settings.cool * self.round as f64)).max(settings.least);
        if settings.method == Method::P || self.draw.chance(explore) {
            return Some(near.swap_remove(self.draw.position(near.len())));
        }
        let values = self.values(space, from);
        near.into_iter().reduce(|best, other| if values[other.0] > values[best.0] { other } else { best })
    }
}

impl Strategy for AnnealQ {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        if self.waiting.is_empty() {
            if self.measured.is_empty() {
                self.warm_up(space);
            } else {
                self.go(space);
            }
        }
        self.waiting.drain(..most.min(self.waiting.len())).collect()
    }

    fn tell(&mut self, space: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, verdict) in results {
            self.unseen.see(point);
            let time = if let Verdict::Time(time) = verdict { Some(*time) } else { None };
            if let Some((before, from, direction)) = self.open.remove(point) {
                let reward = time.map_or(-1.0, |time| (before / time - 1.0).min(self.settings.clip));
                self.learner.keep(Move { from, direction, to: point.clone(), reward: reward as f32 });
            }
            if let Some(time) = time {
                let at = self.measured.partition_point(|other| other.time <= time);
                self.measured.insert(at, Start { time, point: point.clone(), spent: false });
            }
        }
        let trains = self.settings.method == Method::Q
            && self.round > 0
            && self.round.is_multiple_of(self.settings.every);
        if trains && self.waiting.is_empty() {
            self.learner.train(space, &mut self.draw);
        }
    }

    fn key(&self) -> String {
        format!("anneal-q {} seed={}", self.settings.text(), self.seed)
    }
}
