//! Latency histograms, by operation ([`Options::latency_histograms`](crate::Options::latency_histograms)).
//!
//! 1. Buckets are log-linear: eight for each power of two, so a quantile is at most an eighth too high.
//! 2. Each thread counts in buckets of its own (`shards.rs`).
//! 3. Two looks at the clock take about as long as a missing key. So a thread times one `get` in 64 on
//!    average. The gaps are random: a fixed one would see only some calls of a loop that repeats.

use crate::shards::Shards;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets for each power of two.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 3;
/// The last bucket begins just below 2^40 ns, which is 18 minutes, and has all above.
const BUCKETS: usize = (40 - STEP_BITS as usize + 1) * STEPS;
/// The gaps between timed reads are from 1 to this, and so 64 on average.
const GAP_MAX: u64 = 127;

/// The bucket of a time.
fn bucket_of(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let step = (nanos >> (power - STEP_BITS)) as usize % STEPS;
    ((power - STEP_BITS + 1) as usize * STEPS + step).min(BUCKETS - 1)
}

/// The least time in a bucket, in nanoseconds.
fn least_of(bucket: usize) -> u64 {
    match bucket.checked_sub(STEPS) {
        None => bucket as u64,
        Some(above) => ((STEPS + above % STEPS) as u64) << (above / STEPS),
    }
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    GetHit,
    GetMiss,
    Put,
    Commit,
    Stall,
}

const OPERATIONS: usize = 5;

/// The times of one operation.
#[repr(align(128))]
struct Counts {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_nanos: AtomicU64::new(0) }
    }
}

/// Counts times, by operation and thread.
#[derive(Default)]
pub(crate) struct LatencyRecorder(Shards<[Counts; OPERATIONS]>);

impl LatencyRecorder {
    pub fn record(&self, operation: Operation, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mine = self.0.mine();
        let Some(counts) = mine.shard.get(operation as usize) else { return };
        mine.add(&counts.sum_nanos, nanos);
        if let Some(bucket) = counts.buckets.get(bucket_of(nanos)) {
            mine.add(bucket, 1);
        }
    }

    /// What was recorded so far.
    pub fn sums(&self) -> Latencies {
        let of = |operation: Operation| {
            let mut sums = LatencyHistogram { counts: vec![0; BUCKETS], sum_nanos: 0 };
            for counts in self.0.iter().filter_map(|shard| shard.get(operation as usize)) {
                for (sum, count) in sums.counts.iter_mut().zip(&counts.buckets) {
                    *sum += count.load(Relaxed);
                }
                sums.sum_nanos = sums.sum_nanos.saturating_add(counts.sum_nanos.load(Relaxed));
            }
            sums
        };
        Latencies {
            get_hit: of(Operation::GetHit),
            get_miss: of(Operation::GetMiss),
            put: of(Operation::Put),
            commit: of(Operation::Commit),
            stall: of(Operation::Stall),
        }
    }
}

/// When a thread times a read.
struct Sampling {
    /// Reads up to the next that is timed, with it.
    left: Cell<u64>,
    /// Not 0 once the thread has begun.
    random: Cell<u64>,
}

thread_local!(static SAMPLING: Sampling = const { Sampling { left: Cell::new(0), random: Cell::new(0) } });

/// Threads that have timed reads.
static THREADS: AtomicU64 = AtomicU64::new(0);

/// Whether to time this read.
#[inline(always)]
pub(crate) fn is_read_timed() -> bool {
    SAMPLING.with(|sampling| {
        let left = sampling.left.get();
        if left > 1 {
            sampling.left.set(left - 1);
            return false;
        }
        sampling.draw()
    })
}

