//! Publishing: what a store holds becomes the next generation at a URL.
//!
//! 1. The store is flushed, and the files of that moment are held.
//! 2. Files that the last generation does not have are uploaded, under the names of their contents.
//! 3. The generation's object is created, on condition that there is none of its number. Whoever creates it is the writer of the lineage; any
//!    other one is *fenced*: its store takes no more writes. A writer's own number in the body tells a retried success from that.
//!    Before, the directory notes what it is about to create: the process may die before it hears of its success.
//! 4. The hint for new readers and the directory's own note follow.
//!
//! A crash anywhere leaves the last generation whole, and perhaps objects that nobody names, which [`Publisher::collect`] removes.

use crate::error::{Error, Result};
use crate::generation::{BYTES_MAX, File, Generation, LATEST, Object, hex, millis, sha256};
use crate::remote::{Created, Remote};
use crate::{lineage, upload};
use bytes::Bytes;
use sidebloom::{Db, FileSet, SegmentEntry};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// The most that the clocks of a writer and of the bucket may differ by default.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// Bytes at the beginning of a sidecar that tell its filter from any other one of the same segment.
const SIDECAR_HEAD_BYTES: u64 = 4096;

/// How many generations of this publisher may be found under the next numbers: each is one whose answer was lost.
const OWN_GENERATIONS_MAX: usize = 64;

/// What a publication did.
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
    core: Core,
}

/// The writer of a lineage, whatever it publishes.
pub(crate) struct Core {
    pub remote: Remote,
    /// Random, in hex.
    writer: String,
    /// The last generation of the lineage.
    parent: Option<Generation>,
    tolerance: Duration,
}

/// Whether a store may continue generations that it does not descend from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TakeOver {
    /// No: [`Error::Foreign`].
    #[default]
    No,
    /// Yes: the published generations are replaced by this store's next one, and their writer is fenced.
    Yes,
}

impl Publisher {
    /// Prepares to publish a store. Writes nothing yet.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the URL holds another store, or a later state of this one that did not come from this directory; the errors of the
    /// bucket.
    pub fn new(db: &Db, remote: Remote, take_over: TakeOver) -> Result<Self> {
        let set = db.file_set()?;
        Ok(Publisher { db: db.clone(), core: Core::new(&set, remote, take_over)? })
    }

    /// The most that the clocks of this machine and of the bucket may differ. Default [`CLOCK_TOLERANCE`].
    pub fn clock_tolerance(mut self, tolerance: Duration) -> Self {
        self.core.tolerance = tolerance;
        self
    }

    /// Publishes what the store holds now as the next generation, also if nothing has changed since the last one.
    ///
    /// # Errors
    /// [`Error::Fenced`] if another writer has published meanwhile: the store then takes no more writes. [`Error::ClockSkew`] if the clocks
    /// differ too much; the generation is published nevertheless. After other errors, nothing or everything was published; call this again.
    pub fn publish(&mut self) -> Result<Published> {
        let as_of = SystemTime::now();
        let set = self.db.file_set()?;
        let outcome = self.core.publish(&set, as_of);
        if let Err(error @ Error::Fenced { .. }) = &outcome {
            self.db.fence(error.to_string());
        }
        outcome
    }

    /// Removes generations that were replaced at least `min_age` before the newest one was published, from the oldest on, and the objects of
    /// that age that no other generation names. Returns how many objects went. Readers of a removed generation get [`Error::Expired`].
    ///
    /// `min_age` must exceed the time that a publication takes, and readers should look for the next generation more often.
    ///
    /// # Errors
    /// The errors of the bucket.
    pub fn collect(&mut self, min_age: Duration) -> Result<u64> {
        crate::collect::collect(&self.core.remote, min_age)
    }

    /// The number of the last generation; 0 before the first one.
    pub fn generation(&self) -> u64 {
        self.core.number()
    }
}

