//! Claims: which process measures which schedule.

use super::store::Change;
use super::{ProblemId, Records, RecordsError, rows, schedule_hash};
use crate::values;

/// Seconds after which a claim expires unless it is renewed. The worker time limits guarantee that
/// any claimed schedule is compiled and run well within this time.
const LEASE: i64 = 900;

/// The answer to a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// This process now holds the claim and must measure the schedule.
    Granted,
    /// The schedule already has a trial.
    Finished,
    /// Another process holds the claim.
    Taken,
}

impl Records {
    /// Claims a schedule of a problem. A granted schedule must then be [recorded](Records::record).
    ///
    /// # Errors
    /// If the claim cannot be stored.
    pub fn claim(&mut self, problem: ProblemId, schedule: &str) -> Result<Claim, RecordsError> {
        let hash = schedule_hash(schedule);
        self.change(|change| {
            change.hold_problem(problem.0)?;
            if rows::has(change, problem, &hash)? {
                return Ok(Claim::Finished);
            }
            let expires = change.now()? + LEASE;
            let holder = change.holder();
            if is_taken(change, problem, &hash, &holder)? {
                return Ok(Claim::Taken);
            }
            change.execute(
                "INSERT INTO claims (problem, schedule_hash, holder, expires) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (problem, schedule_hash)
                 DO UPDATE SET holder = excluded.holder, expires = excluded.expires",
                values![problem.0, &hash, holder, expires],
            )?;
            Ok(Claim::Granted)
        })
    }

    /// Releases all claims of this process that were not recorded.
    ///
    /// # Errors
    /// If the claims cannot be removed.
    pub fn release_claims(&mut self) -> Result<(), RecordsError> {
        self.change(|change| {
            let holder = change.holder();
            change.execute("DELETE FROM claims WHERE holder = $1", values![holder]).map(drop)
        })
    }
}

/// Whether another process holds a claim on a schedule, and may still be alive.
fn is_taken(
    change: &mut dyn Change,
    problem: ProblemId,
    schedule_hash: &str,
    this: &str,
) -> Result<bool, RecordsError> {
    shorten(change, problem, schedule_hash)?;
    let query = "SELECT holder, expires FROM claims WHERE problem = $1 AND schedule_hash = $2";
    let Some(row) = change.query_one(query, values![problem.0, schedule_hash])? else { return Ok(false) };
    let (holder, expires): (String, i64) =
        (rows::read(change.place(), row.get(0))?, rows::read(change.place(), row.get(1))?);
    Ok(holder != this && expires > change.now()? && !change.has_ended(&holder)?)
}

/// Shortens a claim that expires later than a new one would, for instance after a clock change.
fn shorten(change: &mut dyn Change, problem: ProblemId, schedule_hash: &str) -> Result<(), RecordsError> {
    let shorten = "UPDATE claims SET expires = $3 WHERE problem = $1 AND schedule_hash = $2 AND expires > $3";
    let most = change.now()? + LEASE;
    change.execute(shorten, values![problem.0, schedule_hash, most]).map(drop)
}

/// Deletes the claim on a schedule.
pub(super) fn release(
    change: &mut dyn Change,
    problem: ProblemId,
    schedule_hash: &str,
) -> Result<(), RecordsError> {
    let release = "DELETE FROM claims WHERE problem = $1 AND schedule_hash = $2";
    change.execute(release, values![problem.0, schedule_hash]).map(drop)
}

/// Renews all claims of this process, which is alive because it records something.
pub(super) fn renew(change: &mut dyn Change) -> Result<(), RecordsError> {
    let (holder, expires) = (change.holder(), change.now()? + LEASE);
    change.execute("UPDATE claims SET expires = $2 WHERE holder = $1", values![holder, expires]).map(drop)
}
