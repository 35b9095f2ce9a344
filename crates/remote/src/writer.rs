//! The writer of a lineage of generations of a store or a guard:
//!
//! 1. Look for the next number. If another writer has taken it, this one is *superseded*: it publishes no
//!    more. The writer's name in the generation distinguishes that from a success whose answer was lost.
//! 2. Upload the files that the last generation lacks, named by their contents.
//! 3. Check that the last generation exists: otherwise it was collected together with some later ones. Note
//!    in the directory what is about to be created, because the process may die before it learns of its
//!    success. Then create the generation's object, on condition that none has its number.
//! 4. Write the directory's own note and the hint for readers, and compare the clocks.
//!
//! A crash leaves the last generation whole, and perhaps unnamed objects, which a collection removes.

use crate::collect;
use crate::error::{Error, Result};
use crate::find_generation::Generations;
use crate::generation::{Generation, Holds, LATEST, hex, millis};
use crate::lineage;
use crate::remote::Created;
use crate::upload::{Contents, Upload};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Default maximum difference between the clocks of a writer and the bucket.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// How many generations of this writer may be found under the next numbers; for each, an answer was lost.
const OWN_GENERATIONS_MAX: usize = 64;

/// Whether a store or a guard may continue generations that it does not descend from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TakeOver {
    /// No: [`Error::Foreign`].
    #[default]
    No,
    /// Yes: this store's or guard's next generation replaces the published ones, superseding their writer.
    Yes,
}

/// The writer of a lineage.
pub(crate) struct Writer {
    generations: Generations,
    /// The directory that descends from the lineage.
    dir: PathBuf,
    /// Identifies the store or guard, in hex.
    id: String,
    /// Identifies this writer: random, in hex.
    name: String,
    /// The number of the last generation of the lineage; 0 before the first one.
    pub number: u64,
    /// The last generation, if it exists.
    parent: Option<Generation>,
    /// The number and the writer of another writer's generation, which superseded this one.
    superseded: Option<(u64, String)>,
    pub tolerance: Duration,
}

impl Writer {
    pub fn new(generations: Generations, dir: &Path, owner: u64, take_over: TakeOver) -> Result<Self> {
        let (kind, id) = (generations.kind, format!("{owner:016x}"));
        let parent = generations.newest(None)?.map(|found| found.generation);
        let known = lineage::read(dir, generations.remote.url())?;
        match &parent {
            Some(newest) if newest.id != id => {
                let what =
                    format!("another {kind} ({}, not {id}): publish each under a URL of its own", newest.id);
                return Err(generations.foreign(what));
            }
            Some(newest) if !known.has(newest) && take_over == TakeOver::No => {
                let what = format!(
                    "generation {} of this {kind}, from which this directory does not descend (it knows generation {}, where 0 is none): \
                     use a copy that does, or, if this {kind} is right, take over",
                    newest.number, known.generation
                );
                return Err(generations.foreign(what));
            }
            _ => {}
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| {
            sidebloom::Error::io(
                sidebloom::IoOp::Read,
                "the system's random numbers",
                std::io::Error::other(e.to_string()),
            )
        })?;
        let number = parent.as_ref().map_or(known.generation, |newest| newest.number);
        let (dir, name) = (dir.to_path_buf(), hex(&random));
        Ok(Writer {
            generations,
            dir,
            id,
            name,
            number,
            parent,
            superseded: None,
            tolerance: CLOCK_TOLERANCE,
        })
    }

    /// Begins a publication: finds out early whether another writer has published.
    pub fn begin(&mut self) -> Result<()> {
        self.check_superseded()?;
        for _ in 0..OWN_GENERATIONS_MAX {
            match self.generations.after(self.number)? {
                Some(found) => self.accept(found.generation)?,
                None => return Ok(()),
            }
        }
        Err(self.generations.endless(self.number))
    }

