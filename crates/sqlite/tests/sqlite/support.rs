//! A SQLite database and a guard in front of it, in a temporary directory.

use sidebloom::FilterPolicy;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardOptions, Source};
use sidebloom_sqlite::SqliteSource;
use sidebloom_sqlite::rusqlite::{self, Connection};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Filters so fine that a "maybe" for a missing key does not happen by chance: 1 in 65,000.
pub fn fine() -> GuardOptions {
    GuardOptions::new().filter_policy(FilterPolicy::bits_per_key(19.0))
}

pub struct Case {
    pub dir: TempDir,
}

impl Case {
    pub fn new(schema: &str) -> Self {
        let case = Case { dir: tempfile::tempdir().unwrap() };
        case.db().execute_batch(schema).unwrap();
        case
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("songs.sqlite")
    }

    pub fn guard(&self) -> PathBuf {
        self.dir.path().join("songs.guard")
    }

    pub fn db(&self) -> Connection {
        let db = Connection::open(self.file()).unwrap();
        db.busy_timeout(Duration::from_secs(60)).unwrap();
        db
    }

    pub fn source(&self) -> SqliteSource {
        SqliteSource::open(self.file(), "songs", "title").unwrap()
    }

    /// The error of opening the column as a source.
    pub fn refused(&self, table: &str, column: &str) -> String {
        SqliteSource::open(self.file(), table, column).err().expect("it was opened").to_string()
    }
}

pub fn keys(source: &mut SqliteSource) -> sidebloom::Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    source.stream(&mut |key| {
        keys.push(key.to_vec());
        Ok(())
    })?;
    Ok(keys)
}

pub fn titles(db: &Connection) -> BTreeMap<String, u64> {
    let mut select = db.prepare("SELECT title FROM songs").unwrap();
    let titles = select.query_map([], |row| row.get(0)).unwrap();
    titles.fold(BTreeMap::new(), |mut counts, title: rusqlite::Result<String>| {
        *counts.entry(title.unwrap()).or_default() += 1;
        counts
    })
}

/// Checks that no row of the database is denied and no key is counted too low.
pub fn check(guard: &Guard, db: &Connection) {
    for (title, rows) in titles(db) {
        assert_eq!(guard.may_contain(&title), Verdict::Maybe, "{title} exists and was denied");
        assert!(guard.count(&title).unwrap() >= rows, "{title}");
    }
}
