//! Publishing a store: its files at one moment become the next generation at a URL.

use crate::error::{Error, Result};
use crate::find_generation::Generations;
use crate::generation::{Holds, Kind};
use crate::remote::Remote;
use crate::writer::{TakeOver, Writer};
use sidebloom::Db;
use std::time::{Duration, SystemTime};

/// The result of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The number of the new generation.
    pub generation: u64,
    /// Files that were uploaded.
    pub files: u64,
    /// Bytes that were uploaded.
    pub bytes: u64,
}

/// Publishes a store to a URL.
pub struct Publisher {
    db: Db,
    writer: Writer,
}

impl Publisher {
    /// Prepares to publish a store. Writes nothing yet.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the URL holds another store, or a later state of this one that did not come from
    /// this directory; errors of the bucket.
    pub fn new(db: &Db, remote: Remote, take_over: TakeOver) -> Result<Self> {
        let (set, generations) = (db.file_set()?, Generations::new(&remote, Kind::Store));
        let writer = Writer::new(generations, set.dir(), set.store_id(), take_over)?;
        Ok(Publisher { db: db.clone(), writer })
    }

    /// Maximum difference between the clocks of this machine and the bucket. Default
    /// [`CLOCK_TOLERANCE`](crate::CLOCK_TOLERANCE).
    pub fn clock_tolerance(mut self, tolerance: Duration) -> Self {
        self.writer.tolerance = tolerance;
        self
    }

    /// Publishes the store's current state as the next generation, even if nothing has changed.
    ///
    /// # Errors
    /// [`Error::Superseded`] if another writer has published: the store then becomes read-only.
    /// [`Error::ClockSkew`] if the clocks differ too much; the generation is published nevertheless. After
    /// other errors, nothing or everything was published; call this again.
    pub fn publish(&mut self) -> Result<Published> {
        let outcome = self.publish_files();
        if let Err(error @ Error::Superseded { .. }) = &outcome {
            self.db.stop_writing(error.to_string());
        }
        outcome
    }

    fn publish_files(&mut self) -> Result<Published> {
        let as_of = SystemTime::now();
        let set = self.db.file_set()?;
        self.writer.begin()?;
        let mut upload = self.writer.upload();
        for segment in set.segments() {
            let open = || Ok(set.open_segment(&segment)?);
            upload.segment(segment.name(), segment.digest, segment.bytes, segment.tail_at, open)?;
            if let Some(file) = set.open_sidecar(&segment)? {
                upload.sidecar(segment.sidecar_name(), &*file)?;
            }
        }
        let contents = upload.finish(set.manifest())?;
        let (files, bytes) = (contents.sent + u64::from(contents.sent_manifest), contents.bytes);
        self.writer.publish(Holds::Store { version: set.version() }, as_of, contents)?;
        Ok(Published { generation: self.writer.number, files, bytes })
    }

    /// Removes generations that were replaced at least `min_age` before the last one was published, from the
    /// oldest on, and objects of that age that no remaining generation names. Returns how many objects were
    /// removed. Readers of a removed generation get [`Error::Expired`].
    ///
    /// `min_age` must exceed the time that a publication takes. Readers should refresh more often than that.
    ///
    /// # Errors
    /// [`Error::Superseded`]; errors of the bucket; [`Error::Damaged`] for an unreadable generation, after
    /// which nothing is removed.
    pub fn collect(&mut self, min_age: Duration) -> Result<u64> {
        self.writer.collect(min_age)
    }

    /// The number of the last generation; 0 before the first one.
    pub fn generation(&self) -> u64 {
        self.writer.number
    }
}
