//! The lookups of several keys in one view, run by run instead of key by key, so that the cache misses of all keys overlap.

use super::lookup::{Lookup, Route, RunNumber};
use crate::filter::ProbeHash;
use crate::fs::any_fault;
use crate::manifest::{Fenced, LevelCounts};

/// Keys whose filter lines are prefetched together: about as many cache misses as a core can have outstanding.
pub(super) const KEYS_AHEAD: usize = 16;
const _: () = assert!(KEYS_AHEAD <= LevelCounts::MAX);

/// [`Lookup::route`] of up to [`KEYS_AHEAD`] lookups in one view.
pub(super) fn routes(lookups: &[Lookup<'_>]) -> [Route; KEYS_AHEAD] {
    let mut routes = [Route::Nowhere; KEYS_AHEAD];
    let Some(Lookup { view, filters, counters, .. }) = lookups.first() else { return routes };
    if !filters {
        routes.iter_mut().zip(lookups).for_each(|(route, lookup)| *route = lookup.route());
        return routes;
    }
    for table in std::iter::once(&view.active).chain(&view.immutable).filter(|table| !table.is_unused()) {
        lookups.iter().for_each(|lookup| table.prefetch(lookup.key.hash));
    }
    let mut hashes = [ProbeHash::new(0); KEYS_AHEAD];
    for ((route, hash), lookup) in routes.iter_mut().zip(&mut hashes).zip(lookups) {
        *hash = ProbeHash::new(lookup.key.hash);
        if !lookup.memtables_deny() {
            *route = Route::Memtables;
        }
    }
    for (number, group) in view.live.run_groups().iter().enumerate() {
        let mut fences: [Option<u64>; KEYS_AHEAD] = [None; KEYS_AHEAD];
        for ((fence, route), lookup) in fences.iter_mut().zip(&routes).zip(lookups) {
            *fence = if *route == Route::Nowhere { group.fence(lookup.key.key) } else { None };
        }
        for (run_number, run) in group.runs().iter().enumerate() {
            let mut found: [Option<&Fenced>; KEYS_AHEAD] = [None; KEYS_AHEAD];
            for ((found, fence), lookup) in found.iter_mut().zip(&fences).zip(lookups) {
                *found = fence.and_then(|fence| run.find(fence, lookup.key.key));
                if let Some(sidecar) = found.and_then(|fenced| fenced.sidecar.as_deref()) {
                    sidecar.prefetch(lookup.key.hash);
                }
            }
            let mut denials = LevelCounts::default();
            for (((found, hash), route), fence) in found.iter().zip(&hashes).zip(&mut routes).zip(&mut fences)
            {
                let Some(fenced) = found else { continue };
                if fenced.denies(hash) {
                    denials += run.count();
                } else {
                    (*route, *fence) = (Route::Runs(RunNumber { group: number, run: run_number }), None);
                }
            }
            counters.denials(denials);
        }
    }
    // Checked after the probes: missing lines read as zeros.
    if any_fault() {
        let nowhere = routes.iter_mut().zip(lookups).filter(|(route, _)| **route == Route::Nowhere);
        nowhere.for_each(|(route, lookup)| *route = lookup.first_faulted());
    }
    routes
}
