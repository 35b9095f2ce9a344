//! What must hold once the fault is gone: in the open store, after reopening, and after a crash.

use super::history::{Model, assert_same};
use super::judge::Call;
use super::trial::{Copied, Crashed, Trial};
use super::workload::options;
use crate::contents::{part_of, rows};
use crate::generations;
use crate::support::{Contents, Crash, OpKind, Rng, STORE, SimFs};
use sidebloom::{Db, Durability, Error, FilterPolicy, Stats};
use std::path::Path;
use std::time::{Duration, Instant};

/// Checks a store that was open during the fault.
pub fn check_live(trial: &mut Trial<'_>, db: &Db) {
    let shared = trial.shared.clone();
    let what = &shared.what;
    let is_poisoned = waits_until_poisoned(trial, db);
    let must = trial.must_be_poisoned();
    assert!(is_poisoned || !must, "{what}: a failed write was not noticed: {:?}", shared.strikes());
    check_contents(db, &shared.model().live(), &format!("{what}: live"));
    let found =
        generations::find(db).unwrap_or_else(|error| panic!("{what}: the disk is sound, but: {error}"));
    trial.neighbour.check(found, &format!("{what}: live"));
    check_verified(db, &format!("{what}: live"));
    if is_poisoned {
        return check_refusals(db, what);
    }
    let written = shared.write(db, 0, Durability::Sync);
    written.unwrap_or_else(|error| panic!("{what}: the disk is sound, but a write fails: {error}"));
    let could_remove = !shared.strikes().iter().any(|s| matches!(s.kind, OpKind::Remove | OpKind::Inspect));
    for path in trial.failed_copies.split_off(0) {
        if could_remove {
            assert!(!trial.exists(&path), "{what}: {path}, whose checkpoint failed, is still there");
            db.checkpoint(&path).unwrap_or_else(|error| panic!("{what}: the second checkpoint: {error}"));
            let (contents, neighbour) = (shared.model().live(), trial.neighbour.clone());
            trial.copies.push(Copied { path, contents, neighbour });
        }
    }
    let quarantined = db.stats().segments_quarantined;
    let is_damaged = shared.strikes().iter().any(|strike| !strike.errno.is_of_descriptors());
    assert!(quarantined == 0 || is_damaged, "{what}: a shortage of descriptors put a segment in quarantine");
    if quarantined > 0 || trial.rng.percent(10) {
        db.compact()
            .unwrap_or_else(|error| panic!("{what}: the disk is sound, but compaction fails: {error}"));
        let left = db.stats().segments_quarantined;
        assert_eq!(left, 0, "{what}: segments stay in quarantine although they are readable");
        check_contents(db, &shared.model().live(), &format!("{what}: out of quarantine"));
    }
}

/// Waits for background work. Returns whether the store has become read-only.
fn waits_until_poisoned(trial: &Trial<'_>, db: &Db) -> bool {
    for _ in 0..20 {
        match db.wait_for_compaction() {
            Ok(()) => return false,
            Err(error) => {
                trial.shared.explain(Call::Wait, &error);
                if matches!(error, Error::Poisoned { .. }) {
                    return true;
                }
            }
        }
    }
    panic!("{}: the disk is sound, but background work fails", trial.shared.what);
}

/// A store that a failure made read-only refuses every write with the same cause.
fn check_refusals(db: &Db, what: &str) {
    let refusals = [
        db.put("a/refused", ""),
        db.sync(),
        db.flush(),
        db.compact(),
        db.wait_for_compaction(),
        db.rebuild_filters(FilterPolicy::default()).map(|_| ()),
        db.checkpoint("disk/refused"),
        db.ingest([Ok(("i", ""))]),
    ];
    let causes = refusals.map(|refusal| match refusal {
        Err(Error::Poisoned { cause }) => cause,
        other => panic!("{what}: a read-only store did not refuse a write: {other:?}"),
    });
    assert!(causes.iter().all(|cause| *cause == causes[0]), "{what}: {causes:?}");
}

#[track_caller]
fn check_contents(db: &Db, expected: &Contents, what: &str) {
    for backwards in [false, true] {
        let found = rows(db.iter(), backwards)
            .unwrap_or_else(|error| panic!("{what}: the disk is sound, but: {error}"));
        assert_same(&found, expected, what);
    }
    for (key, value) in expected.iter().step_by(5) {
        let found = db.get(key).unwrap_or_else(|error| panic!("{what}: the disk is sound, but: {error}"));
        assert_eq!(found.as_deref(), Some(value.as_slice()), "{what}: get \"{}\"", key.escape_ascii());
        let missing = [key.as_slice(), b"?"].concat();
        let found =
            db.get(&missing).unwrap_or_else(|error| panic!("{what}: the disk is sound, but: {error}"));
        assert_eq!(found.as_deref(), None, "{what}: get \"{}\"", missing.escape_ascii());
    }
}

fn check_verified(db: &Db, what: &str) {
    let report = db.verify().unwrap_or_else(|error| panic!("{what}: verify: {error}"));
    assert!(report.is_ok(), "{what}: verify found {:?}", report.problems);
}

