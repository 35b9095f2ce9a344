//! The compactor: picks, reserves and runs compactions, in the background and on request, and takes segments
//! back from quarantine.

pub(crate) mod compaction;
mod costs;
mod drop_keyspace;
mod manual;
mod merge;
pub(crate) mod next_compaction;
pub(crate) mod pick;
pub(crate) mod rate_bucket;
pub(crate) mod reservation;
mod take_back;
mod throttle;
mod wait_for_compaction;

#[cfg(test)]
pub(crate) mod level_tests;
#[cfg(test)]
mod move_tests;

use self::costs::MergeCosts;
use super::filters::FilterKeeper;
use super::publish::Publisher;
use super::shared::Shared;
use crate::sync::Mutex;
use std::sync::Arc;

/// Picks and runs compactions.
pub(crate) struct Compactor {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    filters: Arc<FilterKeeper>,
    /// What the last pick found out about the levels. Held by the thread that picks; locked before `control`.
    costs: Mutex<MergeCosts>,
}

impl Compactor {
    pub fn new(shared: Arc<Shared>, publisher: Arc<Publisher>, filters: Arc<FilterKeeper>) -> Self {
        Compactor { shared, publisher, filters, costs: Mutex::default() }
    }
}
