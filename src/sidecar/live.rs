//! The sidecars of live segments, and what remains of one once no view has its segment.

use super::state::Sidecar;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

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
