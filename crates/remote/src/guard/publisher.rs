//! Publishes a guard.

use crate::error::Result;
use crate::find_generation::Generations;
use crate::generation::{Holds, Kind};
use crate::remote::Remote;
use crate::upload::Contents;
use crate::writer::{TakeOver, Writer};
use sidebloom::guard::{Guard, GuardImage};
use sidebloom::internal::{FileId, FileKind};
use std::time::{Duration, SystemTime};

/// If a refresh switches over while an image is read, its files disappear, and another image is taken.
const ATTEMPTS: usize = 3;

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardPublished {
    /// The generation's number.
    pub number: u64,
    /// Filters that were uploaded.
    pub filters: u64,
    /// Bytes that were uploaded.
    pub bytes: u64,
}

/// Publishes the generations of a guard. The only publisher at its place: see the [module](super).
pub struct GuardPublisher {
    guard: Guard,
    writer: Writer,
}

impl GuardPublisher {
    /// Continues from the place's newest generation, with [`TakeOver::Yes`] even if another directory
    /// published it: that publisher is [superseded](crate::Error::Superseded) when it next publishes. The
    /// guard then has to be right: a copy that lacks keys denies them to all readers. Refresh it first.
    ///
    /// # Errors
    /// [`Error::Foreign`](crate::Error::Foreign) if the newest generation was not published from the guard's
    /// directory, or is of another guard; errors of the bucket, and of [`Guard::image`].
    pub fn new(guard: &Guard, remote: Remote, take_over: TakeOver) -> Result<Self> {
        let (id, generations) = (guard.image()?.guard_id()?, Generations::new(&remote, Kind::Guard));
        let writer = Writer::new(generations, guard.path(), id, take_over)?;
        Ok(GuardPublisher { guard: guard.clone(), writer })
    }

    /// Publishes the guard with every change made before this call. If nothing has changed, readers learn
    /// that it was still current.
    ///
    /// # Errors
    /// [`Error::Superseded`](crate::Error::Superseded), on this and every later call, if another publisher
    /// has published. [`Error::ClockSkew`](crate::Error::ClockSkew) if the generation is published, but
    /// readers cannot trust its time. After any other error, it may or may not be published, and the next
    /// call publishes a later one. The errors of [`Guard::image`].
    pub fn publish(&mut self) -> Result<GuardPublished> {
        // Read first: once a suspension is over, the generation must have the keys that ended it.
        let suspended = self.guard.is_suspended();
        let as_of = SystemTime::now();
        self.writer.begin()?;
        let mut attempts = 0;
        let (image, unfiltered, contents) = loop {
            attempts += 1;
            let image = self.guard.image()?;
            let uploaded = self.upload(&image);
            let is_current = image.generation()? == self.guard.stats().generation;
            if is_current || attempts == ATTEMPTS {
                break uploaded.map(|(unfiltered, contents)| (image, unfiltered, contents))?;
            }
        };
        let (filters, bytes) = (contents.sent, contents.bytes);
        let holds = Holds::Guard { suspended, settings: image.settings().to_vec(), unfiltered };
        self.writer.publish(holds, as_of, contents)?;
        Ok(GuardPublished { number: self.writer.number, filters, bytes })
    }

    /// Uploads what the last generation lacks. Also returns the numbers of missing filters.
    fn upload(&self, image: &GuardImage) -> Result<(Vec<u64>, Contents)> {
        let (mut upload, mut unfiltered) = (self.writer.upload(), Vec::new());
        for number in image.filters() {
            match image.open_filter(number)? {
                Some(file) => upload.sidecar(FileId(number).file_name(FileKind::Filter), &*file)?,
                None => unfiltered.push(number),
            }
        }
        Ok((unfiltered, upload.finish(image.manifest())?))
    }

    /// Removes generations that were replaced at least `min_age` before the last one was published, from the
    /// oldest on, and objects of that age that no remaining generation names. `min_age` must exceed the time
    /// that a publication takes. Readers of an older generation still find the newest one. Returns how many
    /// objects were removed.
    ///
    /// # Errors
    /// [`Error::Superseded`](crate::Error::Superseded); errors of the bucket;
    /// [`Error::Damaged`](crate::Error::Damaged) for an unreadable generation, after which nothing is
    /// removed.
    pub fn collect(&mut self, min_age: Duration) -> Result<u64> {
        self.writer.collect(min_age)
    }
}
