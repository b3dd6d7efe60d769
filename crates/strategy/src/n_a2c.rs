//! N-A2C: short walks from the best point, led by an actor that a critic trains.

use crate::net::{Net, Optimiser, softmax};
use crate::space::{self, Moves, Point, Space};
use crate::unseen::Unseen;
use crate::{Draw, Field, Settings, Strategy, Verdict};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// The number of walks without a new point after which walks become longer.
const IDLE: usize = 20;

/// Walks longer than that give way to random points.
const LONGEST: usize = 100;

/// The settings of [`NA2c`]. The paper gives only the steps; the other numbers are those of the public code (NNI) where
/// it has them.
#[derive(Clone, Debug, PartialEq)]
pub struct NA2cSettings {
    /// T: the steps of a walk.
    pub steps: usize,
    /// The number of new points in a batch (NNI).
    pub batch: usize,
    /// The probability of a random step, without the actor; 1 - tau of the paper (NNI).
    pub explore: f64,
    /// The width of the hidden layer (NNI).
    pub hidden: usize,
    /// Adam's rate (NNI).
    pub rate: f64,
    /// The weight of the critic's value of the next point. NNI's is 0: only the reward counts.
    pub discount: f64,
    /// The number of latest steps kept for training (ours).
    pub memory: usize,
    /// The number of updates of the networks after a batch (ours).
    pub updates: usize,
    /// The number of steps from memory in each update (ours).
    pub samples: usize,
    /// The set of neighbours.
    pub moves: Moves,
}

impl Default for NA2cSettings {
    fn default() -> NA2cSettings {
        NA2cSettings {
            steps: 3,
            batch: 6,
            explore: 0.1,
            hidden: 128,
            rate: 0.001,
            discount: 0.0,
            memory: 1000,
            updates: 1,
            samples: 32,
            moves: Moves::Double,
        }
    }
}

impl Settings for NA2cSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::count("steps", &mut self.steps, 1..=LONGEST),
            Field::count("batch", &mut self.batch, 1..=10_000),
            Field::real("explore", &mut self.explore, 0.0..=1.0),
            Field::count("hidden", &mut self.hidden, 1..=4096),
            Field::real("rate", &mut self.rate, 0.0..=1.0),
            Field::real("discount", &mut self.discount, 0.0..=0.999),
            Field::count("memory", &mut self.memory, 1..=1_000_000),
            Field::count("updates", &mut self.updates, 0..=10_000),
            Field::count("samples", &mut self.samples, 1..=10_000),
            Field::word("moves", &mut self.moves),
        ]
    }
}

/// Neighbourhood actor-critic. Walks of `steps` steps start at the best point so far, at first the origin of template 0; a
/// step follows the actor or, with probability `explore`, is random. New legal points on the way make a batch. The
/// networks then learn from the latest `memory` steps whose ends are known, with 1 / time as the reward, scaled so
/// that the best point gives 1. Where no new point is found, walks become longer, then points are random.
///
/// Loss: `-log(pi) * advantage + advantage^2`, where the first advantage is a constant. The public code has the other
/// sign on the first term, which makes good steps rarer. Walks pass through refused points, which are not asked for; a
/// step to a point without a time has reward 0. Steps without a destination are never taken.
pub struct NA2c {
    settings: NA2cSettings,
    seed: u64,
    draw: Draw,
    unseen: Unseen,
    /// The times of all points that were seen; `None` if they were refused or failed.
    times: HashMap<Point, Option<f64>>,
    best: Option<(f64, Point)>,
    /// Steps of walks whose ends are not known yet.
    walked: Vec<Move>,
    memory: ReplayMemory,
    learners: BTreeMap<u16, Learner>,
}

#[derive(Clone)]
struct Move {
    from: Point,
    direction: usize,
    to: Point,
}

/// The latest steps, without duplicates.
#[derive(Default)]
struct ReplayMemory {
    moves: VecDeque<Move>,
    kept: HashSet<(Point, usize)>,
}

impl ReplayMemory {
    fn keep(&mut self, step: Move, most: usize) {
        if self.kept.insert((step.from.clone(), step.direction)) {
            self.moves.push_back(step);
        }
        while self.moves.len() > most {
            let old = self.moves.pop_front();
            old.map(|old| self.kept.remove(&(old.from, old.direction)));
        }
    }
}

/// Actor and critic of a template: one hidden layer for both, an output per direction, and the value.
struct Learner {
    net: Net,
    optimiser: Optimiser,
}

impl NA2c {
    /// A run with a seed.
    pub fn new(settings: NA2cSettings, seed: u64) -> NA2c {
        NA2c {
            settings,
            seed,
            draw: Draw::new(seed),
            unseen: Unseen::default(),
            times: HashMap::new(),
            best: None,
            walked: Vec::new(),
            memory: ReplayMemory::default(),
            learners: BTreeMap::new(),
        }
    }

    /// The neighbours of a point, each with the number of its direction and the probability that the actor chooses it.
    pub fn policy(&mut self, space: &dyn Space, point: &Point) -> Vec<(usize, Point, f32)> {
        let near = self.settings.moves.neighbours(space, point);
        let output = self.learner(space, point.template).net.output(&space::inputs(space, point));
        let scores: Vec<f32> = near.iter().map(|(direction, _)| output[*direction]).collect();
        near.into_iter()
            .zip(softmax(&scores))
            .map(|((direction, to), share)| (direction, to, share))
            .collect()
    }

