//! Recorded landscapes: the times of all points of a small space, measured once, so that strategies can be compared without a
//! GPU.
//!
//! A [`Definition`] makes a space that is small enough to be measured completely: one template, some of its axes, and
//! [`Limits`]. [`record()`] measures its legal points. A [`Landscape`] is the table of their times, and is itself a
//! space: unrecorded points are refused, so no time is ever interpolated. [`Landscape::compare`] runs strategies on it.

mod file;
mod limits;
mod record;
mod serve;

use std::collections::HashMap;
use std::path::PathBuf;

use thiserror::Error;
use warploom_lang::files::ReadError;
use warploom_lang::{BoundsError, Pipeline};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_search::points::{Open, Schedules, TemplateError};
use warploom_strategy::{Axis, Point, Space, space};
use warploom_target::Device;

use crate::records::schedule_hash;
use crate::sample::Sizes;

pub use limits::Limits;
pub use record::{Recorded, record};
pub use serve::{Contender, Played};

/// The most points that are checked for legality.
const MOST: u128 = 1 << 22;

/// The open axes of a space that is measured completely: tiles that divide extents, without rounds of threads.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// The schedule whose structure all points have.
    pub template: Schedule,
    /// The names of the open axes; on others, all points have the values of the template. Empty if all are open.
    pub axes: Vec<String>,
    /// Limits of the points.
    pub limits: Limits,
}

impl Definition {
    /// The space of the template. It has more points than the limits allow.
    ///
    /// # Errors
    /// If the template is not legal, or has no such axes.
    pub fn space(&self, problem: &Problem) -> Result<Schedules, LandscapeError> {
        let space = Schedules::new(problem, [&self.template], Open::FEW_TILES)?;
        Ok(if self.axes.is_empty() { space } else { space.only(&self.axes)? })
    }

    /// The legal points within the limits, that of the template first.
    ///
    /// # Errors
    /// If the template is not legal, has no such axes or exceeds the limits, or if there are too many points to check.
    pub fn points(&self, problem: &Problem) -> Result<(Schedules, Vec<Point>), LandscapeError> {
        let space = self.space(problem)?;
        let origin = space.origin(0);
        if !self.limits.hold(&origin) {
            return Err(LandscapeError::Outside { limits: self.limits });
        }
        let points = space::size(&space);
        if points > MOST {
            return Err(LandscapeError::Points { points });
        }
        let inside = space::points(&space).filter(|point| *point != origin && self.limits.hold(point));
        let legal: Vec<Point> = inside.filter(|point| space.refusal(point).is_none()).collect();
        let points = std::iter::once(origin).chain(legal).collect();
        Ok((space, points))
    }
}

/// The recorded result of a point.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// Its times, in microseconds.
    Time {
        /// The shortest time, which strategies are told.
        min_us: f64,
        /// The median.
        median_us: f64,
    },
    /// A failure: the name of the reason in records, such as `wrong`.
    Failed(String),
}

impl Outcome {
    /// The time that strategies are told.
    pub fn time_us(&self) -> Option<f64> {
        match self {
            Outcome::Time { min_us, .. } => Some(*min_us),
            Outcome::Failed(_) => None,
        }
    }
}

/// Where and when a landscape was measured.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Its sizes and Params.
    pub sizes: Sizes,
    /// The device.
    pub device: Device,
    /// The versions that built the kernels.
    pub versions: Vec<String>,
    /// When the first and the last point were measured, in seconds since the Unix epoch.
    pub measured: (u64, u64),
}

/// A space with the times of its points.
#[derive(Debug)]
pub struct Landscape {
    /// The origin of the times.
    pub source: Provenance,
    /// The template, axes and limits of the points.
    pub definition: Definition,
    /// Number of points that were not measured yet.
    pub missing: usize,
    schedules: Schedules,
    points: Vec<Known>,
    places: HashMap<Point, usize>,
}

/// A recorded point.
#[derive(Debug)]
struct Known {
    point: Point,
    outcome: Outcome,
    schedule_hash: String,
}

