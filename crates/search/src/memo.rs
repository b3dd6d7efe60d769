//! The kernels evaluated so far, shared by all threads and samples of a search.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;

use crate::state::EvaluatedKernel;
use crate::statistics::Refusal;

/// Shards of the memo. The number is fixed, so that evictions do not depend on the machine.
const SHARDS: usize = 64;

/// The result of evaluating a kernel. It depends on the key alone, so it does not matter which
/// thread computed it or whether it was evicted in between.
pub(crate) type Verdict = Result<Arc<EvaluatedKernel>, Refusal>;

/// Verdicts by key, bounded in bytes. A full shard is cleared.
pub(crate) struct Memo {
    verdicts: DashMap<u128, Verdict, BuildHasherDefault<KeyHasher>>,
    /// The bytes of each shard. Threads that fill a shard at the same time may exceed its limit by
    /// one verdict each.
    bytes: Vec<AtomicUsize>,
    most: usize,
}

impl Memo {
    /// A memo of roughly `bytes` bytes.
    pub fn new(bytes: usize) -> Memo {
        let verdicts = DashMap::with_hasher_and_shard_amount(Default::default(), SHARDS);
        Memo { verdicts, bytes: (0..SHARDS).map(|_| AtomicUsize::new(0)).collect(), most: bytes / SHARDS }
    }

    pub fn get(&self, key: u128) -> Option<Verdict> {
        self.verdicts.get(&key).map(|verdict| verdict.clone())
    }

    pub fn insert(&self, key: u128, verdict: Verdict) {
        let bytes = bytes(&verdict);
        if bytes > self.most {
            return;
        }
        let shard = self.verdicts.determine_map(&key);
        if self.bytes[shard].fetch_add(bytes, Ordering::Relaxed) + bytes > self.most {
            *self.verdicts.shards()[shard].write() = Default::default();
            self.bytes[shard].store(bytes, Ordering::Relaxed);
        }
        self.verdicts.insert(key, verdict);
    }
}

/// Uses keys directly: they are hashes already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// The approximate size of a verdict: a few words for a refusal; the size of a kernel grows with
/// its nests.
fn bytes(verdict: &Verdict) -> usize {
    match verdict {
        Ok(kernel) => 768 + 512 * kernel.sketch.nest_reads.len(),
        Err(_) => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::wide;

    #[test]
    fn forgets_when_full_and_never_holds_more() {
        let memo = Memo::new(2 * 64 * SHARDS);
        for number in 0..10_000 {
            let key = wide(&[number]);
            memo.insert(key, Err(Refusal::Illegal));
            assert!(memo.get(key).is_some());
        }
        assert!((SHARDS..=2 * SHARDS).contains(&memo.verdicts.len()), "{}", memo.verdicts.len());
        let none = Memo::new(0);
        none.insert(1, Err(Refusal::Illegal));
        assert!(none.get(1).is_none());
    }
}
