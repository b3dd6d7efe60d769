//! The values of directions, learned from steps.

use super::AnnealQSettings;
use crate::Draw;
use crate::net::{Net, Optimiser};
use crate::space::{self, Point, Space};
use std::collections::BTreeMap;

/// A step and its result.
#[derive(Clone)]
pub(super) struct Move {
    pub from: Point,
    pub direction: usize,
    pub to: Point,
    pub reward: f32,
}

/// A network for each template, and all steps.
pub(super) struct Learner {
    settings: AnnealQSettings,
    moves: Vec<Move>,
    nets: BTreeMap<u16, Nets>,
}

/// The trained network, and a copy that estimates the values after a step; it is updated after training.
struct Nets {
    online: Net,
    target: Net,
    optimiser: Optimiser,
}

impl Learner {
    pub fn new(settings: AnnealQSettings) -> Learner {
        Learner { settings, moves: Vec::new(), nets: BTreeMap::new() }
    }

    pub fn keep(&mut self, step: Move) {
        self.moves.push(step);
    }

    /// The values of all directions from a point.
    pub fn values(&mut self, space: &dyn Space, point: &Point, draw: &mut Draw) -> Vec<f32> {
        self.nets(space, point.template, draw).online.output(&space::inputs(space, point))
    }

    fn nets(&mut self, space: &dyn Space, template: u16, draw: &mut Draw) -> &mut Nets {
        let settings = &self.settings;
        self.nets.entry(template).or_insert_with(|| {
            let inputs = space::inputs(space, &space.origin(template)).len();
            let outputs = settings.moves.directions(space, template).len();
            let hidden = settings.hidden;
            let online = Net::new(&[inputs, hidden, hidden, hidden, outputs], draw);
            Nets { target: online.clone(), online, optimiser: Optimiser::ada_delta(settings.rate as f32) }
        })
    }

    /// Trains on random steps, in batches, some epochs long.
    pub fn train(&mut self, space: &dyn Space, draw: &mut Draw) {
        let mut numbers: Vec<usize> = (0..self.moves.len()).collect();
        draw.shuffle(&mut numbers);
        numbers.truncate(self.settings.samples);
        let lessons: Vec<Lesson> = numbers.iter().map(|&number| self.lesson(space, number, draw)).collect();
        let mut order: Vec<usize> = (0..lessons.len()).collect();
        for _ in 0..self.settings.epochs {
            draw.shuffle(&mut order);
            for batch in order.chunks(self.settings.batch) {
                self.learn(batch.iter().map(|&at| &lessons[at]));
            }
        }
        for nets in self.nets.values_mut() {
            nets.target = nets.online.clone();
        }
    }

    /// The target of a step: its reward, plus the discounted value of the best direction after it.
    fn lesson(&mut self, space: &dyn Space, number: usize, draw: &mut Draw) -> Lesson {
        let Move { from, direction, to, reward } = self.moves[number].clone();
        let next = self.nets(space, to.template, draw).target.output(&space::inputs(space, &to));
        let near = self.settings.moves.neighbours(space, &to);
        let best = near.iter().map(|(direction, _)| next[*direction]).reduce(f32::max).unwrap_or(0.0);
        let value = reward + self.settings.discount as f32 * best;
        self.nets(space, from.template, draw);
        Lesson { template: from.template, inputs: space::inputs(space, &from), direction, value }
    }

    fn learn<'a>(&mut self, batch: impl ExactSizeIterator<Item = &'a Lesson>) {
        let share = 1.0 / batch.len() as f32;
        let mut gradients: BTreeMap<u16, Vec<f32>> = BTreeMap::new();
        for lesson in batch {
            let Some(Nets { online, .. }) = self.nets.get(&lesson.template) else { continue };
            let levels = online.forward(&lesson.inputs);
            let output = &levels[levels.len() - 1];
            let mut slopes = vec![0.0; output.len()];
            slopes[lesson.direction] = 2.0 * share * (output[lesson.direction] - lesson.value);
            let gradient = gradients.entry(lesson.template).or_insert_with(|| online.gradient());
            online.backward(&levels, &slopes, gradient);
        }
        for (template, gradient) in gradients {
            if let Some(nets) = self.nets.get_mut(&template) {
                nets.optimiser.step(nets.online.values(), &gradient);
            }
        }
    }
}

/// An input of a network and the value that one of its outputs should have.
struct Lesson {
    template: u16,
    inputs: Vec<f32>,
    direction: usize,
    value: f32,
}
