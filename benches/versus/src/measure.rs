//! Makes the calls of a workload, times them, and checks the answers.
//!
//! Calls are generated, made and checked in chunks, so that only the calls are timed. Most chunks are timed
//! as a whole, which gives mean and throughput without the clock's 25 ns. In the other chunks each call is
//! timed, which gives the percentiles.

use crate::engine::Engine;
use crate::error::Result;
use crate::kernel;
use crate::keys::{KeyGenerator, KeyPresence, ValueGenerator};
use crate::workload::{CallGenerator, ExpectedAnswer, KeyLookup, StoreCall, WorkloadKind};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

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
    /// Calls that are made one at a time: the CPU time of their threads.
    pub cpu: CallCpu,
}

/// The CPU time of the threads that make calls, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallCpu {
    /// All of it.
    pub all_ns: u64,
    /// The part that generates and checks the calls.
    pub aside_ns: u64,
}

impl CallCpu {
    /// Adds another thread's.
    pub fn add(&mut self, other: CallCpu) {
        self.all_ns += other.all_ns;
        self.aside_ns += other.aside_ns;
    }

    /// The share of the calls themselves.
    pub fn share_of_calls(self) -> f64 {
        if self.all_ns == 0 { 1.0 } else { 1.0 - self.aside_ns as f64 / self.all_ns as f64 }
    }
}

impl CallTiming {
    /// Figures per key, if the calls get many keys.
    pub fn per_key(self, kind: WorkloadKind) -> Self {
        let WorkloadKind::MultiGet { keys, .. } = kind else { return self };
        let (calls, mean_ns) = (self.calls * keys as u64, self.mean_ns / keys as f64);
        CallTiming { calls, mean_ns, keys_per_call: keys as u64, ..self }
    }
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
    counted: u64,
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
        let at_once = generator.calls_at_once();
        let mut slots: Vec<CallBuffers> = (0..at_once).map(|_| CallBuffers::default()).collect();
        let (mut whole_ns, mut whole_calls, mut detailed_ns, mut user_bytes) = (0u64, 0u64, 0u64, 0u64);
        // Asking for a thread's CPU time takes as long as a short call.
        let cpu_ns = || if at_once == 1 { kernel::thread_cpu_ns() } else { 0 };
        let began = cpu_ns();
        let (mut cpu, mut aside_since) = (CallCpu::default(), began);
        let chunks = calls.div_ceil(at_once);
        for chunk in 0..chunks {
            let slots = &mut slots[..at_once.min(calls - chunk * at_once) as usize];
            for slot in slots.iter_mut() {
                user_bytes += self.prepare(slot, generator.next_call());
            }
            cpu.aside_ns += cpu_ns() - aside_since;
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
            aside_since = cpu_ns();
            slots.iter().try_for_each(|slot| self.check(slot))?;
        }
        let ended = cpu_ns();
        cpu.aside_ns += ended - aside_since;
        cpu.all_ns = ended - began;
        let mean_ns = match whole_calls {
            0 => detailed_ns as f64 / calls as f64,
            _ => whole_ns as f64 / whole_calls as f64,
        };
        Ok(CallTiming { calls, mean_ns, latencies, keys_per_call: 1, user_bytes, cpu })
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
                slot.keys.resize_with(many.len(), Vec::new);
                slot.many.resize_with(many.len(), Default::default);
                many.iter().zip(&mut slot.keys).for_each(|(asked, key)| write_key(asked, key));
            }
            StoreCall::Scan { from, .. } => self.keys.write(*from, KeyPresence::Present, &mut slot.key),
            StoreCall::Count { .. } => self.keys.write(0, KeyPresence::Present, &mut slot.key),
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
            Some(StoreCall::Count { .. }) => slot.counted = self.engine.count(&slot.key)?,
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
            Some(StoreCall::Scan { ranks, expect, .. }) => self.check_rows(ranks, *expect, slot),
            Some(StoreCall::Count { rows }) if slot.counted != *rows => {
                Err(format!("WRONG ANSWER: counted {} rows instead of {rows}", slot.counted).into())
            }
            Some(StoreCall::Count { .. }) => Ok(()),
            Some(StoreCall::Put { .. }) | None => Ok(()),
        }
    }

    /// Compares an answer with the expected one.
    pub fn check_one(&self, asked: &KeyLookup, (found, value): &(bool, Vec<u8>)) -> Result<()> {
        let generation = found.then(|| self.values.generation(asked.index, value));
        if asked.expect.is(generation) {
            Ok(())
        } else {
            Err(format!("WRONG ANSWER: {asked:?} returned generation {generation:?}").into())
        }
    }

    fn check_rows(&self, ranks: &[u64], expect: ExpectedAnswer, slot: &CallBuffers) -> Result<()> {
        let mut rest = slot.rows.as_slice();
        let mut key = Vec::new();
        if slot.row_lengths.len() != ranks.len() {
            let (found, wanted) = (slot.row_lengths.len(), ranks.len());
            return Err(format!("WRONG ANSWER: a scan returned {found} rows instead of {wanted}").into());
        }
        for (rank, &(key_bytes, value_bytes)) in ranks.iter().zip(&slot.row_lengths) {
            self.keys.write(*rank, KeyPresence::Present, &mut key);
            let (row, after) = rest.split_at(key_bytes + value_bytes);
            rest = after;
            let (found, value) = row.split_at(key_bytes);
            self.check_row(&key, *rank, expect, found, value)?;
        }
        Ok(())
    }

    /// Compares a row of a scan with the expected key and value.
    fn check_row(
        &self,
        key: &[u8],
        rank: u64,
        expect: ExpectedAnswer,
        found: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let wrong = |what: &str| Err(format!("WRONG ANSWER: a scan returned {what}").into());
        if found != key {
            return wrong("an unexpected key");
        }
        let index = crate::keys::header(value).map(|(index, _)| index);
        let Some(index) = index.filter(|index| self.keys.rank(*index, KeyPresence::Present) == rank) else {
            return wrong("a value that was not written for its key");
        };
        let generation = self.values.generation(index, value);
        if expect.is(Some(generation)) {
            Ok(())
        } else {
            wrong(&format!("generation {generation:?} of a value instead of {expect:?}"))
        }
    }

    /// Compares all rows, in order, with the expected keys and values.
    pub fn check_all_rows(&self, ranks: &[u64], expect: ExpectedAnswer) -> Result<()> {
        let (mut first, mut key) = (Vec::new(), Vec::new());
        let (mut expected, mut checked) = (ranks.iter(), Ok(()));
        self.keys.write(0, KeyPresence::Present, &mut first);
        self.engine.scan(&first, 0, &mut |found, value| {
            checked = match expected.next() {
                Some(&rank) => {
                    self.keys.write(rank, KeyPresence::Present, &mut key);
                    self.check_row(&key, rank, expect, found, value)
                }
                None => Err("WRONG ANSWER: a scan returned a row too many".into()),
            };
            checked.is_ok()
        })?;
        checked?;
        match expected.len() {
            0 => Ok(()),
            missing => Err(format!("WRONG ANSWER: a scan ended {missing} rows too early").into()),
        }
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
        Ok(CallTiming {
            calls: rows,
            mean_ns,
            latencies,
            keys_per_call: 1,
            user_bytes: 0,
            cpu: CallCpu::default(),
        })
    }
}

#[cfg(test)]
mod tests;
