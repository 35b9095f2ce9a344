//! Measures one filter: size, false-positive rate, and the times of its build, misses and hits.

use super::contestants::BuildFn;
use super::filter::{BATCH_KEYS, Filter};
use crate::error::Result;
use crate::keys::mix;
use crate::results::FilterResult;
use std::hint::black_box;
use std::time::Duration;

/// Each time is the best of this many, but a build longer than `LONG_BUILD` is timed once.
const REPEATS: usize = 5;
const LONG_BUILD: Duration = Duration::from_millis(500);

/// With this many false positives, the standard error of their rate is 3 %, one over the square root.
const ENOUGH_FALSE_POSITIVES: u64 = 1112;
/// Absent keys whose false positives are counted at once.
const COUNTED_KEYS: u64 = 1 << 16;

/// Amounts of work for each filter.
pub struct Effort {
    /// Timed queries for absent keys, and as many for present keys.
    pub queries: u64,
    /// Maximum untimed queries for absent keys, which a low false-positive rate needs.
    pub extra_queries: u64,
    /// Memory to fill with copies of a filter.
    pub crowd_bytes: u64,
}

impl Effort {
    /// Measures a filter over this many keys, and also a crowd of its copies if `crowd` says so.
    pub fn measure(&self, name: String, keys: u64, build: &BuildFn, crowd: bool) -> Result<FilterResult> {
        let members: Vec<u64> = (0..keys).map(present).collect();
        let (filter, build_ns) = fastest_build(build, &members)?;
        let filter = filter.as_ref();
        if let Some(key) = members.iter().find(|&&key| !filter.may_contain(filter.prepared(key))) {
            return Err(lost(&name, &format!("key {key:#x}")));
        }
        drop(members);
        let misses = Queries::new(filter, (0..self.queries).map(absent));
        let (probe_ns, false_positives) = misses.single(filter);
        let batched = misses.batched(filter);
        let crowded = if crowd { self.in_a_crowd(filter, &misses)? } else { (None, None) };
        drop(misses);
        let hits = Queries::new(filter, (0..self.queries).map(|n| present(drawn(n, keys))));
        let (hit_ns, found) = hits.single(filter);
        let batched_hits = hits.batched(filter);
        let found = batched_hits.map_or(found, |(_, in_batches)| found.min(in_batches));
        if found < self.queries {
            return Err(lost(&name, &format!("{} of {} queries", self.queries - found, self.queries)));
        }
        let (fpr, fpr_queries) = self.false_positive_rate(filter, false_positives);
        let bits_per_key = 8.0 * filter.bytes() as f64 / keys as f64;
        Ok(FilterResult {
            name,
            keys,
            bits_per_key,
            fpr,
            fpr_queries,
            over_bound: over_bound(bits_per_key, fpr),
            probe_ns,
            batched_ns: batched.map(|(ns, _)| ns),
            hit_ns: Some(hit_ns),
            batched_hit_ns: batched_hits.map(|(ns, _)| ns),
            build_ns,
            crowded_ns: crowded.0,
            crowded_batched_ns: crowded.1,
        })
    }

    /// The false-positive rate and the number of absent keys queried for it. `wrong` of the first `queries`
    /// keys were false positives; more keys are queried until there are enough false positives for a standard
    /// error of 3 %.
    fn false_positive_rate(&self, filter: &dyn Filter, mut wrong: u64) -> (f64, u64) {
        let mut asked = self.queries;
        while wrong < ENOUGH_FALSE_POSITIVES && asked < self.queries + self.extra_queries {
            let further = Queries::new(filter, (asked..asked + COUNTED_KEYS).map(absent));
            wrong += further.in_batches(filter).unwrap_or_else(|| further.one_by_one(filter)) as u64;
            asked += COUNTED_KEYS;
        }
        (wrong as f64 / asked as f64, asked)
    }

