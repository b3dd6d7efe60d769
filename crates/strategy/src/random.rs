//! Random search: the baseline.

use crate::space::{Point, Space};
use crate::unseen::Unseen;
use crate::{Draw, Field, Settings, Strategy, Verdict};

/// Random search has no settings.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomSettings;

impl Settings for RandomSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        Vec::new()
    }
}

/// Asks for distinct random legal points: any template, then any value on each axis.
pub struct Random {
    seed: u64,
    draw: Draw,
    unseen: Unseen,
}

impl Random {
    /// A random search with a seed.
    pub fn new(_: RandomSettings, seed: u64) -> Random {
        Random { seed, draw: Draw::new(seed), unseen: Unseen::default() }
    }
}

impl Strategy for Random {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        (0..most).map_while(|_| self.unseen.draw(space, &mut self.draw)).collect()
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, _) in results {
            self.unseen.see(point);
        }
    }

    fn key(&self) -> String {
        format!("random seed={}", self.seed)
    }
}
