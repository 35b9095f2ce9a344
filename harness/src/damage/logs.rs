//! What a store may answer when its logs are damaged. A damaged log is an error, except where a crash
//! explains it and nothing shows that the damaged part had been synced: then the store has exactly the
//! batches before it.

use super::store::{Store, Victim};
use super::wound::{Wound, Wounds};
use std::collections::BTreeSet;

/// The allowed answers other than an error.
#[derive(Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The answers of a store with all operations.
    pub whole: bool,
    /// The answers of a store with this many operations.
    pub prefix: Option<usize>,
}

/// The first damaged record of all.
pub fn allowed(store: &Store, wounds: &Wounds<'_>) -> Allowed {
    let wound = &wounds.all[0];
    let Some(at) = wound.first_piece() else { return Allowed { whole: true, prefix: None } };
    let record = &wound.victim.records[at];
    let is_lost = wound.looks_lost(&record.bytes);
    let was_synced = was_synced(store, wounds, wound, record.bytes.start);
    Allowed {
        whole: is_lost || !wound.harm.is_noise,
        prefix: (is_lost && !was_synced).then_some(record.first_seq as usize - 1),
    }
}

/// Whether anything else on the disk proves that the log had been synced beyond this offset.
fn was_synced(store: &Store, wounds: &Wounds<'_>, wound: &Wound<'_>, offset: usize) -> bool {
    let log = wound.victim;
    let by_mark = store.manifest.mark.is_some_and(|(marked, bytes)| {
        log.id < marked && log.records.len() > 1 || log.id == marked && bytes as usize > offset
    });
    let by_later_record = |log: &Victim, wound: Option<&Wound<'_>>, beyond: usize| {
        let mut later = log.records.iter().filter(|later| later.bytes.start > offset || wound.is_none());
        later.any(|later| later.synced > beyond && wound.is_none_or(|wound| wound.is_intact(&later.bytes)))
    };
    let wound_of = |log: &Victim| wounds.all.iter().find(|wound| wound.victim.id == log.id);
    let mut later_logs = store.logs.iter().filter(|later| later.id > log.id);
    // A log that lost its header or a record may not be able to tell.
    let by_later_log = later_logs.any(|later| {
        wound_of(later).is_none()
            && later.records[0].first_seq > log.records[0].first_seq
            && by_later_record(later, None, 0)
    });
    by_mark || by_later_record(log, Some(wound), offset) || by_later_log
}

/// The operations whose records changed.
pub fn damaged_operations(wounds: &Wounds<'_>) -> BTreeSet<usize> {
    let mut lost = BTreeSet::new();
    for wound in &wounds.all {
        for record in wound.victim.records.iter().filter(|record| !wound.is_intact(&record.bytes)) {
            let first = record.first_seq as usize - 1;
            lost.extend(first..first + record.count as usize);
        }
    }
    lost
}
