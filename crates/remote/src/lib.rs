//! Publishes a [sidebloom](https://docs.rs/sidebloom) store to object storage (S3, Google Cloud Storage,
//! Azure, a directory), and reads it from any machine. Filters and indexes, 1 to 2 % of the data, are kept
//! locally, so a missing key costs no request, and a present key one ranged GET.
//!
//! Choose it if one machine writes and many read, if readers have too little disk for a copy, or to keep
//! backups in a bucket ([`backups_at`]). Guards are published in the same way ([`guard`]). Readers see what
//! was published, not what was written since; for processes on the writer's machine, the store's own
//! `Options::follow` is fresher and needs no bucket.
//!
//! ```
//! use sidebloom::Db;
//! use sidebloom_remote::{Publisher, Reader, Remote, TakeOver};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let bucket = format!("file://{}/bucket/songs", dir.path().display());
//! # std::fs::create_dir(dir.path().join("bucket"))?;
//! # let local = dir.path();
//! // let bucket = "s3://my-bucket/songs"; // credentials from the environment
//! let db = Db::open(local.join("songs.db"))?;
//! db.put("Nina Simone - Sinnerman", "1965")?;
//! let mut publisher = Publisher::new(&db, Remote::open(&bucket)?, TakeOver::No)?;
//! publisher.publish()?;
//!
//! // On any machine:
//! let reader = Reader::open(Remote::open(&bucket)?, local.join("cache"))?;
//! assert!(reader.db().get("Nina Simone - Sinnerman")?.is_some()); // one GET
//! assert!(reader.db().get("Nina Simone - Freebird")?.is_none()); // none
//! assert_eq!(reader.data_gets(), 1);
//! # Ok(()) }
//! ```

mod backups;
mod clone;
mod collect;
mod disk_cache;
mod error;
mod find_generation;
mod follow;
mod fs;
mod generation;
#[cfg(test)]
#[path = "../../../fixtures/golden.rs"]
mod golden;
pub mod guard;
mod kept_files;
mod lineage;
mod local_files;
mod lost_filter;
mod newest_seen;
mod parallel;
mod private_files;
mod publisher;
mod reader;
mod remote;
mod upload;
mod writer;

pub use backups::backups_at;
pub use clone::clone;
pub use error::{Error, Result};
pub use publisher::{Published, Publisher};
pub use reader::{Reader, ReaderOptions, Staleness};
pub use remote::Remote;
pub use writer::{CLOCK_TOLERANCE, TakeOver};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
