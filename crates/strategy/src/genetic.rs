//! The genetic search of Tensor Comprehensions: generations with elites, children of three parents and mutation.

use crate::space::{self, Point, Space};
use crate::unseen::{TRIES, Unseen};
use crate::{Draw, Error, Field, Settings, Strategy, Verdict};
use std::collections::HashMap;

/// The number of consecutive generations without a new point after which random ones are added.
const STALE: usize = 20;

/// The settings of [`Genetic`].
#[derive(Clone, Debug, PartialEq)]
pub struct GeneticSettings {
    /// The number of points in a generation.
    pub population: usize,
    /// The number of best points that pass into the next generation unchanged.
    pub elites: usize,
    /// The probability of a child; otherwise a point passes, and is mutated.
    pub crossover: f64,
    /// The probability that a parameter of a point that is not an elite is drawn anew.
    pub mutation: f64,
    /// The number of templates with their origin in the first generation.
    pub seeds: usize,
}

impl GeneticSettings {
    /// The settings of the public code, whose population is also the paper's, but with a population of a tenth of the
    /// trials if that is less than 100. A tenth of the population are elites.
    pub fn of(trials: usize) -> GeneticSettings {
        let population = (trials / 10).clamp(4, 100);
        let elites = (population / 10).max(1);
        GeneticSettings { population, elites, crossover: 0.8, mutation: 0.07, seeds: 1 }
    }
}

impl Settings for GeneticSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![
            Field::count("population", &mut self.population, 4..=10_000),
            Field::count("elites", &mut self.elites, 0..=9_999),
            Field::real("crossover", &mut self.crossover, 0.0..=1.0),
            Field::real("mutation", &mut self.mutation, 0.0..=1.0),
            Field::count("seeds", &mut self.seeds, 0..=10_000),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        if self.elites < self.population {
            return Ok(());
        }
        let expected = format!("less than the population, {}", self.population);
        Err(Error::Value { name: "elites".to_owned(), value: self.elites.to_string(), expected })
    }
}

/// Evolution as in the Tensor Comprehensions paper. Points are chosen in proportion to 1 / time. With probability
/// `crossover` a new point takes each parameter from one of three chosen points, otherwise it is a chosen one; then
/// each of its parameters is drawn anew with probability `mutation`. Elites are unchanged. Both steps are repeated up
/// to 1,000 times until the point is legal. If fewer than three points of a generation ran, the next one is random
/// except for the best.
///
/// The public code breeds only to replace points that did not run, so there are no children if all did. This follows
/// the paper. A point that was measured before keeps its time and is not asked for again.
pub struct Genetic {
    settings: GeneticSettings,
    seed: u64,
    draw: Draw,
    unseen: Unseen,
    generation: Vec<Point>,
    /// The number of points of the generation that are known or asked for.
    asked: usize,
    /// 1 / time of all points with a verdict, 0 for those without a time.
    fitness: HashMap<Point, f64>,
    best: Option<(f64, Point)>,
}

impl Genetic {
    /// A run with a seed.
    pub fn new(settings: GeneticSettings, seed: u64) -> Genetic {
        let (generation, fitness) = (Vec::new(), HashMap::new());
        let (draw, unseen) = (Draw::new(seed), Unseen::default());
        Genetic { settings, seed, draw, unseen, generation, asked: 0, fitness, best: None }
    }

    /// The points of the current generation, the elites first.
    pub fn generation(&self) -> &[Point] {
        &self.generation
    }

    /// The points that pass into the next generation unchanged, best first.
    pub fn elites(&self) -> Vec<Point> {
        let mut ranked: Vec<(f64, &Point)> = self.fit();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut elites: Vec<Point> = Vec::new();
        for (_, point) in ranked {
            if elites.len() < self.settings.elites && !elites.contains(point) {
                elites.push(point.clone());
            }
        }
        elites
    }

    /// The points of the generation that ran, with their fitness.
    fn fit(&self) -> Vec<(f64, &Point)> {
        let fitness = |point| self.fitness.get(point).copied().unwrap_or(0.0);
        self.generation
            .iter()
            .map(|point| (fitness(point), point))
            .filter(|(fitness, _)| *fitness > 0.0)
            .collect()
    }

