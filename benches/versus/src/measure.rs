//! Makes the calls of a workload, times them, and checks the answers.
//!
//! Calls are generated, made and checked in chunks, so that only the calls are timed. Most chunks are timed
//! as a whole, which gives mean and throughput without the clock's 25 ns. In the other chunks each call is
//! timed, which gives the percentiles.

use crate::engine::Engine;
use crate::error::Result;
use crate::keys::{KeyGenerator, KeyPresence, ValueGenerator};
use crate::workload::{CallGenerator, ExpectedAnswer, KeyLookup, MULTI, StoreCall};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

const CHUNK: u64 = 64;
/// With many chunks, one in this many times each of its calls. With few, all do.
const DETAILED_EVERY: u64 = 4;
const MANY_CHUNKS: u64 = 64;

/// The times of calls.
pub struct CallTiming {
    /// Calls made.
    pub calls: u64,
    /// Mean nanoseconds of a call.
    pub mean_ns: f64,
    /// Nanoseconds of individual calls.
    pub latencies: Histogram<u64>,
    /// Keys in a call. `calls` and `mean_ns` are per key, `latencies` per call.
    pub keys_per_call: u64,
    /// Size of the keys and values written.
    pub user_bytes: u64,
}

/// An empty histogram of times from 1 ns to a minute, with three significant digits.
pub fn latency_histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000_000, 3)?)
}

/// Buffers for the keys and answers of a call, reused for the next chunk.
#[derive(Default)]
struct CallBuffers {
    call: Option<StoreCall>,
    key: Vec<u8>,
    value: Vec<u8>,
    got: (bool, Vec<u8>),
    keys: Vec<Vec<u8>>,
    many: Vec<(bool, Vec<u8>)>,
    rows: Vec<u8>,
    row_lengths: Vec<(usize, usize)>,
}

/// Makes the calls of a workload.
pub struct CallDriver<'a> {
    /// The store.
    pub engine: &'a dyn Engine,
    /// The keys of the store.
    pub keys: &'a KeyGenerator,
    /// The values of the store.
    pub values: &'a ValueGenerator,
    /// The generation of values to write.
    pub generation: u64,
}

