//! Claims: which process measures which schedule.

use std::fs;
use std::path::Path;

use rusqlite::{OptionalExtension, Transaction, params};

use super::{ProblemId, Records, RecordsError, now, rows, schedule_hash};

/// Seconds after which a claim expires unless it is renewed. The worker time limits guarantee that
/// any claimed schedule is compiled and run well within this time.
const LEASE: u64 = 900;

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

/// A process that holds claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    host: String,
    process: u32,
}

impl Owner {
    pub fn this() -> Owner {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // Containers have their own process ids, so the namespace is part of the host.
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let host = match boot.trim() {
            "" => String::new(),
            boot => format!("{boot} {}", space.display()),
        };
        Owner { host, process: std::process::id() }
    }

    /// Whether the process is known to have ended. For processes on other hosts, or without
    /// `/proc`, this is unknown and the answer is `false`.
    fn has_ended(&self, this: &Owner) -> bool {
        let here = !self.host.is_empty() && self.host == this.host;
        here && Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{}", self.process)).exists()
    }
}

impl Records {
    /// Claims a schedule of a problem. A granted schedule must then be [recorded](Records::record).
    ///
    /// # Errors
    /// If the claim cannot be stored.
    pub fn claim(&mut self, problem: ProblemId, schedule: &str) -> Result<Claim, RecordsError> {
        let owner = self.owner.clone();
        let hash = schedule_hash(schedule);
        self.change(|change| {
            if rows::has(change, problem, &hash)? {
                return Ok(Claim::Finished);
            }
            shorten(change, problem, &hash)?;
            if let Some((holder, expires)) = holder(change, problem, &hash)?
                && holder != owner
                && expires > now()
                && !holder.has_ended(&owner)
            {
                return Ok(Claim::Taken);
            }
            let claim = "INSERT OR REPLACE INTO claims (problem, schedule_hash, host, process, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5)";
            let Owner { host, process } = &owner;
            change.execute(claim, params![problem.0, hash, host, process, (now() + LEASE) as i64])?;
            Ok(Claim::Granted)
        })
    }

    /// Releases all claims of this process that were not recorded.
    ///
    /// # Errors
    /// If the claims cannot be removed.
    pub fn release_claims(&mut self) -> Result<(), RecordsError> {
        let Owner { host, process } = self.owner.clone();
        let release = "DELETE FROM claims WHERE host = ?1 AND process = ?2";
        self.change(|change| change.execute(release, params![host, process]))?;
        Ok(())
    }
}

/// Shortens a claim that expires later than a new one would, for instance after a clock change.
fn shorten(change: &Transaction<'_>, problem: ProblemId, schedule_hash: &str) -> rusqlite::Result<()> {
    let shorten = "UPDATE claims SET expires = ?3 WHERE problem = ?1 AND schedule_hash = ?2 AND expires > ?3";
    change.execute(shorten, params![problem.0, schedule_hash, (now() + LEASE) as i64])?;
    Ok(())
}

fn holder(
    change: &Transaction<'_>,
    problem: ProblemId,
    schedule_hash: &str,
) -> rusqlite::Result<Option<(Owner, u64)>> {
    let query = "SELECT host, process, expires FROM claims WHERE problem = ?1 AND schedule_hash = ?2";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((Owner { host: row.get(0)?, process: row.get(1)? }, row.get::<_, i64>(2)?.max(0) as u64))
    };
    change.query_row(query, params![problem.0, schedule_hash], read).optional()
}

/// Deletes the claim on a schedule.
pub(super) fn release(
    change: &Transaction<'_>,
    problem: ProblemId,
    schedule_hash: &str,
) -> rusqlite::Result<()> {
    let release = "DELETE FROM claims WHERE problem = ?1 AND schedule_hash = ?2";
    change.execute(release, params![problem.0, schedule_hash])?;
    Ok(())
}

/// Renews all claims of a process, which is alive because it records something.
pub(super) fn renew(change: &Transaction<'_>, owner: &Owner) -> rusqlite::Result<()> {
    let renew = "UPDATE claims SET expires = ?3 WHERE host = ?1 AND process = ?2";
    change.execute(renew, params![owner.host, owner.process, (now() + LEASE) as i64])?;
    Ok(())
}
