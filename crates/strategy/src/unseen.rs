//! Points that were not asked for yet.

use crate::space::{self, Point, Space};
use crate::{Draw, Moves};
use std::collections::HashSet;

/// The most random draws until one is legal and new: TC's limit for children.
pub(crate) const TRIES: usize = 1000;

/// Spaces of at most this many points are listed when random unseen points have become hard to find.
const LISTED: u128 = 1 << 16;

/// Points that were seen, and a source of random ones that were not.
#[derive(Default)]
pub(crate) struct Unseen {
    seen: HashSet<Point>,
    /// The legal points of a small space that were left when random ones became rare, in random order.
    left: Option<Vec<Point>>,
}

impl Unseen {
    /// Whether a point was seen.
    pub fn saw(&self, point: &Point) -> bool {
        self.seen.contains(point)
    }

    /// Marks a point as seen; false if it was already.
    pub fn see(&mut self, point: &Point) -> bool {
        !self.seen.contains(point) && self.seen.insert(point.clone())
    }

    /// Whether a point is legal and was not seen.
    pub fn open(&self, space: &dyn Space, point: &Point) -> bool {
        !self.saw(point) && space.refusal(point).is_none()
    }

    /// A random legal point that was not seen; marks it as seen. If [`TRIES`] draws find none, a small space is listed,
    /// so that no point is missed; in a large one, as many walks from the origins, which are legal, are tried.
    pub fn draw(&mut self, space: &dyn Space, draw: &mut Draw) -> Option<Point> {
        let found = match &mut self.left {
            Some(left) => std::iter::from_fn(|| left.pop()).find(|point| !self.seen.contains(point)),
            None => self.search(space, draw),
        }?;
        self.see(&found);
        Some(found)
    }

    fn search(&mut self, space: &dyn Space, draw: &mut Draw) -> Option<Point> {
        let random = (0..TRIES).map(|_| space::random(space, draw)).find(|point| self.open(space, point));
        if random.is_some() {
            return random;
        }
        if space::size(space) <= LISTED {
            let mut left: Vec<Point> = space::points(space).filter(|point| self.open(space, point)).collect();
            draw.shuffle(&mut left);
            let found = left.pop();
            self.left = Some(left);
            return found;
        }
        let walk = |_| {
            let origin = space.origin(draw.position(space.templates()) as u16);
            space::walk(space, &origin, 0.5, draw)
        };
        (0..TRIES).map(walk).find(|point| self.open(space, point))
    }

    /// The neighbours of a point that were not seen, each with the number of its direction.
    pub fn neighbours(&self, space: &dyn Space, moves: Moves, point: &Point) -> Vec<(usize, Point)> {
        moves.neighbours(space, point).into_iter().filter(|(_, near)| !self.saw(near)).collect()
    }
}
