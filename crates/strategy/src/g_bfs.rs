//! G-BFS: best-first search from the untiled point, with a few random neighbours at a time.

use crate::space::{Moves, Point, Space};
use crate::unseen::Unseen;
use crate::{Draw, Field, Settings, Strategy, Verdict};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The most points that are expanded in search of one to ask for. It bounds the time and the memory of a question where
/// almost all points are refused.
const EXPANDED: usize = 4096;

/// The settings of [`GBfs`].
#[derive(Clone, Debug, PartialEq)]
pub struct GBfsSettings {
    /// The number of neighbours drawn from a point; the others are never tried from there.
    pub rho: usize,
    /// The set of neighbours.
    pub moves: Moves,
}

impl Default for GBfsSettings {
    /// The paper's settings.
    fn default() -> GBfsSettings {
        GBfsSettings { rho: 5, moves: Moves::Double }
    }
}

impl Settings for GBfsSettings {
    fn fields(&mut self) -> Vec<Field<'_>> {
        vec![Field::count("rho", &mut self.rho, 1..=usize::MAX), Field::word("moves", &mut self.moves)]
    }
}

/// Greedy best-first search. It starts at the origin of template 0, takes the fastest point that was not expanded yet,
/// draws `rho` of its neighbours and asks for those that are legal and new. It ends when nothing is left to expand,
/// which with few neighbours at a time can happen before all points were seen; with `rho=all` it visits all reachable
/// points.
///
/// The paper leaves refused neighbours out. Here points without a time, refused or failed, are expanded when no point
/// with a time is left, those with the fastest measured ancestor first; so the search can cross refused regions.
/// Refused points are not asked for. After 4,096 of them in a row the search gives up.
pub struct GBfs {
    settings: GBfsSettings,
    seed: u64,
    draw: Draw,
    unseen: Unseen,
    open: BinaryHeap<Open>,
    entered: usize,
    /// Points to ask for, with the time of the nearest measured ancestor.
    waiting: VecDeque<(f64, Point)>,
    /// Points that were asked for.
    asked: BTreeMap<Point, f64>,
}

/// A point to expand. The largest comes first.
struct Open {
    /// Whether the time is that of an ancestor.
    inherited: bool,
    time: f64,
    /// Ties are broken by the order of insertion.
    entered: usize,
    point: Point,
}

impl Ord for Open {
    fn cmp(&self, other: &Open) -> Ordering {
        let by_time = other.inherited.cmp(&self.inherited).then(other.time.total_cmp(&self.time));
        by_time.then(other.entered.cmp(&self.entered))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Open) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Open) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

impl GBfs {
    /// A run with a seed.
    pub fn new(settings: GBfsSettings, seed: u64) -> GBfs {
        let (draw, unseen, open) = (Draw::new(seed), Unseen::default(), BinaryHeap::new());
        GBfs {
            settings,
            seed,
            draw,
            unseen,
            open,
            entered: 0,
            waiting: VecDeque::new(),
            asked: BTreeMap::new(),
        }
    }

    fn enter(&mut self, inherited: bool, time: f64, point: Point) {
        self.open.push(Open { inherited, time, entered: self.entered, point });
        self.entered += 1;
    }

    fn expand(&mut self, space: &dyn Space, from: &Open) {
        let mut neighbours = self.settings.moves.neighbours(space, &from.point);
        self.draw.shuffle(&mut neighbours);
        neighbours.truncate(self.settings.rho);
        for (_, point) in neighbours {
            if !self.unseen.see(&point) {
                continue;
            }
            if space.refusal(&point).is_some() {
                self.enter(true, from.time, point);
            } else {
                self.waiting.push_back((from.time, point));
            }
        }
    }
}

impl Strategy for GBfs {
    fn ask(&mut self, space: &dyn Space, most: usize) -> Vec<Point> {
        let origin = space.origin(0);
        if self.unseen.see(&origin) {
            self.waiting.push_back((f64::INFINITY, origin));
        }
        for _ in 0..EXPANDED {
            if !self.waiting.is_empty() {
                break;
            }
            let Some(best) = self.open.pop() else { break };
            self.expand(space, &best);
        }
        let batch: Vec<(f64, Point)> = self.waiting.drain(..most.min(self.waiting.len())).collect();
        self.asked = batch.iter().map(|(time, point)| (point.clone(), *time)).collect();
        batch.into_iter().map(|(_, point)| point).collect()
    }

    fn tell(&mut self, _: &dyn Space, results: &[(Point, Verdict)]) {
        for (point, verdict) in results {
            self.unseen.see(point);
            match verdict {
                Verdict::Time(time) => self.enter(false, *time, point.clone()),
                Verdict::Failed | Verdict::Refused => {
                    let ancestor = self.asked.get(point).copied().unwrap_or(f64::INFINITY);
                    self.enter(true, ancestor, point.clone());
                }
            }
        }
    }

    fn key(&self) -> String {
        format!("g-bfs {} seed={}", self.settings.text(), self.seed)
    }
}
