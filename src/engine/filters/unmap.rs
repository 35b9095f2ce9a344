//! Unmaps filters that nobody probes, so that the number of maps stays within the options (I12).

use super::FilterKeeper;
use crate::engine::tasks::queue::Queue;
use crate::live::{LiveSegment, LiveSet};
use crate::sidecar::LiveSidecar;
use crate::sync::Instant;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for readers of the previous view after unmapping sidecars, and the pause when snapshots
/// hold every map.
const UNMAP_WAIT: Duration = Duration::from_millis(20);

impl FilterKeeper {
    /// Makes room for maps: unmaps sidecars that were not probed since the last call, and others if need be.
    pub fn unmap_cold(&self) {
        let live = self.shared.live();
        let mapped: Vec<&LiveSegment> = live
            .segments()
            .filter(|s| s.sidecar.as_ref().is_some_and(|sidecar| sidecar.is_mapped()))
            .collect();
        let (asked, cold): (Vec<_>, Vec<_>) =
            mapped.into_iter().partition(|s| s.sidecar.as_ref().is_some_and(|sidecar| sidecar.take_asked()));
        // Deepest levels first: upper levels are probed for more keys.
        let victims = cold.into_iter().rev().chain(asked.into_iter().rev());
        let victims: Vec<&LiveSegment> = victims.take(self.shared.storage.maps.excess()).collect();
        if victims.is_empty() {
            self.shared.control.lock().sidecars.unmap_from = Some(Instant::now() + UNMAP_WAIT);
            return;
        }
        let before = self.shared.current_view();
        let mut unchecked = Queue::default();
        let unmap = |live: &Arc<LiveSet>| {
            let unmapped = |then: &&LiveSegment| {
                let s = live.now(&then.meta)?;
                let (now, then) = (s.sidecar.as_ref()?, then.sidecar.as_ref()?);
                let sidecar = now.is(then).then(|| LiveSidecar::new(now.unmapped()))?;
                Some(LiveSegment { sidecar: Some(sidecar), ..s.clone() })
            };
            let renewed: Vec<LiveSegment> = victims.iter().filter_map(unmapped).collect();
            // A running verification covers only the previous sidecar.
            let unverified = renewed.iter().filter(|s| s.waits_for_verification());
            unchecked = unverified.map(|s| Arc::clone(&s.meta)).collect();
            Some(live.replaced(renewed))
        };
        self.shared.change_live(unmap, |_| {});
        self.shared.control.lock().sidecars.to_check.append(unchecked);
        // Unmapping many files takes a while. Do it here rather than in the last reader of the old view,
        // unless a snapshot keeps that.
        let since = Instant::now();
        while Arc::strong_count(&before) > 1 && since.elapsed() < UNMAP_WAIT {
            crate::sync::sleep(Duration::from_millis(1));
        }
    }
}
