//! Maps a sidecar and verifies its lines' checksums: group by group as probes touch them, or all at once.

use super::facts::Facts;
use super::maps::Share;
use super::state::{BY_GROUP, Bytes, NOTHING, Residency, Sidecar, WHOLE};
use super::unusable::Unusable;
use crate::error::{Error, IoOp};
use crate::fs::{Map, READ_BYTES};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use std::io::ErrorKind;
use std::sync::atomic::fence;

/// The outcome of [`Sidecar::verify`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// All lines match their checksums.
    Verified,
    /// Another thread is verifying the sidecar.
    InProgress,
}

impl Sidecar {
    /// The map of the file, created on the first call.
    #[inline]
    pub(super) fn mapped(&self) -> Result<&Bytes, Unusable> {
        match self.bytes.get() {
            Some(bytes) => Ok(bytes),
            None => self.map_now(),
        }
    }

    #[cold]
    fn map_now(&self) -> Result<&Bytes, Unusable> {
        let no_room = || Error::io(IoOp::Map, &self.path, ErrorKind::OutOfMemory.into());
        let share = self.maps.take().ok_or_else(no_room)?;
        match self.map_with(share) {
            Ok(bytes) => {
                let bytes = self.bytes.get_or_init(|| bytes);
                self.give_back_if_ownerless();
                Ok(bytes)
            }
            Err(reason) if reason.is_passing() => {
                self.maps.ask_for_room();
                Err(reason)
            }
            Err(reason) => {
                let reason = self.condemn(reason);
                self.maps.tell_of_bad();
                Err(reason)
            }
        }
    }

    /// Gives the memory back if all owners are gone. Called by the last owner, and by a probe that has just
    /// mapped the file: whichever comes second sees what the other has done.
    pub(super) fn give_back_if_ownerless(&self) {
        fence(SeqCst);
        if let Some(bytes) = self.bytes.get()
            && self.owners.are_gone()
        {
            bytes.map.give_back();
        }
    }

    fn map_with(&self, share: Share) -> Result<Bytes, Unusable> {
        let facts = self.facts()?;
        // SAFETY: this crate writes a sidecar under a temporary name, renames it into place and never touches
        // its bytes again. `Residency::Mapped` describes what happens if another program does.
        let map = unsafe { self.maps.fs.map(&self.path) }?;
        map.expect_single_pages();
        facts.check_same(&map)?;
        Ok(Bytes::new(map, Some(share), facts))
    }

    /// Whether a group's lines match their checksum in this map. Compares them on the first call.
    pub(super) fn believe(&self, bytes: &Bytes, group: usize) -> bool {
        bytes.verified.has(group) || self.read_and_compare(bytes, group)
    }

    #[inline(never)]
    fn read_and_compare(&self, bytes: &Bytes, group: usize) -> bool {
        // They were read before the bytes.
        let Ok(facts) = self.facts() else { return false };
        bytes.reads.begin(&bytes.map, facts.parts_of(group));
        self.compare(bytes, facts, group)
    }

    fn compare(&self, bytes: &Bytes, facts: &Facts, group: usize) -> bool {
        let map = &bytes.map;
        let [lines, stored] = facts.parts_of(group).map(|part| map.get(part).unwrap_or_default());
        let matches = stored == facts.seal.checksum(group, lines).to_le_bytes();
        // Checked after the comparison: missing pages read as zeros from the fault on.
        if map.has_faulted() {
            self.condemn(Unusable::Faulted);
        } else if matches {
            bytes.verified.set(group);
            return true;
        } else {
            self.condemn(Unusable::bad_group(group));
        }
        self.maps.tell_of_bad();
        false
    }

    /// Starts to read the file, unless it is already verified.
    pub fn will_need(&self) {
        if !self.is_verified()
            && let Ok(file) = self.maps.fs.open(&self.path)
            && let Ok(len) = file.len()
        {
            file.will_need(0, len);
        }
    }

    /// Makes the sidecar answer nothing from now on. Keeps and returns the first reason.
    fn condemn(&self, reason: Unusable) -> Unusable {
        let reason = self.condemned.get_or_init(|| reason).clone();
        self.trust.store(NOTHING, Release);
        reason
    }