/// Checks what the execution leaves: the reopened store, the disk after a crash, and the checkpoints.
pub fn check_left(mut trial: Trial<'_>) {
    let shared = trial.shared.clone();
    let fs = shared.fs.clone();
    let written_again = fs.written_again();
    assert!(written_again.is_empty(), "{}: written again after a failure: {written_again:?}", shared.what);
    fs.heal();
    let seed = trial.rng.next();
    let what = format!("{}: reopened", shared.what);
    let db = trial.open(|| options(seed, &fs));
    if trial.has_losses {
        return check_verified(&db, &what);
    }
    trial.settle(&db, "reopened");
    let written = shared.write(&db, 0, Durability::Sync);
    written.unwrap_or_else(|error| panic!("{what}: {error}"));
    db.wait_for_compaction().unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut stats = db.stats();
    if stats.segments_quarantined > 0 {
        db.compact().unwrap_or_else(|error| panic!("{what}: {error}"));
        stats = db.stats();
        assert_eq!(stats.segments_quarantined, 0, "{what}: segments stay in quarantine");
    }
    check_tidy(stats, &db, &fs, &what);
    check_contents(&db, &shared.model().live(), &what);
    check_verified(&db, &what);
    drop(db);
    if let Some(crashed) = trial.crashed.take() {
        check_crashed(crashed, &mut trial.rng, &shared.what);
    }
    let count = trial.copies.len();
    for copied in trial.copies.drain(..).skip(count.saturating_sub(1)) {
        check_copy(&fs, &copied, trial.rng.next(), &shared.what);
    }
}

fn check_crashed(crashed: Crashed, rng: &mut Rng, what: &str) {
    let Crashed { fs, crash, mut model, least, copies, neighbour } = crashed;
    let what = format!("{what}: after {crash:?}");
    let seed = rng.next();
    let db = options(seed, &fs).open(STORE).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = rows(db.iter(), rng.percent(50)).unwrap_or_else(|error| panic!("{what}: {error}"));
    Model::settle(&mut model, &found, &least, &what);
    neighbour.check(generations::find(&db).unwrap_or_else(|error| panic!("{what}: {error}")), &what);
    check_verified(&db, &what);
    drop(db);
    // A checkpoint is durable, its names included.
    for copied in copies.iter().filter(|_| crash != Crash::Kill) {
        check_copy(&fs, copied, seed, &what);
    }
}

/// A checkpoint has what the first writer had before it.
fn check_copy(fs: &SimFs, copied: &Copied, seed: u64, what: &str) {
    let Copied { path, contents, neighbour } = copied;
    let what = format!("{what}: checkpoint {path}");
    let copy = options(seed, fs).read_only(seed.is_multiple_of(2)).open(path);
    let copy = copy.unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = rows(copy.iter(), false).unwrap_or_else(|error| panic!("{what}: {error}"));
    let of_second = |key: &[u8]| key.first() == Some(&b'b');
    let certain = |all: &Contents| part_of(all, |key| !of_second(key));
    assert_same(&certain(&found), &certain(contents), &what);
    neighbour.check(generations::find(&copy).unwrap_or_else(|error| panic!("{what}: {error}")), &what);
    check_verified(&copy, &what);
}

/// Only the store's live files are left, at the latest once the last reader of a replaced segment is gone.
fn check_tidy(mut stats: Stats, db: &Db, fs: &SimFs, what: &str) {
    let started = Instant::now();
    while let Some(wrong) = untidy(&stats, fs) {
        assert!(started.elapsed() < Duration::from_secs(5), "{what}: {wrong}");
        std::thread::sleep(Duration::from_millis(1));
        stats = db.stats();
    }
}

/// A file that does not belong to the store, or a wrong number of files.
fn untidy(stats: &Stats, fs: &SimFs) -> Option<String> {
    let files = fs.files();
    let names: Vec<&str> = files
        .iter()
        .filter(|path| path.parent() == Some(Path::new(STORE)))
        .filter_map(|path| path.file_name()?.to_str())
        .filter(|name| !name.contains(".damaged"))
        .collect();
    let count = |ending: &str| names.iter().filter(|name| name.ends_with(ending)).count();
    let live: usize = stats.levels.iter().map(|level| level.segments).sum();
    let is_orphan = |name: &&&str| {
        name.strip_suffix(".filter")
            .is_some_and(|number| !names.contains(&format!("{number}.segment").as_str()))
    };
    let is_known = |name: &&str| {
        let known = [".wal", ".segment", ".filter"].iter().any(|ending| name.ends_with(ending));
        known || ["LOCK", "MANIFEST"].contains(name)
    };
    if let Some(name) = names.iter().find(|name| !is_known(name)).or(names.iter().find(is_orphan)) {
        return Some(format!("{name} was left over"));
    }
    let (segments, logs) = (count(".segment"), count(".wal"));
    (segments != live || logs != 1)
        .then(|| format!("{segments} segment files for {live} segments, {logs} logs: {names:?}"))
}