impl Landscape {
    /// A table of points and their outcomes.
    ///
    /// # Errors
    /// If the sizes do not fit the pipeline, the template is not legal, or a point does not belong to the space.
    pub fn new(
        source: Provenance,
        definition: Definition,
        outcomes: Vec<(Point, Outcome)>,
        missing: usize,
    ) -> Result<Landscape, LandscapeError> {
        let Provenance { pipeline, sizes, device, .. } = &source;
        let problem = Problem::new(pipeline, &sizes.realise(pipeline), device)?;
        let schedules = definition.space(&problem)?;
        let (mut points, mut places) = (Vec::with_capacity(outcomes.len()), HashMap::new());
        for (point, outcome) in outcomes {
            let misplaced = |why: String| LandscapeError::Point { point: point.to_string(), why };
            if !definition.limits.hold(&point) {
                return Err(misplaced("it is beyond the limits".to_owned()));
            }
            let schedule = schedules.schedule(&point).map_err(|refusal| misplaced(refusal.to_string()))?;
            if let Outcome::Time { min_us, median_us } = outcome
                && !(min_us.is_finite() && median_us.is_finite() && 0.0 < min_us && min_us <= median_us)
            {
                return Err(misplaced(format!("it takes {min_us} to {median_us} us")));
            }
            if places.insert(point.clone(), points.len()).is_some() {
                return Err(misplaced("it is there twice".to_owned()));
            }
            points.push(Known { point, outcome, schedule_hash: schedule_hash(&schedule.to_text(pipeline)) });
        }
        Ok(Landscape { source, definition, missing, schedules, points, places })
    }

    /// The recorded points, that of the template first.
    pub fn points(&self) -> impl Iterator<Item = (&Point, &Outcome)> {
        self.points.iter().map(|known| (&known.point, &known.outcome))
    }

    /// The outcome of a point; `None` if it was not recorded.
    pub fn outcome(&self, point: &Point) -> Option<&Outcome> {
        self.known(point).map(|known| &known.outcome)
    }

    fn known(&self, point: &Point) -> Option<&Known> {
        self.places.get(point).and_then(|place| self.points.get(*place))
    }

    /// The times of all points that have one, in rising order.
    pub fn times_us(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self.points.iter().filter_map(|known| known.outcome.time_us()).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

impl Space for Landscape {
    fn templates(&self) -> usize {
        self.schedules.templates()
    }

    fn axes(&self, template: u16) -> &[Axis] {
        self.schedules.axes(template)
    }

    fn origin(&self, template: u16) -> Point {
        self.schedules.origin(template)
    }

    fn refusal(&self, point: &Point) -> Option<String> {
        self.known(point).is_none().then(|| "the point was not recorded".to_owned())
    }
}

/// Why there is no landscape.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LandscapeError {
    /// The file could not be read or is too large.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file could not be written.
    #[error("cannot write {}: {error}; check the path and the free space", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file is not a landscape, or has a later version.
    #[error("{} is not a landscape, or has a later version; this program reads version {version}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The version that can be read.
        version: u32,
    },
    /// The file was changed or cut off.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The sizes do not fit the pipeline.
    #[error(transparent)]
    Bounds(Box<BoundsError>),
    /// The schedule is no template, or has no such axes.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The template itself is beyond the limits.
    #[error("the template is not within the limits {limits}; widen these")]
    Outside {
        /// The limits.
        limits: Limits,
    },
    /// There are too many points to check.
    #[error("the open axes have {points} points, more than {MOST}; open fewer axes")]
    Points {
        /// The points, legal or not.
        points: u128,
    },
    /// A point that the space does not have.
    #[error("the point {point} does not belong to the landscape: {why}")]
    Point {
        /// The point as text.
        point: String,
        /// Why not.
        why: String,
    },
    /// The strategy does not exist, or does not have this setting.
    #[error(transparent)]
    Strategy(#[from] warploom_strategy::Error),
    /// Strategies start at the template, and it was not recorded.
    #[error("the landscape has no result of its template; record the points that are missing")]
    NoOrigin,
}

impl From<BoundsError> for LandscapeError {
    fn from(error: BoundsError) -> LandscapeError {
        LandscapeError::Bounds(Box::new(error))
    }
}