    /// The files of the next generation.
    pub fn upload(&self) -> Upload<'_> {
        Upload::new(&self.generations.remote, self.parent.as_ref())
    }

    /// Creates the next generation.
    pub fn publish(&mut self, holds: Holds, as_of: SystemTime, contents: Contents) -> Result<()> {
        let mut generation = Generation {
            number: self.number,
            id: self.id.clone(),
            writer: self.name.clone(),
            as_of_ms: millis(as_of),
            holds,
            manifest: contents.manifest,
            files: contents.files,
        };
        self.check_parent()?;
        for _ in 0..OWN_GENERATIONS_MAX {
            let next = self.number.checked_add(1);
            generation.number = next.ok_or_else(|| self.generations.endless(self.number))?;
            if self.create(&generation)? {
                return self.finish(generation);
            }
        }
        Err(self.generations.endless(self.number))
    }

    /// Creates a generation; `false` if an earlier one of this writer has its number.
    fn create(&mut self, generation: &Generation) -> Result<bool> {
        let (name, remote) = (Generation::name_of(generation.number), &self.generations.remote);
        let encoded =
            generation.encode_checked().map_err(|what| Error::damaged(remote.object(&name), 0, what))?;
        lineage::note_attempt(&self.dir, remote.url(), generation)?;
        let outcome = remote.create(&name, Bytes::from(encoded));
        if matches!(outcome, Ok(Created::Yes)) {
            return Ok(true);
        }
        // It may be written, or a retry may have found what the first attempt wrote: only the object tells.
        match self.generations.read(generation.number)? {
            Some(found) if found.generation == *generation => Ok(true),
            Some(found) => self.accept(found.generation).map(|()| false),
            None => {
                outcome?;
                let what = "somebody created it, and now it is gone".into();
                Err(Error::Bucket { op: "create", object: remote.object(&name), what })
            }
        }
    }

    /// The next number is taken: by this writer, or by another one, which supersedes it.
    fn accept(&mut self, theirs: Generation) -> Result<()> {
        if theirs.writer != self.name {
            self.superseded = Some((theirs.number, theirs.writer));
            return self.check_superseded();
        }
        self.number = theirs.number;
        self.parent = Some(theirs);
        Ok(())
    }

    /// Checks that the last generation exists. Otherwise the numbers after it are free again, and creating
    /// one of them would supersede nobody. Collections begin with the oldest, so if it exists, so do later
    /// ones.
    fn check_parent(&mut self) -> Result<()> {
        if let Some(parent) = &self.parent
            && self.generations.read(parent.number)?.is_some_and(|found| found.generation == *parent)
        {
            return Ok(());
        }
        if let Some(theirs) = self.generations.newest(None)? {
            self.superseded = Some((theirs.generation.number, theirs.generation.writer));
        }
        self.check_superseded()
    }

    fn check_superseded(&self) -> Result<()> {
        self.superseded.clone().map_or(Ok(()), |(generation, writer)| {
            Err(Error::Superseded { url: self.generations.remote.url().to_owned(), generation, writer })
        })
    }

    /// After publication: notes the generation, and compares the clocks.
    fn finish(&mut self, generation: Generation) -> Result<()> {
        let (number, remote) = (generation.number, &self.generations.remote);
        self.number = number;
        let generation = self.parent.insert(generation);
        lineage::note(&self.dir, remote.url(), generation)?;
        remote.put(LATEST, Bytes::from(number.to_string()))?;
        let now = SystemTime::now();
        let theirs = SystemTime::from(remote.head(&Generation::name_of(number))?.last_modified);
        let skew = now.duration_since(theirs).unwrap_or_else(|early| early.duration());
        if skew <= self.tolerance {
            Ok(())
        } else {
            Err(Error::ClockSkew { url: remote.url().into(), skew, tolerance: self.tolerance })
        }
    }

    /// Removes what is older than the last generation: see [`collect`].
    pub fn collect(&self, min_age: Duration) -> Result<u64> {
        self.check_superseded()?;
        collect::collect(&self.generations, self.number, min_age)
    }
}
