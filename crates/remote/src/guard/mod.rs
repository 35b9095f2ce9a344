//! One machine keeps a guard and publishes it; any number of others use it for lookups.
//!
//! ```no_run
//! use sidebloom::filter::Verdict;
//! use sidebloom::guard::Guard;
//! use sidebloom_remote::guard::{GuardPublisher, RemoteGuard, RemoteGuardOptions};
//! use sidebloom_remote::{Remote, TakeOver};
//! use std::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // On the machine that follows the database, every few seconds:
//! let guard = Guard::open("songs.guard")?;
//! let mut publisher = GuardPublisher::new(&guard, Remote::open("s3://bucket/songs")?, TakeOver::No)?;
//! publisher.publish()?;
//!
//! // On every other machine:
//! let options = RemoteGuardOptions::new().max_staleness(Duration::from_secs(60));
//! let remote = RemoteGuard::open(Remote::open("s3://bucket/songs")?, "/var/cache/songs", options)?;
//! if remote.may_contain("Freebird") == Verdict::Maybe { /* ask the database */ }
//! # Ok(()) }
//! ```
//!
//! # What is published
//! Only the guard's filters, about a byte a key: keys stay with the guard. Files of earlier generations are
//! not uploaded again. **The guard's secret key is published too**: whoever can read the bucket can search
//! for colliding keys, and use them to waste the database's time.
//!
//! # What a "no" means
//! It is true as of [`RemoteGuard::as_of`], the moment before the generation was taken: a key inserted later
//! gets a "no" until the next generation arrives. So publish after the guard has caught up with its database,
//! and do not check the database's own writes against it. [`RemoteGuardOptions::max_staleness`] bounds the
//! age. Above it, every answer is "maybe", whatever the reason (a stopped publisher, an unreachable bucket, a
//! wrong clock). While the guard is suspended, so are its readers.
//!
//! Anything damaged, foreign or missing is an error that names it, and the previous generation stays in use,
//! up to the bound; or its keys are "maybe". Lookups send no requests.
//!
//! # One publisher
//! As for a store, what is published is a numbered *generation*, created only if its number is free. A second
//! publisher, with a copy of the guard, gets [`Error::Superseded`] or [`Error::Foreign`]; so does a guard
//! restored from a backup.
//!
//! [`Error::Superseded`]: crate::Error::Superseded
//! [`Error::Foreign`]: crate::Error::Foreign

mod current_generation;
mod options;
mod publisher;
mod reader;

pub use options::RemoteGuardOptions;
pub use publisher::{GuardPublished, GuardPublisher};
pub use reader::{RemoteGuard, RemoteGuardStats};
