//! One machine keeps a guard and publishes it; any number of others answer lookups with it.
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
//! The filters of the guard alone, about a byte a key: keys stay with the guard. What a later generation has
//! in common with an earlier one is not uploaded again. **The guard's secret key is published too**: who can
//! read the bucket can search for keys that collide, and waste the database's time with them.
//!
//! # What a "no" means
//! It is true as of [`RemoteGuard::as_of`], the moment before the generation was taken: a key that was
//! inserted later gets a "no" until the next one arrives. So publish after the guard has caught up with its
//! database, and let the database's own writes go to the database. [`RemoteGuardOptions::max_staleness`]
//! bounds the age: past it every answer is "maybe", whatever the reason (a publisher that has stopped, a
//! bucket that cannot be reached, a clock that is wrong). While the guard is suspended, so are those that
//! read it.
//!
//! Anything damaged, foreign or missing is an error that names it, and the generation before stays in use, up
//! to the bound; or its keys are "maybe". Lookups send no requests.
//!
//! # One publisher
//! What is published is a numbered *generation*, as it is of a store, created only if its number is free. A
//! second publisher, with a copy of the guard, gets [`Error::Superseded`] or [`Error::Foreign`]; so does a
//! guard that was restored from a backup.
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
