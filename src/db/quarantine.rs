//! Quarantine: what happens to a segment that background work could not read.
//!
//! A read that fails endangers nothing that is written, so the store goes on (I5). The segment leaves its level for the quarantine by a
//! manifest edit, which outlives reopening: compactions go on without it, and keep every tombstone that may hide one of its rows.
//! Reads still ask it (see `LiveSet::quarantined`). One that reads well again comes back (see `take_back`); `sidebloom repair` salvages
//! what is readable of the others.

use super::inner::Inner;
use super::publish::Change;
use crate::error::Error;
use crate::id::{FileId, FileKind};
use crate::manifest::{LiveSet, Quarantine};
use std::io::ErrorKind;

impl Inner {
    /// Moves the segment that could not be read to quarantine; nothing is left to do for one that was compacted away meanwhile. `false`
    /// when the error is about something else, or the move could not be recorded. Then what failed is to be tried again after a pause.
    pub fn quarantine(&self, error: &Error) -> bool {
        let Some(id) = unreadable_segment(error) else { return false };
        // Outputs of a compaction, which are not live yet, are not read: this one was, so it has been live.
        let Some(segment) = self.live().segments().find(|s| s.meta.id == id).cloned() else { return true };
        if segment.is_quarantined() {
            return true;
        }
        tracing::warn!(
            file = %self.storage.path_of(id, FileKind::Segment).display(), %error,
            "a segment cannot be read whole: it is left out of compaction, what is readable of it still answers; run `sidebloom repair`"
        );
        if self.check_writable().is_err() {
            return true;
        }
        let recorded = self.publish_if(|live| move_there(live, id));
        self.try_suspects_later();
        recorded
            .inspect_err(|error| tracing::warn!(%error, "the quarantine of a segment could not be recorded"))
            .is_ok()
    }
}

/// `None` when the segment has gone meanwhile: a compaction that could read it was about to publish its outcome.
fn move_there(live: &LiveSet, id: FileId) -> Option<Change> {
    let segment = live.segments().find(|s| s.meta.id == id && !s.is_quarantined())?;
    let left = segment.meta.level;
    let added = vec![segment.at_level(Quarantine { left, overtaken: left }.to_level())];
    Some(Change { added, removed: vec![segment.clone()], flushed: None })
}

/// The segment that a failed read was of. What the machine lacks for the moment, such as descriptors, says nothing about a file.
fn unreadable_segment(error: &Error) -> Option<FileId> {
    if error.is_out_of_descriptors() {
        return None;
    }
    let path = match error {
        Error::Corruption { file, .. } => file,
        Error::Io { path, op: "read" | "open" | "map" | "inspect", source } => match source.kind() {
            ErrorKind::OutOfMemory | ErrorKind::Interrupted => return None,
            _ => path,
        },
        _ => return None,
    };
    match FileKind::parse(path.file_name()?.to_str()?)? {
        (id, FileKind::Segment | FileKind::Obsolete) => Some(id),
        _ => None,
    }
}
