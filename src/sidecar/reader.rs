//! Reads a sidecar: opens and maps the file on the first probe, checks its header, and then trusts the lines
//! group by group.
//!
//! I1 by construction: probes read lines in two places only. [`Sidecar::ask_whole`] reads any line, once all
//! groups have matched their checksums ([`WHOLE`]). [`Sidecar::ask_by_group`] first passes each line to
//! [`Sidecar::believe`], which compares the line's group with its checksum unless that was done in this map.
//! A mismatch condemns the sidecar: it answers nothing from then on.

use super::state::{BY_GROUP, Bytes, NOTHING, RESTED, Sidecar, WHOLE};
use crate::filter::format::groups::GROUP_LINES;
use crate::filter::{PrefixQuery, Verdict};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

impl Sidecar {
    /// Prefetches what [`ask`](Self::ask) will read.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(bytes) = self.bytes.get() {
            bytes.first.prefetch(bytes.map.window(), hash);
        }
    }

    /// Probes for a key's hash. `None` if the sidecar cannot answer, because it is not pinned yet, could not
    /// be mapped, or is condemned.
    #[inline]
    pub fn ask(&self, hash: u64) -> Option<Verdict> {
        if self.trust.load(Acquire) != WHOLE {
            return self.ask_with_care(hash);
        }
        self.ask_whole(self.bytes.get()?, hash)
    }

    /// Whether [`ask`](Self::ask) denies the hash.
    #[inline(never)]
    pub fn denies(&self, hash: u64) -> bool {
        self.ask(hash) == Some(Verdict::Absent)
    }

    /// [`ask`](Self::ask) for a prefix of keys. `None` also if the filter was built without such prefixes.
    pub fn ask_prefix(&self, query: &PrefixQuery) -> Option<Verdict> {
        if self.facts.get().is_none() && self.trust.load(Acquire) == BY_GROUP {
            self.mapped().ok()?; // The first probe of a mapped file reads its header.
        }
        self.ask(query.hash_for(&self.facts.get()?.header.prefixes.set)?)
    }

    #[inline]
    fn ask_whole(&self, bytes: &Bytes, hash: u64) -> Option<Verdict> {
        let verdict = bytes.prober.probe(bytes.lines(), hash);
        // Checked after the probe: missing lines read as zeros.
        if verdict == Verdict::Absent && bytes.map.has_faulted() {
            return None;
        }
        Some(verdict)
    }

    #[inline(never)]
    fn ask_with_care(&self, hash: u64) -> Option<Verdict> {
        if !self.asked.load(Relaxed) {
            self.asked.store(true, Relaxed);
        }
        match self.trust.load(Acquire) {
            NOTHING => {
                self.maps.tell_again();
                None
            }
            BY_GROUP => self.ask_by_group(self.mapped().ok()?, hash),
            _ => {
                // Otherwise only a condemnation leaves this state, and that must stay.
                let _ = self.trust.compare_exchange(RESTED, WHOLE, AcqRel, Relaxed);
                self.ask_whole(self.bytes.get()?, hash)
            }
        }
    }

    /// Like [`ask`](Self::ask), but returns [`Verdict::Maybe`] if the sidecar cannot answer.
    #[inline]
    pub fn probe(&self, hash: u64) -> Verdict {
        self.ask(hash).unwrap_or(Verdict::Maybe)
    }

    fn ask_by_group(&self, bytes: &Bytes, hash: u64) -> Option<Verdict> {
        let mut believe = |line| self.believe(bytes, line / GROUP_LINES);
        let verdict = bytes.prober.probe_believed(bytes.lines(), hash, &mut believe);
        verdict.filter(|_| !bytes.map.has_faulted())
    }
}

/// The sidecar of a live segment. When the last clone is dropped, no view has the segment any more, and the
/// sidecar frees its memory and its file. Threads that keep a [`shared`](Self::shared) one may still probe
/// it, but it then denies all keys: only an answer given while a view had the segment counts (I1).
pub struct LiveSidecar(Arc<Sidecar>);

impl LiveSidecar {
    /// The sidecar of a segment that becomes live.
    pub fn new(sidecar: Sidecar) -> Self {
        sidecar.owners.add();
        LiveSidecar(Arc::new(sidecar))
    }

    /// Whether both are the same sidecar.
    pub fn is(&self, other: &LiveSidecar) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The sidecar without its segment.
    pub fn shared(&self) -> Arc<Sidecar> {
        Arc::clone(&self.0)
    }
}

impl Clone for LiveSidecar {
    fn clone(&self) -> Self {
        self.0.owners.add();
        LiveSidecar(Arc::clone(&self.0))
    }
}

impl Drop for LiveSidecar {
    fn drop(&mut self) {
        if self.0.owners.remove() {
            self.0.give_back_if_ownerless();
        }
    }
}

impl Deref for LiveSidecar {
    type Target = Sidecar;

    #[inline(always)]
    fn deref(&self) -> &Sidecar {
        &self.0
    }
}

impl fmt::Debug for LiveSidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
