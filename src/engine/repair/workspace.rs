//! What every step of a repair works on, and how it sets files aside.

use super::report::RepairReport;
use crate::engine::storage::names::DAMAGED;
use crate::error::{Error, Result};
use crate::fs::{Fs, read_around_errors};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::progress::Tracker;
use crate::wal::{self, LogHeader, LogStart};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store that is being repaired. Nobody else has it open.
pub(super) struct Repair<'a> {
    pub fs: Arc<dyn Fs>,
    pub path: &'a Path,
    pub names: Vec<String>,
    pub report: RepairReport,
    /// The number of the next rewritten segment.
    pub next_id: FileId,
    pub is_manifest_lost: bool,
    /// Whether there is no segment and no log header that identifies the store.
    pub is_store_unknown: bool,
    /// Operations up to this number were in segments, so no log needs them.
    pub in_segments: Seq,
    /// Operations between the last one that the manifest knew and the first one of the logs.
    pub gap_before_logs: Option<RangeInclusive<Seq>>,
    /// How much fruitless search is left, over all segments, for blocks that no index lists.
    pub search_bytes: u64,
    /// The names of keyspaces, by number, in damaged segments.
    pub keyspace_names: BTreeMap<u32, String>,
    /// How many bytes of the segments and logs were read.
    pub progress: Tracker<'a>,
    /// Damaged segments that are set aside once the manifest no longer names them.
    pub replaced: Vec<ReplacedSegment>,
}

/// A damaged segment that the new manifest does not name.
pub(super) struct ReplacedSegment {
    pub id: FileId,
    pub why: Error,
    /// Whether it already has its second name, `*.damaged`.
    pub linked: bool,
}

impl Repair<'_> {
    /// The numbers of all files of a kind, in ascending order.
    pub fn files(&self, wanted: FileKind) -> Vec<FileId> {
        let mut ids: Vec<_> = self.names.iter().filter_map(|name| FileKind::parse(name)).collect();
        ids.retain(|(_, kind)| *kind == wanted);
        ids.sort();
        ids.into_iter().map(|(id, _)| id).collect()
    }

    /// The bytes of all files of a kind.
    pub fn bytes_of(&self, kind: FileKind) -> Result<u64> {
        let mut lens = self.files(kind).into_iter().map(|id| self.len_of(id, kind));
        lens.try_fold(0u64, |sum, len| Ok(sum.saturating_add(len?)))
    }

    /// The length of a file; 0 if it is not there.
    pub fn len_of(&self, id: FileId, kind: FileKind) -> Result<u64> {
        Ok(self.fs.file_len(&self.path.join(id.file_name(kind)))?.unwrap_or(0))
    }

    /// Tells that a file was read.
    pub fn note_read(&mut self, id: FileId, kind: FileKind) -> Result<()> {
        let bytes = self.len_of(id, kind)?;
        _ = self.progress.advance(bytes);
        Ok(())
    }

    pub fn log_path(&self, id: FileId) -> PathBuf {
        self.path.join(id.file_name(FileKind::Wal))
    }

    /// The header of a log. `None` without one, or if a misdirected write put another log's header there.
    pub fn log_header(&self, id: FileId) -> Result<Option<LogHeader>> {
        let header = wal::identify(&*self.fs, &self.log_path(id))?;
        Ok(header.filter(|header| header.id == id))
    }

    /// The first sequence number of a log of this store.
    pub fn log_start(&self, id: FileId, store_id: u64) -> Result<LogStart> {
        wal::find_start(&*self.fs, &self.log_path(id), id, store_id)
    }

    pub fn set_aside(&mut self, name: &str, why: Error) -> Result<()> {
        tracing::warn!(%why, name, "setting a file aside");
        let file = self.path.join(name);
        if self.fs.file_len(&file)?.is_some() {
            self.count_aside(&file)?;
            self.fs.rename(&file, &self.aside(name)?)?;
        }
        self.report.set_aside.push(why);
        Ok(())
    }

    /// Adds the length of a file to the report. The total length of sparse files may exceed 64 bits.
    pub fn count_aside(&mut self, file: &Path) -> Result<()> {
        let bytes = self.fs.file_len(file)?.unwrap_or(0);
        self.report.bytes_set_aside = self.report.bytes_set_aside.saturating_add(bytes);
        Ok(())
    }

    /// Keeps a file under a second name.
    pub fn keep_aside(&self, name: &str) -> Result<()> {
        let (file, aside) = (self.path.join(name), self.aside(name)?);
        match self.fs.hard_link(&file, &aside) {
            Ok(()) => Ok(()),
            Err(_) => self.copy(&file, &aside), // Not every file system has links.
        }
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        const PIECE_BYTES: u64 = 1 << 20;
        let (source, mut copy) = (self.fs.open(from)?, self.fs.create(to)?);
        let (len, mut at) = (source.len()?, 0);
        while at < len {
            let mut piece = vec![0; PIECE_BYTES.min(len - at) as usize];
            read_around_errors(&*source, &mut piece, at);
            copy.append(&piece)?;
            at += piece.len() as u64;
        }
        copy.sync()
    }

    /// A name for a file to be set aside, unused by any earlier repair.
    pub fn aside(&self, name: &str) -> Result<PathBuf> {
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!(".{number}") };
            let path = self.path.join(format!("{name}{DAMAGED}{suffix}"));
            if self.fs.file_len(&path)?.is_none() {
                return Ok(path);
            }
            number += 1;
        }
    }
}
