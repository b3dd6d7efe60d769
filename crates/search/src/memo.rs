//! Kernels that were evaluated before, by all threads and samples of a search together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::AHashMap;

use crate::state::Kern;
use crate::statistics::Refusal;

/// Parts of the memo, each with its own lock.
const SHARDS: usize = 64;

/// What is known of a kernel. It depends on the key alone, so that it does not matter who found it out, or whether it was
/// forgotten in between.
pub(crate) type Verdict = Result<Arc<Kern>, Refusal>;

/// Verdicts by key, bounded in bytes: a shard that is full starts anew.
pub(crate) struct Memo {
    shards: Vec<Mutex<Shard>>,
    most: usize,
}

#[derive(Default)]
struct Shard {
    verdicts: AHashMap<u128, Verdict>,
    bytes: usize,
}

impl Memo {
    /// A memo of so many bytes, roughly.
    pub fn new(bytes: usize) -> Memo {
        Memo { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), most: bytes / SHARDS }
    }

    fn shard(&self, key: u128) -> MutexGuard<'_, Shard> {
        // A thread that panics leaves a shard whole: insertions are single steps.
        let shard = &self.shards[(key % SHARDS as u128) as usize];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, key: u128) -> Option<Verdict> {
        if self.most == 0 {
            return None;
        }
        self.shard(key).verdicts.get(&key).cloned()
    }

    pub fn insert(&self, key: u128, verdict: Verdict) {
        let bytes = bytes(&verdict);
        if bytes > self.most {
            return;
        }
        let mut shard = self.shard(key);
        if shard.bytes + bytes > self.most {
            *shard = Shard::default();
        }
        shard.bytes += bytes;
        shard.verdicts.insert(key, verdict);
    }
}

/// What a verdict takes, roughly: a refusal is a few words, a kernel grows with its nests.
fn bytes(verdict: &Verdict) -> usize {
    match verdict {
        Ok(kern) => 768 + 512 * kern.sketch.nest_reads.len(),
        Err(_) => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_when_full_and_never_holds_more() {
        let memo = Memo::new(2 * 64 * SHARDS);
        for key in 0..10_000u128 {
            memo.insert(key, Err(Refusal::Illegal));
            assert!(memo.get(key).is_some());
        }
        let held: usize = memo.shards.iter().map(|shard| shard.lock().unwrap().verdicts.len()).sum();
        assert!(held <= 2 * SHARDS);
        let none = Memo::new(0);
        none.insert(1, Err(Refusal::Illegal));
        assert!(none.get(1).is_none());
    }
}
