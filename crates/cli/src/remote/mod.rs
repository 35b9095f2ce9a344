//! Stores in object storage: `publish`, `clone`, and `--db URL`.

#[cfg(feature = "remote")]
mod built_in;
#[cfg(feature = "remote")]
pub mod cache;
pub mod clone;
#[cfg(not(feature = "remote"))]
mod left_out;
pub mod publish;
mod report;

#[cfg(feature = "remote")]
use built_in as backend;
#[cfg(not(feature = "remote"))]
use left_out as backend;

use crate::context::{Context, Failure};
use sidebloom::Db;

/// Opens the store for reading, at a URL or in a directory that another process may write. It must exist.
pub fn open_to_read(cx: &Context) -> Result<Db, Failure> {
    match cx.url() {
        Some(url) => backend::open(cx, url),
        None => cx.opening(|| cx.options().follow(true).open(&cx.db)),
    }
}