impl Sampling {
    /// Draws the next gap. `false` if the thread has just begun: its first read is slower than most.
    #[cold]
    fn draw(&self) -> bool {
        let before = self.random.get();
        let mut random = match before {
            // The number is multiplied by an odd one, and so not 0.
            0 => (THREADS.fetch_add(1, Relaxed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            random => random,
        };
        // Marsaglia, "Xorshift RNGs", 2003.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        self.left.set((random >> 32) % GAP_MAX + 1);
        before != 0
    }
}

/// The latencies of a store's operations since it was opened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Latencies {
    /// [`get`](crate::Keyspace::get)s that found a value: about one in 64 of them.
    pub get_hit: LatencyHistogram,
    /// [`get`](crate::Keyspace::get)s that found none: about one in 64 of them.
    pub get_miss: LatencyHistogram,
    /// Writes: every batch, from the call to its end, with the time in which it waited for others.
    pub put: LatencyHistogram,
    /// Syncs of the log.
    pub commit: LatencyHistogram,
    /// Waits of writers for flushes and compactions, and the pauses by which they are slowed down.
    pub stall: LatencyHistogram,
}

impl Latencies {
    /// Each with its name.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, &LatencyHistogram)> {
        let all = [&self.get_hit, &self.get_miss, &self.put, &self.commit, &self.stall];
        ["get_hit", "get_miss", "put", "commit", "stall"].into_iter().zip(all)
    }
}

/// How long calls took.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyHistogram {
    counts: Vec<u64>,
    sum_nanos: u64,
}

impl LatencyHistogram {
    /// The number of calls that were timed.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their time, added up.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// The time that this share of the calls (0 to 1) did not exceed, up to an eighth too high; `None` if no
    /// call was timed.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut so_far = 0;
        let bucket = self.counts.iter().position(|in_bucket| {
            so_far += in_bucket;
            so_far >= rank
        });
        bucket.map(|bucket| Duration::from_nanos(least_of(bucket + 1)))
    }

    /// How many calls took less than each power of two of nanoseconds, from 2^`first` to 2^`last`.
    pub(crate) fn below_powers(&self, first: u32, last: u32) -> impl Iterator<Item = (Duration, u64)> {
        (first..=last).map(|power| {
            let nanos = 1 << power;
            let below = self.counts.iter().take(bucket_of(nanos)).sum();
            (Duration::from_nanos(nanos), below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_meet_and_are_at_most_an_eighth_wide() {
        for bucket in 0..BUCKETS {
            let (least, next) = (least_of(bucket), least_of(bucket + 1));
            assert_eq!((bucket_of(least), bucket_of(next - 1)), (bucket, bucket), "{least}");
            assert!(next - least <= 1.max(least / STEPS as u64), "{least} to {next}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_at_most_an_eighth_too_high() {
        let recorder = LatencyRecorder::default();
        (1..=10_000u64).for_each(|n| recorder.record(Operation::Put, Duration::from_nanos(n * 100)));
        let put = recorder.sums().put;
        assert_eq!((put.count(), put.sum().as_nanos()), (10_000, 100 * 10_000 * 10_001 / 2));
        for share in [0.0, 0.001, 0.5, 0.99, 0.999, 1.0] {
            let exact = (share * 10_000f64).max(1.0) * 100.0;
            let found = put.quantile(share).unwrap().as_nanos() as f64;
            assert!(found >= exact && found <= exact * 1.13, "{share}: {found}, not {exact}");
        }
        assert_eq!(recorder.sums().stall.quantile(0.5), None);
        assert_eq!(put.below_powers(6, 33).last().unwrap().1, 10_000);
    }

    /// One call in 64 on average, and not always the same ones of a loop with two calls.
    #[test]
    fn gaps_between_timed_reads_are_random() {
        let (mut odd, mut even) = (0, 0);
        for n in 0..640_000 {
            *if n % 2 == 0 { &mut even } else { &mut odd } += i32::from(is_read_timed());
        }
        assert!((9_000..11_000).contains(&(odd + even)), "{odd} and {even}");
        assert!((odd - even).abs() < 1_000, "{odd} and {even}");
    }
}
