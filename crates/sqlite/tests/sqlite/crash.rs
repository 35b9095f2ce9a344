//! A guard in front of a real SQLite database: refreshes during writes, and kills between both commits.

use crate::support::{Case, check, titles};
use sidebloom::Durability;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardOptions};
use sidebloom_sqlite::rusqlite::{self, Connection};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const REFRESHES: usize = 12;

/// The rows, by their id.
fn rows(db: &Connection) -> Vec<(i64, String)> {
    let mut select = db.prepare("SELECT id, title FROM songs").unwrap();
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn refresh_under_load(journal: &str) {
    let case = Case::new(&format!(
        "PRAGMA journal_mode = {journal}; CREATE TABLE songs (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT);
         CREATE INDEX by_title ON songs (title);
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
         INSERT INTO songs (title) SELECT 'title ' || (i % 500) FROM n",
    ));
    let options = GuardOptions::new().durability(Durability::Os).memtable_bytes(64 << 10);
    let guard = options.build_from(case.guard(), &mut case.source()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for writer in 0..3 {
            let (guard, case, done) = (&guard, &case, &done);
            writers.push(scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(writer);
                let mut db = case.db();
                db.pragma_update(None, "synchronous", "OFF").unwrap();
                let mut transactions = 0u64;
                while !done.load(Relaxed) {
                    let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
                    let mut changes = guard.transaction();
                    for _ in 0..random.usize(1..4) {
                        let title = format!("title {}", random.u32(..1000));
                        if random.bool() {
                            tx.execute("INSERT INTO songs (title) VALUES (?)", [&title]).unwrap();
                            changes.insert(&title).unwrap();
                        } else {
                            let sql = "DELETE FROM songs WHERE rowid = (SELECT rowid FROM songs WHERE title = ? LIMIT 1)";
                            if tx.execute(sql, [&title]).unwrap() == 1 {
                                changes.remove(&title).unwrap();
                            }
                        }
                    }
                    sidebloom_sqlite::commit(changes, tx).unwrap();
                    transactions += 1;
                }
                transactions
            }));
        }
        let refresher = scope.spawn(|| {
            let mut source = case.source().busy_timeout(Duration::from_secs(60)).unwrap();
            let db = case.db();
            for _ in 0..REFRESHES {
                guard.refresh(&mut source).unwrap();
                // The guard is asked after the rows were read, so it must know all of them.
                for (id, title) in rows(&db) {
                    if guard.may_contain(&title) == Verdict::Absent {
                        // That is right if the row was deleted since. An `id` is never given to a second row.
                        let mut again = db.prepare_cached("SELECT 1 FROM songs WHERE id = ?").unwrap();
                        assert!(!again.exists([id]).unwrap(), "{title} exists and was denied");
                    }
                }
            }
        });
        let refreshed = refresher.join();
        done.store(true, Relaxed);
        let written: Vec<u64> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        refreshed.unwrap();
        assert!(written.iter().all(|transactions| *transactions > 0), "{written:?}");
    });
    check(&guard, &case.db());
    let report = guard.reconcile(&mut case.source()).unwrap();
    assert_eq!(report.missing, 0);
    let (stats, titles) = (guard.stats(), titles(&case.db()));
    assert_eq!((stats.rows, stats.keys), (titles.values().sum(), titles.len() as u64));
    titles.iter().for_each(|(title, rows)| assert_eq!(guard.count(title).unwrap(), *rows, "{title}"));
}

#[test]
fn refreshes_under_load_never_deny_a_row_with_a_write_ahead_log() {
    refresh_under_load("WAL");
}

#[test]
fn refreshes_under_load_never_deny_a_row_with_a_rollback_journal() {
    refresh_under_load("DELETE");
}

const DIR: &str = "SIDEBLOOM_TEST_KILLED_GUARD";
const KILLS: u64 = 300;

/// Writes to the database and the guard until killed. Says so after none to seven commits: on a slow disk, a
/// kill after a random time would meet hardly any.
fn write_until_killed(dir: &Path) -> ! {
    let options = GuardOptions::new().memtable_bytes(64 << 10);
    let guard = options.open(dir.join("songs.guard")).unwrap();
    let mut db = Connection::open(dir.join("songs.sqlite")).unwrap();
    let mut random = fastrand::Rng::new();
    let (silent, mut committed) = (random.u64(..8), 0);
    loop {
        if committed == silent {
            println!("writing");
        }
        let tx = db.transaction().unwrap();
        let mut changes = guard.transaction();
        for _ in 0..random.usize(1..4) {
            let title = format!("title {}", random.u32(..200));
            if random.bool() {
                tx.execute("INSERT INTO songs (title) VALUES (?)", [&title]).unwrap();
                changes.insert(&title).unwrap();
            } else {
                let sql = "DELETE FROM songs WHERE rowid = (SELECT rowid FROM songs WHERE title = ? LIMIT 1)";
                if tx.execute(sql, [&title]).unwrap() == 1 {
                    changes.remove(&title).unwrap();
                }
            }
        }
        sidebloom_sqlite::commit(changes, tx).unwrap();
        committed += 1;
    }
}

/// A process killed between the guard's commit and the database's never causes a wrong "no".
#[test]
fn a_process_killed_between_the_two_commits_makes_no_wrong_no() {
    const TEST: &str = "crash::a_process_killed_between_the_two_commits_makes_no_wrong_no";
    if let Some(dir) = std::env::var_os(DIR) {
        write_until_killed(Path::new(&dir));
    }
    let case = Case::new(
        "PRAGMA journal_mode = WAL; CREATE TABLE songs (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT);
         CREATE INDEX by_title ON songs (title)",
    );
    drop(GuardOptions::new().build_from(case.guard(), &mut case.source()).unwrap());
    let mut random = fastrand::Rng::with_seed(7);
    let (mut apart, mut surplus) = (0, 0);
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(DIR, case.dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.ends_with("writing\n") {
            assert!(
                std::io::BufRead::read_line(&mut output, &mut line).unwrap() > 0,
                "the child ends only when it is killed"
            );
        }
        std::thread::sleep(Duration::from_micros(random.u64(..20_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let guard = Guard::open(case.guard()).unwrap();
        let db = case.db();
        check(&guard, &db);
        let rows: u64 = titles(&db).values().sum();
        apart += u64::from(guard.stats().rows > rows);
        // Sometimes not repaired, so that later crashes start from what this one left.
        if kill % 10 == 9 {
            let report = guard.reconcile(&mut case.source()).unwrap();
            assert_eq!(report.missing, 0);
            surplus += report.surplus + report.miscounted;
            let again = guard.reconcile(&mut case.source()).unwrap();
            assert_eq!((again.missing, again.surplus, again.miscounted), (0, 0, 0), "it is repaired");
            assert_eq!(guard.stats().rows, rows);
        }
    }
    assert!(apart > 0 && surplus > 0, "no kill hit between the commits: {apart} {surplus}");
    let written: i64 = case.db().query_row("SELECT seq FROM sqlite_sequence", [], |row| row.get(0)).unwrap();
    assert!(written > KILLS as i64, "{written} rows");
}
