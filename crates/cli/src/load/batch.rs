//! Rows to be written to the store, and the count of those written.

use crate::context::Failure;
use crate::human;
use crate::rows::Row;
use sidebloom::{Batch, Expiry, Keyspace};
use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

/// What was loaded; printed even after a bad line, if any row was loaded.
#[derive(serde::Serialize, Default)]
pub struct Report {
    pub loaded: u64,
    /// Rows whose key was already in the store or in an earlier row. `None` with `--blind` and `--bulk`.
    pub overwritten: Option<u64>,
    pub skipped: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
    pub seconds: f64,
}

/// Rows that are read but not yet written.
#[derive(Default)]
pub struct PendingBatch {
    batch: Batch,
    keys: HashSet<Vec<u8>>,
    rows: u64,
    overwritten: u64,
    key_bytes: usize,
    pub bytes: usize,
}

impl PendingBatch {
    /// Counts the row if its key is already present.
    pub fn look_up(&mut self, db: &Keyspace, row: &Row) -> Result<(), Failure> {
        self.overwritten += u64::from(!self.keys.insert(row.key.clone()) || db.contains_key(&row.key)?);
        Ok(())
    }

    /// Adds the row, which expires after a lifetime, if there is one.
    pub fn add(&mut self, db: &Keyspace, row: &Row, lifetime: Option<Duration>) {
        let mut batch = self.batch.keyspace(db);
        match lifetime {
            Some(lifetime) => batch.put_with(&row.key, &row.value, Expiry::after(lifetime)),
            None => batch.put(&row.key, &row.value),
        }
        self.rows += 1;
        self.key_bytes += row.key.len();
        self.bytes += row.key.len() + row.value.len();
    }

    pub fn write(&mut self, db: &Keyspace, report: &mut Report) -> Result<(), Failure> {
        let written = std::mem::take(self);
        db.write(written.batch)?;
        report.loaded += written.rows;
        if let Some(overwritten) = &mut report.overwritten {
            *overwritten += written.overwritten;
        }
        report.key_bytes += written.key_bytes as u64;
        report.value_bytes += (written.bytes - written.key_bytes) as u64;
        Ok(())
    }
}

impl Report {
    pub fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let bytes = human::bytes((self.key_bytes + self.value_bytes) as f64);
        write!(out, "loaded {} rows, {bytes}, in {:.1} s", human::count(self.loaded), self.seconds)?;
        if let Some(overwritten @ 1..) = self.overwritten {
            write!(out, "; {} of them overwrote an earlier row", human::count(overwritten))?;
        }
        if self.skipped > 0 {
            write!(out, "; skipped {} malformed lines", human::count(self.skipped))?;
        }
        Ok(writeln!(out)?)
    }
}
