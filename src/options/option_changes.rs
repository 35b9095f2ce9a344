//! Changes of the options of an open store.

use super::{Durability, FilterPolicy, check_background_threads, check_compaction_rate};
use crate::error::Result;

/// Changes of a store's options while it is open, for [`Db::set_options`](crate::Db::set_options). What is
/// not set here stays as it is. Each value has the limits and the meaning of the option of the same name.
///
/// ```
/// use sidebloom::OptionChanges;
///
/// // At night: more threads, and as much I/O as the disk gives.
/// OptionChanges::new().background_threads(8).compaction_bytes_per_second(0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[must_use = "it changes nothing before `Db::set_options`"]
pub struct OptionChanges {
    pub(crate) block_cache_bytes: Option<u64>,
    pub(crate) background_threads: Option<usize>,
    pub(crate) compaction_bytes_per_second: Option<u64>,
    pub(crate) durability: Option<Durability>,
    pub(crate) filter_policy: Option<FilterPolicy>,
}

impl OptionChanges {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes [`Options::block_cache_bytes`](crate::Options::block_cache_bytes). A smaller cache has evicted
    /// what no longer fits when [`Db::set_options`](crate::Db::set_options) returns, except what readers hold
    /// at that moment. 0 turns it off.
    ///
    /// A cache that was opened with less than half a MiB per core has fewer locks than a large one, and keeps
    /// them as it grows. With many threads, open the store with the larger size.
    pub fn block_cache_bytes(mut self, bytes: u64) -> Self {
        self.block_cache_bytes = Some(bytes);
        self
    }

    /// Changes [`Options::background_threads`](crate::Options::background_threads). Additional threads start
    /// at once. Superfluous ones end after their current tasks, one after another, so that one thread stays
    /// free for flushing.
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = Some(threads);
        self
    }

    /// Changes [`Options::compaction_bytes_per_second`](crate::Options::compaction_bytes_per_second), also
    /// for compactions that are running or waiting.
    pub fn compaction_bytes_per_second(mut self, bytes: u64) -> Self {
        self.compaction_bytes_per_second = Some(bytes);
        self
    }

    /// Changes [`Options::durability`](crate::Options::durability), for writes and commits that begin
    /// afterwards. Earlier ones do not become more durable: [`sync`](crate::Keyspace::sync) makes them so.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Changes [`Options::filter_policy`](crate::Options::filter_policy), for segments that are written from
    /// now on. Earlier ones keep their filters until a compaction replaces them, or
    /// [`rebuild_filters`](crate::Db::rebuild_filters), as after opening with another policy. Filters cannot
    /// be turned on or off: [`FilterPolicy::OFF`] decides at opening whether they are used at all.
    pub fn filter_policy(mut self, policy: FilterPolicy) -> Self {
        self.filter_policy = Some(policy);
        self
    }

    /// Checks what is set, as opening does.
    pub(crate) fn validate(&self) -> Result<()> {
        self.background_threads.map_or(Ok(()), check_background_threads)?;
        self.compaction_bytes_per_second.map_or(Ok(()), check_compaction_rate)?;
        self.filter_policy.map_or(Ok(()), |policy| policy.validate())
    }

    /// Whether anything is set that means nothing in a store that is only read.
    pub(crate) fn concern_writes(&self) -> bool {
        OptionChanges { block_cache_bytes: None, ..*self } != OptionChanges::default()
    }
}
