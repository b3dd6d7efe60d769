//! The values of the most recently used keys, shared by threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps the values of a limited number of keys, the most recently used ones.
pub(crate) struct Recent<K, V> {
    limit: usize,
    /// The most recently used first. While values are made, there may be more than `limit`.
    entries: Mutex<Vec<Arc<Entry<K, V>>>>,
}

struct Entry<K, V> {
    key: K,
    /// Locked while the value is made, so that other threads wait for it.
    value: Mutex<Option<Arc<V>>>,
}

impl<K: PartialEq, V> Recent<K, V> {
    pub(crate) fn new(limit: usize) -> Recent<K, V> {
        Recent { limit, entries: Mutex::default() }
    }

    /// The value of a key, if there is one. Waits for a thread that is making it.
    pub(crate) fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut entries = locked(&self.entries);
        let position = entries.iter().position(|entry| entry.key == *key)?;
        entries[..=position].rotate_right(1);
        let entry = entries[0].clone();
        drop(entries);
        locked(&entry.value).clone()
    }

    /// The value of a key, made if there is none. Threads that ask at the same time get the same value, made once.
    /// After an error, the next caller tries again.
    pub(crate) fn get_or_make<E>(&self, key: K, make: impl FnOnce(&K) -> Result<V, E>) -> Result<Arc<V>, E> {
        let entry = self.first(key);
        let mut value = locked(&entry.value);
        if let Some(value) = &*value {
            return Ok(value.clone());
        }
        let made = make(&entry.key).map(Arc::new);
        *value = made.as_ref().ok().cloned();
        drop(value);
        match &made {
            Ok(_) => self.forget_old(),
            Err(_) => locked(&self.entries).retain(|other| !Arc::ptr_eq(other, &entry)),
        }
        made
    }

    /// All values, the most recently used first, without those that are being made.
    pub(crate) fn values(&self) -> Vec<Arc<V>> {
        let made = |entry: &Arc<Entry<K, V>>| entry.value.try_lock().ok().and_then(|value| value.clone());
        locked(&self.entries).iter().filter_map(made).collect()
    }

    /// The entry of a key, which becomes the most recently used one.
    fn first(&self, key: K) -> Arc<Entry<K, V>> {
        let mut entries = locked(&self.entries);
        match entries.iter().position(|entry| entry.key == key) {
            Some(position) => entries[..=position].rotate_right(1),
            None => entries.insert(0, Arc::new(Entry { key, value: Mutex::default() })),
        }
        entries[0].clone()
    }

    fn forget_old(&self) {
        let mut entries = locked(&self.entries);
        let kept = self.limit.min(entries.len());
        let old = entries.split_off(kept);
        // Dropping a value may take long, so nobody waits for that.
        drop(entries);
        drop(old);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves both lists and values consistent: they are changed by single calls only.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// A list of up to 16 values, and how often one was made.
    struct Counted {
        recent: Recent<u32, u32>,
        made: AtomicUsize,
    }

    impl Counted {
        fn new() -> Counted {
            Counted { recent: Recent::new(16), made: AtomicUsize::new(0) }
        }

        fn ask(&self, key: u32) -> Arc<u32> {
            let made = self.recent.get_or_make(key, |key| {
                self.made.fetch_add(1, Ordering::Relaxed);
                Ok::<u32, ()>(10 * key)
            });
            made.expect("it cannot fail")
        }

        fn made(&self) -> usize {
            self.made.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn the_least_recently_used_value_is_forgotten() {
        let counted = Counted::new();
        assert!((0..16).all(|key| *counted.ask(key) == 10 * key));
        assert_eq!((counted.made(), *counted.ask(0)), (16, 0));
        assert_eq!(counted.recent.get(&1).as_deref(), Some(&10));
        // 2 is now the oldest: 0 and 1 were used since.
        counted.ask(16);
        assert_eq!(counted.recent.get(&2), None);
        assert!([0, 1, 3, 15, 16].into_iter().all(|key| counted.recent.get(&key).is_some()));
        assert_eq!((*counted.ask(2), counted.made()), (20, 18));
        assert_eq!(counted.recent.values().len(), 16);
        assert_eq!(counted.recent.values()[0], counted.ask(2));
    }

    #[test]
    fn threads_that_ask_at_the_same_time_share_one_value() {
        let (counted, start) = (Counted::new(), Barrier::new(8));
        let values: Vec<Arc<u32>> = thread::scope(|scope| {
            let ask = || {
                start.wait();
                counted.ask(3)
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        assert_eq!(counted.made(), 1);
        assert!(values.iter().all(|value| Arc::ptr_eq(value, &values[0])));
    }

    #[test]
    fn others_do_not_wait_for_a_value_that_is_being_made() {
        let counted = Counted::new();
        counted.ask(1);
        let made = counted.recent.get_or_make(2, |_| Ok::<u32, ()>(*counted.ask(1) + *counted.ask(3)));
        assert_eq!(made, Ok(Arc::new(40)));
    }

    #[test]
    fn errors_are_not_kept_and_evict_nothing() {
        let counted = Counted::new();
        (0..16).for_each(|key| drop(counted.ask(key)));
        assert_eq!(counted.recent.get_or_make(99, |_| Err("no")), Err("no"));
        assert_eq!(counted.recent.get(&99), None);
        assert!((0..16).all(|key| counted.recent.get(&key).is_some()));
        assert_eq!(*counted.ask(99), 990);
    }
}
