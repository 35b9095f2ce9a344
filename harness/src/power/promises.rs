//! What the store has promised at each moment, and whether what a crash left keeps the promises.

use super::fates::{self, Fates, FatesNow, Keyspaces};
use super::plan::Found;
use crate::support::Crash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// A number for each writer.
pub type PerWriter = Vec<u64>;

/// The promises so far, kept up to date by the threads that use the store.
#[derive(Debug)]
pub struct Promises {
    handed_over: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
    synced: Vec<AtomicU64>,
    ingest_begun: AtomicBool,
    ingest_done: AtomicBool,
    /// For each writer's batches: what was acknowledged when it was submitted.
    before: Vec<Mutex<Vec<PerWriter>>>,
    copies: Mutex<Vec<Copy>>,
    pub keyspaces: Fates,
}

/// A checkpoint.
#[derive(Debug, Clone)]
pub struct Copy {
    pub dir: String,
    /// What was acknowledged when it began.
    least: PerWriter,
    /// What had been submitted when it was finished; `None` until then.
    most: Option<PerWriter>,
}

/// The promises at one moment.
#[derive(Debug, Clone)]
pub struct Told {
    handed_over: PerWriter,
    pub acknowledged: PerWriter,
    pub synced: PerWriter,
    ingest_begun: bool,
    ingest_done: bool,
    pub copies: Vec<Copy>,
    keyspaces: FatesNow,
}

fn all(numbers: &[AtomicU64]) -> PerWriter {
    numbers.iter().map(|n| n.load(SeqCst)).collect()
}

impl Promises {
    /// For a store with these batches, of which these are durable.
    pub fn new(found: &Found, durable: &Found) -> Promises {
        let numbers = |found: &Found| found.batches.iter().map(|n| AtomicU64::new(*n)).collect();
        let nothing = vec![0; found.batches.len()];
        Promises {
            handed_over: numbers(found),
            acknowledged: numbers(found),
            synced: numbers(durable),
            ingest_begun: found.ingested.into(),
            ingest_done: durable.ingested.into(),
            before: found
                .batches
                .iter()
                .map(|n| Mutex::new(vec![nothing.clone(); *n as usize + 1]))
                .collect(),
            copies: Mutex::default(),
            keyspaces: Fates::new(&found.keyspaces),
        }
    }

    /// What a reader can see is durable: the store was opened.
    pub fn open(&self, keyspaces: &Keyspaces) {
        self.keyspaces.open(keyspaces);
        self.synced(&self.acknowledged());
        self.ingest_done.store(self.ingest_begun.load(SeqCst), SeqCst);
    }

    pub fn now(&self) -> Told {
        Told {
            synced: all(&self.synced),
            acknowledged: all(&self.acknowledged),
            handed_over: all(&self.handed_over),
            ingest_begun: self.ingest_begun.load(SeqCst),
            ingest_done: self.ingest_done.load(SeqCst),
            copies: self.copies.lock().unwrap().clone(),
            keyspaces: self.keyspaces.now(),
        }
    }

    /// Call before batch number `i` of a writer is submitted. Returns what was acknowledged by then.
    pub fn hand_over(&self, writer: usize, i: u64) -> PerWriter {
        let before = all(&self.acknowledged);
        let mut of_writer = self.before[writer].lock().unwrap();
        assert_eq!(of_writer.len() as u64, i);
        of_writer.push(before.clone());
        self.handed_over[writer].store(i, SeqCst);
        before
    }

    pub fn acknowledge(&self, writer: usize, i: u64) {
        self.acknowledged[writer].store(i, SeqCst);
    }

    /// What an operation that begins now makes durable.
    pub fn acknowledged(&self) -> PerWriter {
        all(&self.acknowledged)
    }

    pub fn synced(&self, up_to: &[u64]) {
        for (synced, up_to) in self.synced.iter().zip(up_to) {
            synced.fetch_max(*up_to, SeqCst);
        }
    }

    pub fn begin_ingest(&self) {
        self.ingest_begun.store(true, SeqCst);
    }

    pub fn finish_ingest(&self) {
        self.ingest_done.store(true, SeqCst);
    }

    /// Returns the number of the checkpoint.
    pub fn begin_copy(&self, dir: &str) -> usize {
        let mut copies = self.copies.lock().unwrap();
        copies.push(Copy { dir: dir.to_owned(), least: self.acknowledged(), most: None });
        copies.len() - 1
    }

    pub fn finish_copy(&self, number: usize) {
        self.copies.lock().unwrap()[number].most = Some(all(&self.handed_over));
    }

    /// Whether every batch present has all those acknowledged before it was submitted.
    fn check_order(&self, found: &Found) -> Result<(), String> {
        for (writer, n) in found.batches.iter().enumerate() {
            let before = &self.before[writer].lock().unwrap()[*n as usize];
            if before.iter().zip(&found.batches).any(|(before, found)| found < before) {
                return Err(format!(
                    "batch {n} of writer {writer} is there, but not the batches {before:?} that were acknowledged before it was handed \
                     over: found {:?}",
                    found.batches
                ));
            }
        }
        Ok(())
    }

    fn check(&self, found: &Found, least: &[u64], most: &[u64]) -> Result<(), String> {
        let order = |low: &[u64], high: &[u64]| low.iter().zip(high).all(|(low, high)| low <= high);
        if !order(least, &found.batches) {
            return Err(format!("batches {least:?} must be there, found {:?}", found.batches));
        }
        if !order(&found.batches, most) {
            return Err(format!("batches {most:?} were handed over, found {:?}", found.batches));
        }
        self.check_order(found)
    }

    /// Checks what a crash left of the store.
    pub fn check_store(&self, told: &Told, found: &Found, crash: Crash) -> Result<(), String> {
        let least = if crash == Crash::Kill { &told.acknowledged } else { &told.synced };
        if told.ingest_done && !found.ingested {
            return Err("the ingested rows are lost".into());
        }
        if found.ingested && !told.ingest_begun {
            return Err("rows are there that were not ingested yet".into());
        }
        fates::check(&told.keyspaces, &found.keyspaces)?;
        self.check(found, least, &told.handed_over)
    }

    /// Checks what a reader finds now. `least` was acknowledged before it began to read.
    pub fn check_reader(&self, found: &Found, least: &[u64]) -> Result<(), String> {
        self.check(found, least, &all(&self.handed_over))
    }

    /// Checks a checkpoint that can be opened.
    pub fn check_copy(&self, told: &Told, copy: &Copy, found: &Found) -> Result<(), String> {
        if told.ingest_done && !found.ingested {
            return Err("the ingested rows are missing".into());
        }
        self.check(found, &copy.least, copy.most.as_ref().unwrap_or(&told.handed_over))
    }
}

impl Told {
    /// What a further loss of power cannot take from a store that holds `found` after this crash.
    pub fn durable(&self, found: &Found, crash: Crash) -> Found {
        match crash {
            Crash::Kill => {
                let (batches, keyspaces) = (self.synced.clone(), found.keyspaces.clone());
                Found { ingested: self.ingest_done, batches, keyspaces }
            }
            Crash::PowerOrdered | Crash::Power => found.clone(),
        }
    }

    /// Whether the store is empty, because nothing was ingested yet.
    pub fn must_ingest(&self) -> bool {
        !self.ingest_begun
    }
}

impl Copy {
    pub fn is_finished(&self) -> bool {
        self.most.is_some()
    }
}