    /// Nanoseconds per query, single and batched, with copies of the filter filling `crowd_bytes`. Each query
    /// or batch picks a random copy. The copies give the same answers, but share no cache lines.
    fn in_a_crowd(&self, filter: &dyn Filter, misses: &Queries) -> Result<(Option<f64>, Option<f64>)> {
        // A quarter is enough, because each query is many times slower.
        let quarter = (misses.prepared.len() / 4).max(BATCH_KEYS);
        let (keys, prepared) = (&misses.keys[..quarter], &misses.prepared[..quarter]);
        let copies = self.crowd_bytes.div_ceil(filter.bytes() as u64).max(1);
        let crowd: Vec<Box<dyn Filter>> = (0..copies).map(|_| filter.copy()).collect::<Result<_>>()?;
        let order: Vec<u32> = (0..quarter as u64).map(|n| drawn(n, copies) as u32).collect();
        let single = || {
            let asked = prepared.iter().zip(&order);
            asked.filter(|&(&key, &copy)| crowd[copy as usize].may_contain(key)).count()
        };
        let batched = || -> Option<usize> {
            let batches = keys.chunks(BATCH_KEYS).zip(prepared.chunks(BATCH_KEYS)).zip(&order);
            batches.map(|((keys, prepared), &copy)| crowd[copy as usize].batched(keys, prepared)).sum()
        };
        let batched_ns = misses.has_batches(filter).then(|| fastest(quarter, || batched().unwrap_or(0)).0);
        Ok((Some(fastest(quarter, single).0), batched_ns))
    }
}

/// Keys to query, and what a filter probes for each.
struct Queries {
    keys: Vec<u64>,
    prepared: Vec<u64>,
}

impl Queries {
    fn new(filter: &dyn Filter, keys: impl Iterator<Item = u64>) -> Self {
        let keys: Vec<u64> = keys.collect();
        Queries { prepared: keys.iter().map(|&key| filter.prepared(key)).collect(), keys }
    }

    /// Nanoseconds per query, and how many keys may be present.
    fn single(&self, filter: &dyn Filter) -> (f64, u64) {
        let (ns, maybes) = fastest(self.keys.len(), || self.one_by_one(filter));
        (ns, maybes as u64)
    }

    /// The same in batches; `None` if the filter has none.
    fn batched(&self, filter: &dyn Filter) -> Option<(f64, u64)> {
        let (ns, maybes) = self
            .has_batches(filter)
            .then(|| fastest(self.keys.len(), || self.in_batches(filter).unwrap_or(0)))?;
        Some((ns, maybes as u64))
    }

    fn one_by_one(&self, filter: &dyn Filter) -> usize {
        self.prepared.iter().filter(|&&key| filter.may_contain(key)).count()
    }

    fn in_batches(&self, filter: &dyn Filter) -> Option<usize> {
        filter.batched(&self.keys, &self.prepared)
    }

    fn has_batches(&self, filter: &dyn Filter) -> bool {
        filter.batched(&self.keys[..BATCH_KEYS], &self.prepared[..BATCH_KEYS]).is_some()
    }
}

/// A key of every filter with more than `index` keys.
fn present(index: u64) -> u64 {
    mix(2 * index)
}

/// A key of no filter.
fn absent(index: u64) -> u64 {
    mix(2 * index + 1)
}

/// The n-th of a sequence of random numbers below `bound`.
fn drawn(n: u64, bound: u64) -> u64 {
    ((u128::from(mix(n)) * u128::from(bound)) >> 64) as u64
}

/// Bits per key divided by the information bound, log2(1 / rate) bits per key (Carter, Floyd, Gill,
/// Markowsky, Wegman, "Exact and approximate membership testers", 1978); `None` if no absent key or all of
/// them were false positives.
fn over_bound(bits_per_key: f64, fpr: f64) -> Option<f64> {
    (fpr > 0.0 && fpr < 1.0).then(|| bits_per_key / -fpr.log2())
}

fn lost(name: &str, what: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!("WRONG ANSWER: {name} reports {what} as absent, but was built with it").into()
}

/// The filter and its build time in nanoseconds per key.
fn fastest_build(build: &BuildFn, members: &[u64]) -> Result<(Box<dyn Filter>, f64)> {
    let mut begin = cpu();
    let mut filter = build(members)?;
    let mut built = cpu() - begin;
    for _ in 1..REPEATS {
        if built > LONG_BUILD {
            break;
        }
        begin = cpu();
        filter = build(members)?;
        built = built.min(cpu() - begin);
    }
    Ok((filter, built.as_nanos() as f64 / members.len() as f64))
}

/// CPU time of this thread, which excludes other processes. A filter never waits and uses no other thread.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The best time in nanoseconds per query, and the answer.
fn fastest(queries: usize, ask: impl Fn() -> usize) -> (f64, usize) {
    let time = || {
        let begin = cpu();
        let answer = black_box(ask());
        ((cpu() - begin).as_nanos() as f64 / queries as f64, answer)
    };
    (0..REPEATS).map(|_| time()).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 0))
}