    fn learner(&mut self, space: &dyn Space, template: u16) -> &Learner {
        let (settings, draw) = (&self.settings, &mut self.draw);
        self.learners.entry(template).or_insert_with(|| {
            let inputs = space::inputs(space, &space.origin(template)).len();
            let outputs = settings.moves.directions(space, template).len() + 1;
            let net = Net::new(&[inputs, settings.hidden, outputs], draw);
            Learner { net, optimiser: Optimiser::adam(settings.rate as f32) }
        })
    }

    /// A walk; its legal new points join the batch.
    fn walk(&mut self, space: &dyn Space, steps: usize, batch: &mut Vec<Point>, most: usize) {
        let Some((_, start)) = &self.best else { return };
        let mut here = start.clone();
        for _ in 0..steps {
            let policy = self.policy(space, &here);
            let explore = self.draw.chance(self.settings.explore);
            let weight = |share: f32| if explore { 1.0 } else { f64::from(share) };
            let weights: Vec<f64> = policy.iter().map(|(.., share)| weight(*share)).collect();
            let Some(at) = self.draw.roulette(&weights) else { return };
            let (direction, to, _) = policy[at].clone();
            if self.unseen.see(&to) {
                if space.refusal(&to).is_some() {
                    self.times.insert(to.clone(), None);
                } else {
                    batch.push(to.clone());
                }
            }
            self.walked.push(Move { from: here, direction, to: to.clone() });
            here = to;
            if batch.len() == most {
                return;
            }
        }
    }

    /// The reward of a step to a point, from 0 to 1.
    fn reward(&self, to: &Point) -> f32 {
        let time = self.times.get(to).copied().flatten();
        let best = self.best.as_ref().map(|(best, _)| *best);
        time.zip(best).map_or(0.0, |(time, best)| (best / time) as f32)
    }

    fn train(&mut self, space: &dyn Space) {
        if self.memory.moves.is_empty() {
            return;
        }
        for _ in 0..self.settings.updates {
            let mut gradients: BTreeMap<u16, Vec<f32>> = BTreeMap::new();
            for _ in 0..self.settings.samples {
                let step = self.memory.moves[self.draw.position(self.memory.moves.len())].clone();
                self.learn(space, &step, &mut gradients);
            }
            for (template, mut gradient) in gradients {
                let share = 1.0 / self.settings.samples as f32;
                gradient.iter_mut().for_each(|slope| *slope *= share);
                if let Some(learner) = self.learners.get_mut(&template) {
                    learner.optimiser.step(learner.net.values(), &gradient);
                }
            }
        }
    }

    /// Adds the derivatives of the loss of one step.
    fn learn(&mut self, space: &dyn Space, step: &Move, gradients: &mut BTreeMap<u16, Vec<f32>>) {
        let mut wanted = self.reward(&step.to);
        if self.settings.discount > 0.0 {
            let output = self.learner(space, step.to.template).net.output(&space::inputs(space, &step.to));
            wanted += self.settings.discount as f32 * output.last().copied().unwrap_or(0.0);
        }
        let near = self.settings.moves.neighbours(space, &step.from);
        let net = &self.learner(space, step.from.template).net;
        let levels = net.forward(&space::inputs(space, &step.from));
        let output = &levels[levels.len() - 1];
        let value = output.len() - 1;
        let advantage = wanted - output[value];
        let scores: Vec<f32> = near.iter().map(|(direction, _)| output[*direction]).collect();
        let mut slopes = vec![0.0; output.len()];
        for ((direction, _), share) in near.iter().zip(softmax(&scores)) {
            let taken = if *direction == step.direction { 1.0 } else { 0.0 };
            slopes[*direction] = advantage * (share - taken);
        }
        slopes[value] = -2.0 * advantage;
        let gradient = gradients.entry(step.from.template).or_insert_with(|| net.gradient());
        net.backward(&levels, &slopes, gradient);
    }
}

impl Strategy for NA2c {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        let origin = space.origin(0);
        if self.unseen.see(&origin) {
            return vec![origin];
        }
        let most = self.settings.batch.min(most);
        let mut batch = Vec::new();
        let (mut steps, mut idle) = (self.settings.steps, 0);
        while batch.len() < most && steps <= LONGEST && self.best.is_some() {
            let before = batch.len();
            self.walk(space, steps, &mut batch, most);
            idle = if batch.len() > before { 0 } else { idle + 1 };
            if idle == IDLE {
                (steps, idle) = (2 * steps, 0);
            }
        }
        while batch.len() < most {
            let Some(point) = self.unseen.draw(space, &mut self.draw) else { break };
            batch.push(point);
        }
        batch
    }

    fn tell(&mut self, space: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, verdict) in results {
            self.unseen.see(point);
            let time = if let Verdict::Time(time) = verdict { Some(*time) } else { None };
            self.times.insert(point.clone(), time);
            if let Some(time) = time.filter(|time| self.best.as_ref().is_none_or(|(best, _)| time < best)) {
                self.best = Some((time, point.clone()));
            }
        }
        for step in std::mem::take(&mut self.walked) {
            if self.times.contains_key(&step.to) {
                self.memory.keep(step, self.settings.memory);
            }
        }
        self.train(space);
    }

    fn key(&self) -> String {
        format!("n-a2c {} seed={}", self.settings.text(), self.seed)
    }
}