impl CallDriver<'_> {
    /// Makes the next `calls` calls. A wrong answer is an error.
    pub fn run(&self, generator: &mut CallGenerator<'_>, calls: u64) -> Result<CallTiming> {
        let mut latencies = latency_histogram()?;
        let mut slots: Vec<CallBuffers> = (0..CHUNK).map(|_| CallBuffers::default()).collect();
        let (mut whole_ns, mut whole_calls, mut detailed_ns, mut user_bytes) = (0u64, 0u64, 0u64, 0u64);
        let chunks = calls.div_ceil(CHUNK);
        for chunk in 0..chunks {
            let slots = &mut slots[..CHUNK.min(calls - chunk * CHUNK) as usize];
            for slot in slots.iter_mut() {
                user_bytes += self.prepare(slot, generator.next_call());
            }
            if chunks < MANY_CHUNKS || chunk % DETAILED_EVERY == 0 {
                for slot in slots.iter_mut() {
                    let start = Instant::now();
                    self.make(slot)?;
                    let ns = start.elapsed().as_nanos() as u64;
                    latencies.saturating_record(ns);
                    detailed_ns += ns;
                }
            } else {
                let start = Instant::now();
                slots.iter_mut().try_for_each(|slot| self.make(slot))?;
                whole_ns += start.elapsed().as_nanos() as u64;
                whole_calls += slots.len() as u64;
            }
            slots.iter().try_for_each(|slot| self.check(slot))?;
        }
        let mean_ns = match whole_calls {
            0 => detailed_ns as f64 / calls as f64,
            _ => whole_ns as f64 / whole_calls as f64,
        };
        Ok(CallTiming { calls, mean_ns, latencies, keys_per_call: 1, user_bytes })
    }

    /// Renders keys and values, and returns how many bytes the call will write.
    fn prepare(&self, slot: &mut CallBuffers, call: StoreCall) -> u64 {
        let write_key = |asked: &KeyLookup, key: &mut Vec<u8>| {
            self.keys.write(self.keys.rank(asked.index, asked.presence), asked.presence, key);
        };
        let mut written = 0;
        match &call {
            StoreCall::Get(asked) => write_key(asked, &mut slot.key),
            StoreCall::Put { index } => {
                let presence = KeyPresence::Present;
                self.keys.write(self.keys.rank(*index, presence), presence, &mut slot.key);
                self.values.write(*index, self.generation, &mut slot.value);
                written = slot.key.len() + slot.value.len();
            }
            StoreCall::Change(asked) => {
                write_key(asked, &mut slot.key);
                self.values.write(asked.index, self.generation, &mut slot.value);
                written = slot.key.len() + slot.value.len();
            }
            StoreCall::MultiGet(many) => {
                slot.keys.resize_with(MULTI, Vec::new);
                slot.many.resize_with(MULTI, Default::default);
                many.iter().zip(&mut slot.keys).for_each(|(asked, key)| write_key(asked, key));
            }
            StoreCall::Scan { from, .. } => self.keys.write(*from, KeyPresence::Present, &mut slot.key),
        }
        slot.call = Some(call);
        written as u64
    }

    #[inline]
    fn make(&self, slot: &mut CallBuffers) -> Result<()> {
        match &slot.call {
            Some(StoreCall::Get(_)) => slot.got.0 = self.engine.get(&slot.key, &mut slot.got.1)?,
            Some(StoreCall::Put { .. }) => self.engine.put(&slot.key, &slot.value)?,
            Some(StoreCall::Change(_)) => {
                slot.got.0 = self.engine.get(&slot.key, &mut slot.got.1)?;
                self.engine.put(&slot.key, &slot.value)?;
            }
            Some(StoreCall::MultiGet(_)) => self.engine.multi_get(&slot.keys, &mut slot.many)?,
            Some(StoreCall::Scan { skip, ranks, .. }) => {
                slot.rows.clear();
                slot.row_lengths.clear();
                let wanted = ranks.len();
                let (rows, lengths) = (&mut slot.rows, &mut slot.row_lengths);
                self.engine.scan(&slot.key, *skip, &mut |key, value| {
                    rows.extend_from_slice(key);
                    rows.extend_from_slice(value);
                    lengths.push((key.len(), value.len()));
                    lengths.len() < wanted
                })?;
            }
            None => {}
        }
        Ok(())
    }

    fn check(&self, slot: &CallBuffers) -> Result<()> {
        match &slot.call {
            Some(StoreCall::Get(asked) | StoreCall::Change(asked)) => self.check_one(asked, &slot.got),
            Some(StoreCall::MultiGet(many)) => {
                many.iter().zip(&slot.many).try_for_each(|(asked, got)| self.check_one(asked, got))
            }
            Some(StoreCall::Scan { ranks, .. }) => self.check_rows(ranks, slot),
            Some(StoreCall::Put { .. }) | None => Ok(()),
        }
    }

    /// Compares an answer with the expected one.
    pub fn check_one(&self, asked: &KeyLookup, (found, value): &(bool, Vec<u8>)) -> Result<()> {
        let generation = found.then(|| self.values.generation(asked.index, value));
        let right = match (asked.expect, generation) {
            (ExpectedAnswer::Nothing, None) => true,
            (ExpectedAnswer::Exactly(wanted), Some(Some(generation))) => generation == wanted,
            (ExpectedAnswer::Before(end), Some(Some(generation))) => generation < end,
            _ => false,
        };
        if right {
            Ok(())
        } else {
            Err(format!("WRONG ANSWER: {asked:?} returned generation {generation:?}").into())
        }
    }

    fn check_rows(&self, ranks: &[u64], slot: &CallBuffers) -> Result<()> {
        let mut rest = slot.rows.as_slice();
        let mut key = Vec::new();
        let wrong = |what: &str| Err(format!("WRONG ANSWER: a scan returned {what}").into());
        if slot.row_lengths.len() != ranks.len() {
            return wrong(&format!("{} rows instead of {}", slot.row_lengths.len(), ranks.len()));
        }
        for (rank, &(key_bytes, value_bytes)) in ranks.iter().zip(&slot.row_lengths) {
            self.keys.write(*rank, KeyPresence::Present, &mut key);
            let (row, after) = rest.split_at(key_bytes + value_bytes);
            rest = after;
            if row[..key_bytes] != key {
                return wrong("an unexpected key");
            }
            let value = &row[key_bytes..];
            let index = crate::keys::header(value).map(|(index, _)| index);
            let belongs = index.is_some_and(|index| self.keys.rank(index, KeyPresence::Present) == *rank);
            if !belongs || index.is_none_or(|index| self.values.generation(index, value).is_none()) {
                return wrong("a value that was not written for its key");
            }
        }
        Ok(())
    }

    /// Reads all rows. There must be `present` of them, in order, and their indexes must add up.
    pub fn scan_all(&self, present: u64) -> Result<CallTiming> {
        let mut seen = Pass::default();
        let begin = Instant::now();
        self.engine.scan(FIRST_KEY, 0, &mut |key, value| {
            seen.row(key, crate::keys::header(value).map_or(0, |(index, _)| index));
            true
        })?;
        let elapsed = begin.elapsed();
        seen.timing(present, (0..present).fold(0u64, u64::wrapping_add), elapsed)
    }

    /// Reads the keys of all rows. There must be `present` of them, in order, and their digits must add up.
    pub fn scan_all_keys(&self, present: u64) -> Result<CallTiming> {
        let mut seen = Pass::default();
        let begin = Instant::now();
        self.engine.scan_keys(FIRST_KEY, &mut |key| seen.row(key, tail(key)))?;
        let elapsed = begin.elapsed();
        let mut key = Vec::new();
        let expected = (0..present).fold(0u64, |sum, index| {
            self.keys.write(self.keys.rank(index, KeyPresence::Present), KeyPresence::Present, &mut key);
            sum.wrapping_add(tail(&key))
        });
        seen.timing(present, expected, elapsed)
    }
}

/// A key that sorts before all others. LMDB does not allow an empty key.
const FIRST_KEY: &[u8] = b"a";

/// The last eight bytes of a key, as a number.
fn tail(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// What a pass over a store has seen so far.
struct Pass {
    rows: u64,
    sum: u64,
    in_order: bool,
    last: Vec<u8>,
}

impl Default for Pass {
    fn default() -> Self {
        Pass { rows: 0, sum: 0, in_order: true, last: Vec::new() }
    }
}

impl Pass {
    #[inline]
    fn row(&mut self, key: &[u8], number: u64) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(number);
        self.in_order &= self.last.as_slice() < key;
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    fn timing(&self, present: u64, expected: u64, elapsed: Duration) -> Result<CallTiming> {
        let Pass { rows, sum, in_order, .. } = *self;
        if rows != present || sum != expected || !in_order {
            return Err(format!("WRONG ANSWER: a scan returned {rows} of {present} rows, in order: {in_order}, sum of numbers {sum} instead of {expected}").into());
        }
        let mut latencies = latency_histogram()?;
        latencies.saturating_record((elapsed.as_nanos() as u64 / rows.max(1)).max(1));
        let mean_ns = elapsed.as_nanos() as f64 / rows.max(1) as f64;
        Ok(CallTiming { calls: rows, mean_ns, latencies, keys_per_call: 1, user_bytes: 0 })
    }
}
