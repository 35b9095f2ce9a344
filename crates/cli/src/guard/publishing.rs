//! `sidebloom guard follow --publish`: publishes a guard while it follows.

use crate::context::Failure;
use sidebloom::guard::Guard;
use sidebloom_postgres::FollowEvent;
#[cfg(feature = "remote")]
pub use with_remote::Publishing;
#[cfg(not(feature = "remote"))]
pub use without_remote::Publishing;

#[cfg(feature = "remote")]
mod with_remote {
    use super::{Failure, FollowEvent, Guard};
    use crate::notice::notice;
    use sidebloom_remote::guard::GuardPublisher;
    use sidebloom_remote::{Error, Remote, TakeOver};
    use std::time::{Duration, Instant};

    /// States of this age are removed, and how often.
    const KEPT: Duration = Duration::from_secs(3600);

    pub struct Publishing {
        publisher: GuardPublisher,
        every: Duration,
        last: Option<Instant>,
        collected: Instant,
    }

    impl Publishing {
        pub fn new(guard: &Guard, url: &str, every_seconds: u64) -> Result<Self, Failure> {
            let publisher = GuardPublisher::new(guard, Remote::open(url)?, TakeOver::No)?;
            let every = Duration::from_secs(every_seconds);
            Ok(Publishing { publisher, every, last: None, collected: Instant::now() })
        }

        /// Publishes after an event, if it is time or the event is the `last`. If the object store refuses,
        /// tries again later; being superseded is final.
        pub fn after(&mut self, event: &FollowEvent, last: bool) -> Result<(), Failure> {
            let is_due = match event {
                // Only now is the guard known to be up to date.
                FollowEvent::CaughtUp => last || self.last.is_none_or(|at| at.elapsed() >= self.every),
                // So that its readers are suspended too.
                FollowEvent::Suspended { .. } => true,
                _ => false,
            };
            if !is_due {
                return Ok(());
            }
            self.last = Some(Instant::now());
            match self.publish() {
                Ok(()) => Ok(()),
                Err(error @ (Error::Superseded { .. } | Error::Store(_))) => Err(error.into()),
                Err(error) if last => Err(error.into()),
                Err(error) => {
                    notice(format_args!("cannot publish: {error}; will try again"));
                    Ok(())
                }
            }
        }

        fn publish(&mut self) -> sidebloom_remote::Result<()> {
            self.publisher.publish()?;
            if self.collected.elapsed() >= KEPT {
                self.publisher.collect(KEPT)?;
                self.collected = Instant::now();
            }
            Ok(())
        }
    }
}

#[cfg(not(feature = "remote"))]
mod without_remote {
    use super::{Failure, FollowEvent, Guard};

    /// Never constructed.
    pub enum Publishing {}

    impl Publishing {
        pub fn new(_: &Guard, _: &str, _: u64) -> Result<Self, Failure> {
            Err(Failure::not_built_in("object storage", "remote"))
        }

        pub fn after(&mut self, _: &FollowEvent, _: bool) -> Result<(), Failure> {
            match *self {}
        }
    }
}