    /// Reads all lines (into anonymous memory, if pinned) and verifies all checksums. Cheap once done. Never
    /// waits for another thread's verification.
    ///
    /// # Errors
    /// [`Unusable`] if a checksum does not match, now or in an earlier probe, if lines cannot be read, or if
    /// pinning lacks memory. Every later call returns the same error.
    pub fn verify(&self) -> Result<Verification, Unusable> {
        if self.has_faulted() {
            return Err(self.condemn(Unusable::Faulted));
        }
        if let Some(reason) = self.condemned.get() {
            return Err(reason.clone());
        }
        if self.is_verified() {
            return Ok(Verification::Verified);
        }
        if self.verifying.swap(true, Acquire) {
            return Ok(Verification::InProgress);
        }
        let checked = match self.residency {
            Residency::Mapped => self.compare_all(),
            Residency::Pinned => self.pin(),
        };
        let result = match checked {
            // A probe may have condemned the sidecar during this call.
            Ok(()) => self.condemned.get().map_or(Ok(Verification::Verified), |reason| Err(reason.clone())),
            Err(reason) => Err(self.condemn(reason)),
        };
        self.verifying.store(false, Release);
        result
    }

    /// Verifies the lines through the map, or by reading the file if maps run short.
    fn compare_all(&self) -> Result<(), Unusable> {
        if self.bytes.get().is_none() && !self.maps.has_spare() {
            return self.check_unmapped();
        }
        let bytes = match self.mapped() {
            Err(reason) if reason.is_passing() => return self.check_unmapped(),
            mapped => mapped?,
        };
        let facts = self.facts()?;
        let mut read_to = 0;
        let mut matches = |group: usize| {
            let [lines, _] = facts.parts_of(group);
            if lines.end > read_to {
                read_to = self.maps.reads.read_piece(&bytes.map, lines.start);
            }
            bytes.verified.has(group) || self.compare(bytes, facts, group)
        };
        match (0..facts.header.groups()).find(|&group| !matches(group)) {
            None => {
                bytes.map.expect_all_pages();
                let _ = self.trust.compare_exchange(BY_GROUP, WHOLE, AcqRel, Acquire);
                Ok(())
            }
            Some(group) => Err(Unusable::bad_group(group)),
        }
    }

    fn check_unmapped(&self) -> Result<(), Unusable> {
        let facts = self.facts()?;
        let file = self.maps.fs.open(&self.path)?;
        facts.header.check_length(file.len()?)?;
        let (mut at, end) = (0, facts.header.checksums_at());
        let mut piece = vec![0; READ_BYTES.min(usize::try_from(end).unwrap_or(READ_BYTES))];
        while at < end {
            let len = (end - at).min(READ_BYTES as u64) as usize;
            let piece = piece.get_mut(..len).unwrap_or_default();
            file.read_exact_at(piece, at)?;
            facts.check_piece(&*file, at, piece)?;
            at += len as u64;
        }
        self.checked.store(true, Release);
        Ok(())
    }

    fn pin(&self) -> Result<(), Unusable> {
        // If the bytes are set, another thread has just pinned the sidecar.
        if self.bytes.get().is_none() {
            let copy = self.read_all()?;
            let _ = self.bytes.set(Bytes::new(copy, None, self.facts()?)); // `verifying` admits one thread.
            let _ = self.trust.compare_exchange(NOTHING, WHOLE, AcqRel, Acquire);
        }
        Ok(())
    }

    /// Copies the file into anonymous memory and verifies all checksums of the copy, piece by piece.
    fn read_all(&self) -> Result<Map, Unusable> {
        let facts = self.facts()?;
        let file = self.maps.fs.open(&self.path)?;
        facts.header.check_length(file.len()?)?;
        let bytes = usize::try_from(facts.header.file_bytes()).unwrap_or(usize::MAX);
        let map = Map::read(&*file, bytes, |at, piece| facts.check_piece(&*file, at, piece))?;
        facts.check_same(&map)?;
        Ok(map)
    }
}
