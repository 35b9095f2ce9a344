//! The catalogue in SQLite.

use super::catalogue::{Catalogue, Result};
use sidebloom_sqlite::SqliteSource;
use sidebloom_sqlite::rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub struct Songs {
    db: Connection,
    path: PathBuf,
}

impl Songs {
    pub fn create(path: &Path, catalogue: &Catalogue) -> Result<Self> {
        let started = Instant::now();
        let mut db = Connection::open(path)?;
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; PRAGMA mmap_size = 4294967296;
             CREATE TABLE songs (title TEXT NOT NULL, year INTEGER)",
        )?;
        let tx = db.transaction()?;
        let mut insert = tx.prepare("INSERT INTO songs VALUES (?, ?)")?;
        for song in catalogue.songs() {
            insert.execute(song)?;
        }
        drop(insert);
        tx.commit()?;
        db.execute_batch("CREATE INDEX by_title ON songs (title, year)")?;
        println!("  database built in {:.1} s", started.elapsed().as_secs_f64());
        Ok(Songs { db, path: path.to_path_buf() })
    }

    pub fn source(&self) -> Result<SqliteSource> {
        Ok(SqliteSource::open(&self.path, "songs", "title")?)
    }

    pub fn year(&mut self, title: &str) -> Result<Option<i64>> {
        let mut select = self.db.prepare_cached("SELECT year FROM songs WHERE title = ?")?;
        Ok(select.query_row([title], |row| row.get(0)).optional()?)
    }
}
