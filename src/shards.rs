//! Counters that many threads increment without contention.
//!
//! A locked addition delays all later loads. So each thread has its own shard and increments it with a plain
//! load and store. If there are more threads than shards, the rest share the last one, with locked additions.

use std::rc::Rc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// The number of shards. The last one is shared.
const SHARDS: usize = 64;
const SHARED: usize = SHARDS - 1;

/// Shards of counters `S`, each of which should fill its own cache line. This struct does too: each read
/// finds its shard here, next to data that writes change.
#[repr(align(128))]
pub(crate) struct Shards<S>(Box<[S]>);

/// The calling thread's shard.
pub(crate) struct OwnShard<'s, S> {
    pub shard: &'s S,
    /// Whether no other thread uses the shard.
    pub is_alone: bool,
}

impl<S> Clone for OwnShard<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for OwnShard<'_, S> {}

impl<S: Default> Default for Shards<S> {
    fn default() -> Self {
        Shards((0..SHARDS).map(|_| S::default()).collect())
    }
}

impl<S> Shards<S> {
    /// The calling thread's shard.
    #[inline]
    pub fn mine(&self) -> OwnShard<'_, S> {
        let number = MINE.try_with(|mine| mine.0).unwrap_or(SHARED);
        OwnShard { shard: &self.0[number % SHARDS], is_alone: number != SHARED }
    }

    /// The calling thread's shard, with the claim to it.
    pub fn claim(&self) -> (&S, Claim) {
        let claim = MINE.try_with(|mine| Claim(Some(Rc::clone(mine)))).unwrap_or(Claim(None));
        (&self.0[claim.number() % SHARDS], claim)
    }

    /// All shards, for sums.
    pub fn iter(&self) -> impl Iterator<Item = &S> {
        self.0.iter()
    }
}

impl<S> OwnShard<'_, S> {
    /// Adds to one of the shard's counters.
    #[inline]
    pub fn add(&self, counter: &AtomicU64, n: u64) {
        if self.is_alone {
            counter.store(counter.load(Relaxed) + n, Relaxed);
        } else {
            counter.fetch_add(n, Relaxed);
        }
    }
}

/// Keeps the calling thread's shard its own, also while the thread ends. Stays on the thread.
pub(crate) struct Claim(Option<Rc<ShardNumber>>);

impl Claim {
    fn number(&self) -> usize {
        self.0.as_ref().map_or(SHARED, |number| number.0)
    }

    /// Whether no other thread uses the shard.
    pub fn is_alone(&self) -> bool {
        self.number() != SHARED
    }
}

/// The number of a thread's shard, released when the thread ends. That orders one owner's additions before
/// the next owner's.
struct ShardNumber(usize);

/// One bit per shard that a thread has to itself. No lock: a forked process would find it locked for good if
/// another thread held it.
static TAKEN: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(SHARED < u64::BITS as usize);

thread_local!(static MINE: Rc<ShardNumber> = Rc::new(ShardNumber::take()));

impl ShardNumber {
    fn take() -> Self {
        let number = |taken: u64| taken.trailing_ones() as usize;
        let with_one_more = |taken| (number(taken) < SHARED).then(|| taken | (1 << number(taken)));
        let before = TAKEN.fetch_update(AcqRel, Acquire, with_one_more);
        ShardNumber(before.map_or(SHARED, number))
    }
}

impl Drop for ShardNumber {
    fn drop(&mut self) {
        if self.0 != SHARED {
            TAKEN.fetch_and(!(1 << self.0), Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Counter(AtomicU64);

    /// Nothing is lost with more threads than shards, at once or one after the other.
    #[test]
    fn nothing_is_lost_by_more_threads_than_shards() {
        const THREADS: usize = 2 * SHARDS;
        const EACH: u64 = 10_000;
        let shards: Shards<Counter> = Shards::default();
        let alone = AtomicUsize::new(0);
        let all_have_one = Barrier::new(THREADS);
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        let mine = shards.mine();
                        alone.fetch_add(usize::from(mine.is_alone), Relaxed);
                        all_have_one.wait();
                        for _ in 0..EACH {
                            let mine = shards.mine();
                            mine.add(&mine.shard.0, 1);
                        }
                    });
                }
            });
        }
        let sum: u64 = shards.iter().map(|counter| counter.0.load(Relaxed)).sum();
        assert_eq!(sum, 3 * THREADS as u64 * EACH);
        let alone = alone.into_inner();
        assert!(alone > 0 && alone <= 3 * SHARED, "{alone}: no shard has two owners at once");
    }
}
