//! The walk of a strategy through a space.

use std::cell::RefCell;
use std::collections::HashSet;

use warploom_cost::Featurizer;
use warploom_search::points::Schedules;
use warploom_strategy::{Axis, Point, Space, Strategy, Verdict};
use xxhash_rust::xxh3::xxh3_64;

use super::ExploreOptions;
use super::run::ExploreRun;
use crate::sample::Origin;
use crate::tuning::{Ended, Event, Proposal, Session, TuneError};

/// The key of a strategy's run: the strategy, the trials that its settings may depend on, and the space.
pub(super) fn key(
    session: &Session<'_, '_>,
    options: &ExploreOptions,
    space: &Schedules,
    strategy: &str,
) -> String {
    let pipeline = session.task.subject.pipeline();
    let origins = space.all().iter().map(|template| template.origin().to_text(pipeline));
    let templates = xxh3_64(format!("{:?} {:?}", options.open, origins.collect::<Vec<_>>()).as_bytes());
    format!("{strategy} trials={} templates={templates:016x}", options.trials)
}

/// Lets the strategy ask until the run ends.
pub(super) fn walk(
    run: &mut ExploreRun<'_>,
    session: &mut Session<'_, '_>,
    space: &Schedules,
    strategy: &mut dyn Strategy,
) -> Result<Ended, TuneError> {
    // One per template, because each may have its own rewritten pipeline.
    let featurizers: Vec<Featurizer> =
        space.all().iter().map(|template| Featurizer::new(template.problem())).collect();
    let watched = Watched { space, refused: RefCell::default() };
    run.begin(session, space.all().len())?;
    while run.count.next() > 0 {
        if let Some(ended) = session.ended() {
            return Ok(ended);
        }
        let points = strategy.ask(&watched, run.count.next());
        run.count.tally.avoided = watched.refused.borrow().len();
        if points.is_empty() || run.count.is_idle() {
            run.exhausted = true;
            session.tell(&Event::Note("the strategy has nothing left to ask".to_owned()));
            break;
        }
        let Some(verdicts) = answer(run, session, space, &featurizers, &points)? else {
            return Ok(session.ended().unwrap_or(Ended::Finished));
        };
        let results: Vec<(Point, Verdict)> = points.into_iter().zip(verdicts).collect();
        strategy.tell(&watched, &results);
        run.count.tally.avoided = watched.refused.borrow().len();
        session.tell(&Event::Stepped { tally: run.count.tally, of: run.options.trials });
    }
    Ok(Ended::Finished)
}

/// The verdicts on the points of a question; `None` if the run ends before all are known.
fn answer(
    run: &mut ExploreRun<'_>,
    session: &mut Session<'_, '_>,
    space: &Schedules,
    featurizers: &[Featurizer],
    points: &[Point],
) -> Result<Option<Vec<Verdict>>, TuneError> {
    let proposal = |point: &Point| match space.schedule(point) {
        Ok(schedule) => Ok(Proposal { schedule, origin: Origin::Strategy, predicted_us: None }),
        Err(refusal) => Err(refusal.to_string()),
    };
    let named = points.iter().map(|point| (point.to_string(), proposal(point))).collect();
    let mut asked = run.plan(session, named)?;
    for (asked, point) in asked.iter_mut().zip(points) {
        if let Some(proposal) = asked.open() {
            let featurizer = featurizers.get(usize::from(point.template));
            proposal.predicted_us =
                featurizer.map(|featurizer| featurizer.cost(&proposal.schedule, session.task.model));
        }
    }
    run.answer(session, asked)
}

/// A space that counts the distinct points that the rules refuse when a strategy looks at them.
struct Watched<'a> {
    space: &'a Schedules,
    refused: RefCell<HashSet<Point>>,
}

impl Space for Watched<'_> {
    fn templates(&self) -> usize {
        self.space.templates()
    }

    fn axes(&self, template: u16) -> &[Axis] {
        self.space.axes(template)
    }

    fn origin(&self, template: u16) -> Point {
        Space::origin(self.space, template)
    }

    fn refusal(&self, point: &Point) -> Option<String> {
        let refusal = self.space.refusal(point);
        if refusal.is_some() {
            self.refused.borrow_mut().insert(point.clone());
        }
        refusal
    }
}