impl Core {
    pub fn new(set: &FileSet, remote: Remote, take_over: TakeOver) -> Result<Self> {
        let foreign = |what: String| Error::Foreign { url: remote.url().to_owned(), what };
        let newest = crate::find::newest(&remote, None)?;
        let known = lineage::read(set.dir(), remote.url())?;
        let store = format!("{:016x}", set.store_id());
        let parent = match newest {
            None => None,
            Some(newest) if newest.store != store => {
                let what = format!("another store ({}, not {store}): choose another path", newest.store);
                return Err(foreign(what));
            }
            Some(newest) if !known.has(&newest) && take_over == TakeOver::No => {
                let known = match known.generation {
                    0 => "none".to_owned(),
                    number => number.to_string(),
                };
                return Err(foreign(format!(
                    "generation {}, from which this directory does not descend (it knows {known}): clone it, or take over",
                    newest.number
                )));
            }
            Some(newest) => Some(newest),
        };
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| {
            sidebloom::Error::io("read", "the system's random numbers", std::io::Error::other(e.to_string()))
        })?;
        Ok(Core { remote, writer: hex(&random), parent, tolerance: CLOCK_TOLERANCE })
    }

    pub fn number(&self) -> u64 {
        self.parent.as_ref().map_or(0, |parent| parent.number)
    }

    /// Publishes the files of a store.
    pub fn publish(&mut self, set: &FileSet, as_of: SystemTime) -> Result<Published> {
        for _ in 0..OWN_GENERATIONS_MAX {
            if let Some(done) = self.publish_next(set, as_of)? {
                return Ok(done);
            }
        }
        Err(self.no_number())
    }

    /// Every number after the newest is taken.
    fn no_number(&self) -> Error {
        Error::Endless { url: self.remote.url().to_owned(), from: self.number() }
    }

    /// Publishes under the next number; `None` if that is one of this publisher, which it has not heard of before.
    fn publish_next(&mut self, set: &FileSet, as_of: SystemTime) -> Result<Option<Published>> {
        let number = self.number().checked_add(1).ok_or_else(|| self.no_number())?;
        if let Some(theirs) = self.read(number)? {
            return self.accept(set, theirs).map(|()| None);
        }
        let mut done = Published { generation: number, files: 0, bytes: 0 };
        let mut files = Vec::new();
        {
            let known: HashMap<&str, &File> =
                self.parent.iter().flat_map(|parent| &parent.files).map(|file| (&*file.name, file)).collect();
            for segment in set.segments() {
                let mark = format!("{:016x}", segment.digest);
                match known
                    .get(&*segment.name())
                    .filter(|file| file.mark == mark && file.object.bytes == segment.bytes)
                {
                    Some(file) => files.push((*file).clone()),
                    None => files.push(self.upload_segment(set, &segment, mark, &mut done)?),
                }
                files.extend(self.sidecar(set, &segment, &known, &mut done)?);
            }
        }
        let manifest = self.put(&mut done, "manifest", set.manifest())?;
        let generation = Generation {
            number,
            store: format!("{:016x}", set.store_id()),
            writer: self.writer.clone(),
            as_of_ms: millis(as_of),
            version: set.version(),
            manifest,
            files,
        };
        let encoded = generation.encode();
        let len = encoded.len() as u64;
        generation
            .check()
            .and_then(|()| match len <= BYTES_MAX {
                true => Ok(()),
                false => Err(format!(
                    "{len} bytes, more than {BYTES_MAX}: raise segment_bytes, so that there are fewer files"
                )),
            })
            .map_err(|what| Error::damaged(self.remote.object(&Generation::name_of(number)), 0, what))?;
        self.check_parent()?;
        lineage::note_attempt(set.dir(), self.remote.url(), &generation)?;
        let name = Generation::name_of(number);
        match self.remote.create(&name, Bytes::from(encoded)) {
            Ok(Created::Yes) => {}
            // Whether it was written is not known, or a retry has found what the first attempt wrote.
            outcome => match self.read(number)? {
                Some(theirs) if theirs != generation => {
                    return self.accept(set, theirs).map(|()| None);
                }
                Some(_) => {}
                None => {
                    outcome?;
                    let what = "it was created by somebody and is gone".into();
                    return Err(Error::Bucket { op: "create", object: self.remote.object(&name), what });
                }
            },
        }
        self.finish(set, generation)?;
        Ok(Some(done))
    }

    /// The next number is taken. A generation of this writer is a success whose answer was lost; any other one fences it.
    fn accept(&mut self, set: &FileSet, theirs: Generation) -> Result<()> {
        if theirs.writer == self.writer {
            return self.finish(set, theirs);
        }
        Err(self.fenced_by(theirs))
    }

    /// Checks that the parent is there. Otherwise it was collected together with some that came after it: their numbers are free again, and
    /// creating one of them would fence nobody.
    fn check_parent(&self) -> Result<()> {
        if let Some(parent) = &self.parent
            && self.read(parent.number)?.is_some_and(|found| found == *parent)
        {
            return Ok(()); // Collections begin with the oldest, so the one after it was not removed.
        }
        match crate::find::newest(&self.remote, None)? {
            Some(theirs) => Err(self.fenced_by(theirs)),
            None => Ok(()),
        }
    }

    fn fenced_by(&self, theirs: Generation) -> Error {
        Error::Fenced { url: self.remote.url().to_owned(), generation: theirs.number, writer: theirs.writer }
    }

    fn read(&self, number: u64) -> Result<Option<Generation>> {
        crate::find::read(&self.remote, number).map(|found| found.map(|(generation, _)| generation))
    }

    /// A generation was published: notes that, and compares the clocks.
    fn finish(&mut self, set: &FileSet, generation: Generation) -> Result<()> {
        let number = generation.number;
        self.parent = Some(generation);
        lineage::note(set.dir(), self.remote.url(), number)?;
        self.remote.put(LATEST, Bytes::from(number.to_string()))?;
        let now = SystemTime::now();
        let meta = self.remote.head(&Generation::name_of(number))?;
        let theirs = SystemTime::from(meta.last_modified);
        let skew = now.duration_since(theirs).unwrap_or_else(|early| early.duration());
        match skew <= self.tolerance {
            true => Ok(()),
            false => Err(Error::ClockSkew { url: self.remote.url().into(), skew, tolerance: self.tolerance }),
        }
    }

    fn put(&self, done: &mut Published, folder: &str, bytes: &[u8]) -> Result<Object> {
        let object = upload::bytes(&self.remote, folder, bytes)?;
        done.files += 1;
        done.bytes += object.bytes;
        Ok(object)
    }

    fn upload_segment(
        &self,
        set: &FileSet,
        segment: &SegmentEntry,
        mark: String,
        done: &mut Published,
    ) -> Result<File> {
        let (name, file) = (segment.name(), set.open_segment(segment)?);
        let (mut object, tail) = upload::digests(&*file, Some(segment.tail_at))?;
        object.object = upload::object_name("segment", stem(&name), &object.sha256);
        upload::file(&self.remote, &object.object, &*file)?;
        done.files += 1;
        done.bytes += object.bytes;
        Ok(File { name, object, mark, tail })
    }

    /// A sidecar changes when filters are rebuilt; its segment does not.
    fn sidecar(
        &self,
        set: &FileSet,
        segment: &SegmentEntry,
        known: &HashMap<&str, &File>,
        done: &mut Published,
    ) -> Result<Option<File>> {
        let Some(file) = set.open_sidecar(segment)? else { return Ok(None) };
        let (name, bytes) = (segment.sidecar_name(), file.len()?);
        let mut head = vec![0; SIDECAR_HEAD_BYTES.min(bytes) as usize];
        file.read_exact_at(&mut head, 0)?;
        let mark = sha256(&head);
        if let Some(file) = known.get(&*name).filter(|file| file.mark == mark && file.object.bytes == bytes) {
            return Ok(Some((*file).clone()));
        }
        let (mut object, _) = upload::digests(&*file, None)?;
        object.object = upload::object_name("filter", stem(&name), &object.sha256);
        upload::file(&self.remote, &object.object, &*file)?;
        done.files += 1;
        done.bytes += object.bytes;
        Ok(Some(File { name, object, mark, tail: None }))
    }
}

fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