    fn first(&mut self, space: &dyn Space) -> Vec<Point> {
        let seeds = self.settings.seeds.min(space.templates()).min(self.settings.population);
        let mut generation: Vec<Point> = (0..seeds).map(|template| space.origin(template as u16)).collect();
        generation.retain(|origin| self.unseen.see(origin));
        generation
    }

    fn next(&mut self, space: &dyn Space) -> Vec<Point> {
        let fit: Vec<(f64, Point)> =
            self.fit().into_iter().map(|(fitness, point)| (fitness, point.clone())).collect();
        if fit.len() < 3 {
            return self.best.iter().map(|(_, point)| point.clone()).collect();
        }
        let weights: Vec<f64> = fit.iter().map(|(fitness, _)| *fitness).collect();
        let mut next = self.elites();
        while next.len() < self.settings.population {
            let bred = self.breed(space, &fit, &weights);
            next.push(self.mutate(space, bred));
        }
        next
    }

    fn breed(&mut self, space: &dyn Space, fit: &[(f64, Point)], weights: &[f64]) -> Point {
        let draw = &mut self.draw;
        let mut parent = || &fit[draw.roulette(weights).unwrap_or(0)].1;
        let parents = [parent(), parent(), parent()].map(|point| (point, 1.0));
        let child = if self.draw.chance(self.settings.crossover) {
            let mut children = (0..TRIES).filter_map(|_| space::cross(&parents, &mut self.draw));
            children.find(|child| self.fitness.contains_key(child) || space.refusal(child).is_none())
        } else {
            None
        };
        child.unwrap_or_else(|| parents[0].0.clone())
    }

    fn mutate(&mut self, space: &dyn Space, point: Point) -> Point {
        for _ in 0..TRIES {
            let mutant = self.mutant(space, &point);
            if self.fitness.contains_key(&mutant) || space.refusal(&mutant).is_none() {
                return mutant;
            }
        }
        point
    }

    /// Another template is a parameter like the others; all parameters of the point are then drawn.
    fn mutant(&mut self, space: &dyn Space, point: &Point) -> Point {
        if space.templates() > 1 && self.draw.chance(self.settings.mutation) {
            let template = self.draw.position(space.templates()) as u16;
            if template != point.template {
                return space::random_of(space, template, &mut self.draw);
            }
        }
        let mut mutant = point.clone();
        for (axis, coordinate) in space.axes(point.template).iter().zip(&mut mutant.at) {
            if self.draw.chance(self.settings.mutation) {
                *coordinate = axis.random(&mut self.draw);
            }
        }
        mutant
    }

    /// Advances to the next generation, which random points fill up if it has too few. If `stale`, only its elites are
    /// kept.
    fn advance(&mut self, space: &dyn Space, stale: bool) {
        self.generation = if self.generation.is_empty() { self.first(space) } else { self.next(space) };
        if stale {
            self.generation.truncate(self.settings.elites);
        }
        self.asked = 0;
        while self.generation.len() < self.settings.population {
            let Some(point) = self.unseen.draw(space, &mut self.draw) else { break };
            self.generation.push(point);
        }
    }

    /// The points of the generation that are not known yet.
    fn unknown(&mut self, most: usize) -> Vec<Point> {
        let mut unknown = Vec::new();
        while unknown.len() < most && self.asked < self.generation.len() {
            let point = &self.generation[self.asked];
            self.asked += 1;
            if !self.fitness.contains_key(point) && !unknown.contains(point) {
                self.unseen.see(point);
                unknown.push(point.clone());
            }
        }
        unknown
    }
}

impl Strategy for Genetic {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        for round in 1..=STALE {
            let unknown = self.unknown(most);
            if !unknown.is_empty() || most == 0 {
                return unknown;
            }
            self.advance(space, round == STALE);
        }
        self.unknown(most)
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, verdict) in results {
            self.unseen.see(point);
            let fitness = if let Verdict::Time(time) = verdict { 1.0 / time } else { 0.0 };
            self.fitness.insert(point.clone(), fitness);
            if fitness > self.best.as_ref().map_or(0.0, |(best, _)| *best) {
                self.best = Some((fitness, point.clone()));
            }
        }
    }

    fn key(&self) -> String {
        format!("genetic {} seed={}", self.settings.text(), self.seed)
    }
}
