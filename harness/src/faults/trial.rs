//! The state of one execution of a workload under a fault.

use super::history::Model;
use super::judge::{Call, poisons};
use super::neighbour::Neighbour;
use super::plan::is_lasting_shortage;
use super::shared::Shared;
use super::workload::Workload;
use crate::brief;
use crate::contents::rows;
use crate::generations;
use crate::support::{Contents, Crash, Fault, Rng, STORE, SimFs};
use sidebloom::fs::Fs;
use sidebloom::{Db, Options, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A copy of the disk, as a crash at some moment leaves it, and what it must have.
pub struct Crashed {
    pub fs: SimFs,
    pub crash: Crash,
    pub model: Model,
    pub least: Vec<u64>,
    pub copies: Vec<Copied>,
    pub neighbour: Neighbour,
}

/// A successful checkpoint, with the part of its contents that is certain.
#[derive(Debug, Clone)]
pub struct Copied {
    pub path: String,
    pub contents: Contents,
    pub neighbour: Neighbour,
}

pub struct Trial<'a> {
    pub shared: Arc<Shared>,
    pub workload: &'a Workload,
    pub fault: Option<Fault>,
    pub rng: Rng,
    pub crashed: Option<Crashed>,
    pub copies: Vec<Copied>,
    /// Targets of checkpoints that failed.
    pub failed_copies: Vec<String>,
    /// The number of faults when the store was opened. They stop no writes.
    pub opened_at: usize,
    /// The faults during an ingestion. Its segments are not part of the store yet.
    pub of_ingest: Range<usize>,
    /// Whether a repair reported losses. Then only the store's own checks remain.
    pub has_losses: bool,
    pub seen: usize,
    pub copy_number: u32,
    pub neighbour: Neighbour,
}

/// How long shortages of descriptors last, in milliseconds. Background work pauses for 50 ms after its first
/// failure, and doubles the pause each time, so that five attempts fail in the longest.
const SHORTAGES_MS: [u64; 8] = [0, 5, 40, 40, 150, 150, 150, 1000];

/// Ends a shortage after this time, at the store's next operation that waits for its end.
fn end_shortage(fs: &SimFs, after: Duration) {
    let began = OnceLock::<Instant>::new();
    fs.before_each(move |fs, _, _| {
        if began.get().is_none() && fs.has_struck() {
            _ = began.set(Instant::now());
        }
        if began.get().is_some_and(|began| began.elapsed() > after) {
            fs.heal();
        }
    });
}

impl<'a> Trial<'a> {
    pub fn new(workload: &'a Workload, fault: Option<Fault>) -> Self {
        let mut rng = Rng::new(
            workload.seed ^ fault.map_or(0, |f| f.after << 8 | u64::from(f.errno.code() as u32) << 30),
        );
        let fs = SimFs::new();
        if let Some(fault) = fault {
            if is_lasting_shortage(&fault) {
                end_shortage(&fs, Duration::from_millis(*rng.pick(&SHORTAGES_MS)));
            }
            fs.fail(fault);
        }
        let shared = Arc::new(Shared {
            what: format!("workload {}, {fault:?}", workload.seed),
            fs,
            earlier: AtomicUsize::new(0),
            patience: *rng.pick(&[1, 2, 4, u64::MAX]),
            errors: AtomicU64::new(0),
            model: workload.model().into(),
        });
        let (copies, failed_copies, of_ingest) = Default::default();
        Trial {
            shared,
            workload,
            fault,
            rng,
            crashed: None,
            copies,
            failed_copies,
            opened_at: 0,
            of_ingest,
            has_losses: false,
            seen: 0,
            copy_number: 0,
            neighbour: Neighbour::new(),
        }
    }

    pub fn fs(&self) -> &SimFs {
        &self.shared.fs
    }

    pub fn strikes(&self) -> usize {
        self.shared.strikes().len()
    }

    /// Opens the store. A fault that occurs once fails at most one opening; a lasting one is lifted.
    pub fn open(&mut self, options: impl Fn() -> Options) -> Db {
        let mut left = 1;
        loop {
            let may_fail = left > 0;
            self.shared.begin();
            match options().open(STORE) {
                Ok(db) => return db,
                Err(error) => {
                    self.shared.explain(Call::Open, &error);
                    assert!(may_fail, "{}: opens without a fault fail: {error}", self.shared.what);
                    if self.fault.is_some_and(|fault| fault.forever) && self.rng.percent(70) {
                        self.fs().heal();
                    }
                    left = self.fs().faults_left();
                }
            }
            if left > 0 && self.strikes() > 20 {
                self.fs().heal();
                left = 0;
            }
        }
    }

    /// Checks that an open store has everything acknowledged; the rest is decided from here on.
    pub fn settle(&mut self, db: &Db, when: &str) {
        let backwards = self.rng.percent(50);
        let found = self.read_despite_faults(|| rows(db.iter(), backwards));
        let neighbour = self.read_despite_faults(|| generations::find(db));
        let what = format!("{}: {when}", self.shared.what);
        self.neighbour.settle(neighbour, &what);
        self.shared.check_brief(brief::find_expired(db));
        let mut model = self.shared.model();
        let least = model.last_acknowledged();
        model.settle(&found, &least, &what);
    }

    fn read_despite_faults<T>(&self, read: impl Fn() -> Result<T>) -> T {
        loop {
            match read() {
                Ok(found) => return found,
                Err(error) => {
                    self.shared.explain(Call::Read, &error);
                    if self.fault.is_some_and(|fault| fault.forever) {
                        self.fs().heal();
                    }
                }
            }
        }
    }

    /// Copies the disk as a crash leaves it, soon after the first fault.
    pub fn crash_if_struck(&mut self) {
        let strikes = self.strikes();
        let is_news = std::mem::replace(&mut self.seen, strikes) < strikes;
        if !is_news || self.crashed.is_some() || !self.rng.percent(40) {
            return;
        }
        let crash = *self.rng.pick(&[Crash::Kill, Crash::Power, Crash::PowerOrdered]);
        let least = {
            let model = self.shared.model();
            if crash == Crash::Kill { model.last_acknowledged() } else { model.synced() }
        };
        let fs = self.shared.fs.crash(crash, self.rng.next());
        let model = self.shared.model().clone();
        let (copies, neighbour) = (self.copies.clone(), self.neighbour.clone());
        self.crashed = Some(Crashed { fs, crash, model, least, copies, neighbour });
    }

    /// Whether a fault has made the open store read-only.
    pub fn must_be_poisoned(&self) -> bool {
        let strikes = self.shared.strikes();
        let mut strikes = strikes.iter().enumerate().skip(self.opened_at);
        strikes.any(|(at, strike)| {
            let is_segment = strike.path.extension().is_some_and(|its| its == "segment" || its == "obsolete");
            poisons(strike) && !(is_segment && self.of_ingest.contains(&at))
        })
    }

    /// Whether the directory of a failed checkpoint still exists.
    pub fn exists(&self, path: &str) -> bool {
        self.fs().file_len(path.as_ref()).unwrap_or_else(|error| panic!("{error}")).is_some()
    }
}
