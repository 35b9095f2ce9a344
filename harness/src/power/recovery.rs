//! Power is lost again while a store recovers, or while it is repaired.

use super::check::{Checker, Outcome, digest, failed, same};
use super::life::Image;
use super::plan::Found;
use crate::support::{Crash, STORE, SimFs};
use sidebloom::fs::Fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// The disk at one moment of a recovery.
struct Step {
    fs: SimFs,
    at: String,
    /// Whether the opening had returned.
    is_open: bool,
}

/// How often another crash interrupts a recovery.
const DEPTH_MAX: u64 = 3;

impl Checker<'_> {
    /// Recovers what `crash` left, and crashes at each write of the recovery. `found` are its contents.
    pub fn crash_in_recovery(
        &mut self,
        image: &Image,
        fs: &SimFs,
        crash: Crash,
        found: &Found,
        depth: u64,
    ) -> Outcome<()> {
        for step in self.recover(fs)? {
            for second in [Crash::Kill, *self.rng.pick(&[Crash::PowerOrdered, Crash::Power, Crash::Power])] {
                let seed = self.rng.next();
                let after = step.fs.crash(second, seed);
                let what = || format!("recovery {depth}, before {}, {second:?} {seed}", step.at);
                let inside = if step.is_open { "crashes after recovery" } else { "crashes inside recovery" };
                self.counts.add(inside, 1);
                let key = digest(&after, STORE);
                let again = match self.known.get(&key).cloned() {
                    Some(again) => again,
                    None => self.read(&after, false).map_err(|e| format!("{}: {e}", what()))?,
                };
                self.known.insert(key, again.clone());
                // What survived only the kill can still be lost, until the opening has returned.
                let is_certain = crash != Crash::Kill || second == Crash::Kill || step.is_open;
                if is_certain {
                    same("recovered", &again, found)
                } else {
                    self.promises.check_store(&image.told, &again, Crash::Power)
                }
                .map_err(|e| format!("{}: {e}", what()))?;
                if depth < DEPTH_MAX && self.rng.below(200) == 0 {
                    let worst = if is_certain { second } else { Crash::Power };
                    self.crash_in_recovery(image, &after, worst, &again, depth + 1)
                        .map_err(|e| format!("{}: {e}", what()))?;
                }
            }
        }
        Ok(())
    }

    /// Repairs an intact store, perhaps without its manifest, and crashes at each writing operation of the
    /// repair. `found` are its contents.
    pub fn crash_in_repair(&mut self, fs: &SimFs, found: &Found) -> Outcome<()> {
        let fs = fs.crash(Crash::Kill, 0);
        drop(self.options(&fs).open(STORE).map_err(failed("opening before a repair"))?);
        if self.rng.percent(50) {
            // Until the renames of obsolete segments are durable, these look live without a manifest.
            let store = Path::new(STORE);
            let removed = fs.sync_dir(store).and_then(|()| fs.remove(&store.join("MANIFEST")));
            removed.and_then(|()| fs.sync_dir(store)).map_err(failed("removing the manifest"))?;
        }
        let steps = watch(&fs, &Arc::default());
        self.repair(&fs)?;
        let steps = std::mem::take(&mut *steps.lock().unwrap());
        for step in steps {
            for second in [Crash::Kill, Crash::PowerOrdered, Crash::Power] {
                let seed = self.rng.next();
                let after = step.fs.crash(second, seed);
                self.counts.add("crashes inside repair", 1);
                self.repair_and_read(&after)
                    .and_then(|again| same("repaired", &again, found))
                    .map_err(|e| format!("repair, before {}, {second:?} {seed}: {e}", step.at))?;
            }
        }
        Ok(())
    }

    fn repair_and_read(&mut self, fs: &SimFs) -> Outcome<Found> {
        self.repair(fs)?;
        let db = self.options(fs).open(STORE).map_err(failed("opening"))?;
        self.read_open(&db)
    }

    fn repair(&mut self, fs: &SimFs) -> Outcome<()> {
        let report = self.options(fs).repair(STORE).map_err(failed("repair"))?;
        if report.lost.is_empty() {
            Ok(())
        } else {
            Err(format!("an intact store loses something: {report:?}"))
        }
    }

    /// Opens and closes the store on a copy of the disk.
    fn recover(&mut self, fs: &SimFs) -> Outcome<Vec<Step>> {
        let fs = fs.crash(Crash::Kill, 0);
        let is_open = Arc::new(AtomicBool::new(false));
        let steps = watch(&fs, &is_open);
        let db = self.options(&fs).open(STORE).map_err(failed("opening"))?;
        is_open.store(true, SeqCst);
        drop(db);
        Ok(std::mem::take(&mut *steps.lock().unwrap()))
    }
}

/// Takes the disk at each writing operation from now on.
fn watch(fs: &SimFs, is_open: &Arc<AtomicBool>) -> Arc<Mutex<Vec<Step>>> {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let (sink, is_open) = (Arc::clone(&steps), Arc::clone(is_open));
    fs.watch(move |moment| {
        let at = format!("{} {} {}", moment.number(), moment.kind.op(), moment.path.display());
        let step = Step { fs: moment.crash(Crash::Kill, 0), at, is_open: is_open.load(SeqCst) };
        sink.lock().unwrap().push(step);
    });
    steps
}
