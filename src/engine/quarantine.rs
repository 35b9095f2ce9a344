//! Quarantine: for segments that background work could not read.
//!
//! A failed read endangers nothing that is written, so the store stays writable (I5). A manifest edit moves
//! the segment from its level to quarantine, where it stays across reopening. Compactions leave it out and
//! keep every tombstone that may hide one of its rows. Reads still search it (see `LiveSet::quarantined`).
//! Once it is readable again, it comes back (see `compact/take_back.rs`); otherwise `sidebloom repair`
//! salvages its readable rows.

use crate::engine::publish::{LiveSetChange, Publisher};
use crate::error::Error;
use crate::event::Event;
use crate::id::{FileId, FileKind};
use crate::live::LiveSet;
use crate::manifest::{Place, Quarantine};
use crate::remedy::Remedy;
use std::io::ErrorKind;

impl Publisher {
    /// Moves an unreadable segment to quarantine, unless it was compacted away. Returns `false` if the error
    /// has another cause or the move could not be recorded: the caller then retries after a pause.
    pub fn quarantine(&self, error: &Error) -> bool {
        let Some(id) = unreadable_segment(error) else { return false };
        // Unpublished outputs of compactions are never read, so this segment was live. If it no longer is, it
        // was compacted away.
        let Some(segment) = self.shared().live().get(id).cloned() else {
            return true;
        };
        if segment.is_quarantined() {
            return true;
        }
        let storage = &self.shared().storage;
        let file = storage.path_of(id, FileKind::Segment).display().to_string();
        storage.events.emit(Event::Quarantine { file, error: error.to_string() });
        if self.shared().check_writable().is_err() {
            return true;
        }
        let recorded = self.publish_if(|live| move_there(live, id));
        self.try_suspects_later();
        recorded
            .inspect_err(|error| tracing::warn!(%error, "cannot record the quarantine of a segment"))
            .is_ok()
    }

    /// Schedules the next read of the quarantined segments, if there are any.
    pub fn try_suspects_later(&self) {
        let shared = self.shared();
        if shared.storage.options.read_only || shared.live().quarantined().is_empty() {
            return;
        }
        shared.control.lock().suspects.next.schedule_soon();
        shared.wake_workers();
    }
}

/// `None` if the segment is gone: a compaction that could still read it has published its outputs.
fn move_there(live: &LiveSet, id: FileId) -> Option<LiveSetChange> {
    let segment = live.get(id).filter(|s| !s.is_quarantined())?;
    let left = segment.level()?;
    let added = vec![segment.at(Place::Quarantine(Quarantine { left, overtaken: left }))];
    Some(LiveSetChange { added, removed: vec![segment.clone()], ..LiveSetChange::default() })
}

/// The segment whose read failed. A temporary shortage, such as one of descriptors, says nothing about the
/// file, and what only a newer version can read is not damaged.
fn unreadable_segment(error: &Error) -> Option<FileId> {
    if error.is_out_of_descriptors() {
        return None;
    }
    let path = match error {
        Error::Corruption { file, .. } => file,
        Error::Io { path, op, source } if Remedy::is_read(*op) => match source.kind() {
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
