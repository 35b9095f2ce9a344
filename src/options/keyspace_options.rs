//! The settings of a keyspace.

use super::{FilterPolicy, check_block_bytes, check_compression};
use crate::error::{Error, Result};
use crate::filter::{PrefixExtractor, PrefixSet};
use crate::key::Expiry;
use crate::segment::Compression;
use std::time::Duration;

/// The shortest window.
const WINDOW_MIN: Duration = Duration::from_secs(1);

/// The settings of a keyspace. What is not set is as in the [`Options`](crate::Options) of the store.
///
/// They are stored, and apply to segments that are written from now on;
/// [`rebuild_filters`](crate::Keyspace::rebuild_filters) gives the others new filters.
///
/// ```
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// use sidebloom::{Db, FilterPolicy, KeyspaceOptions};
///
/// let db = Db::open(dir.path().join("service.db"))?;
/// // Is only asked for what exists.
/// let hits = KeyspaceOptions::new().filter_policy(FilterPolicy::OFF);
/// let users = db.create_keyspace("users", hits)?;
/// // Is mostly asked for what does not exist.
/// let misses = KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(15.0));
/// let seen = db.create_keyspace("seen", misses)?;
/// users.put("ann", "1")?;
/// assert!(seen.get("ann")?.is_none());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct KeyspaceOptions {
    pub(crate) filter_policy: Option<FilterPolicy>,
    /// An error is returned when the options are used.
    pub(crate) prefixes: Option<Result<PrefixSet, crate::filter::Error>>,
    pub(crate) compression: Option<Compression>,
    pub(crate) block_bytes: Option<usize>,
    pub(crate) expire_after: Option<Duration>,
    pub(crate) window: Option<Duration>,
}

impl KeyspaceOptions {
    /// Everything as in the store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The filters of its segments. By default they share those of the store: with
    /// [`bits_per_key`](FilterPolicy::bits_per_key) and [`memory_budget`](FilterPolicy::memory_budget), the
    /// memory is spread over all keyspaces that share it. A policy of its own applies to this keyspace alone.
    /// [`FilterPolicy::OFF`] writes no filters.
    ///
    /// If the store's own policy is off, no filter of any keyspace is used.
    pub fn filter_policy(mut self, policy: FilterPolicy) -> Self {
        self.filter_policy = Some(policy);
        self
    }

    /// The prefixes that its filters hold, as [`Options::prefixes`](crate::Options::prefixes) describes. They
    /// are prefixes of its own keys.
    pub fn prefixes(mut self, extractors: impl IntoIterator<Item = PrefixExtractor>) -> Self {
        self.prefixes = Some(PrefixSet::new(extractors));
        self
    }

    /// Compression of its segments.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Size of its data blocks before compression, in bytes: 256 bytes to 1 MiB.
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = Some(bytes);
        self
    }

    /// How long its rows live, from when they are written: at least a millisecond. Applies to puts from now
    /// on that do not say when their row expires. By default, rows do not expire.
    pub fn expire_after(mut self, lifetime: Duration) -> Self {
        (self.expire_after, self.window) = (Some(lifetime), None);
        self
    }

    /// What was written within a window of time, of at least a second. Rows live so long, instead of
    /// [`expire_after`](Self::expire_after), and segments are kept apart by time: those of different twelfths
    /// of the window are not merged, and each is removed unread once its rows have expired.
    ///
    /// A lookup asks about 24 filters, and a walk merges as many segments. A put may give its row another
    /// life; if it is longer than the window, the rest of its segment is read and merged away once that has
    /// expired. Until then, a compaction on demand leaves segments alone.
    pub fn window(mut self, window: Duration) -> Self {
        (self.window, self.expire_after) = (Some(window), None);
        self
    }

    /// How long its rows live, if they expire.
    pub fn lifetime(&self) -> Option<Duration> {
        self.window.or(self.expire_after)
    }

    /// The filter policy, if it has one of its own.
    pub fn own_filter_policy(&self) -> Option<FilterPolicy> {
        self.filter_policy
    }

    /// The prefixes, if they are not the store's.
    pub(crate) fn own_prefixes(&self) -> Option<PrefixSet> {
        self.prefixes.as_ref().map(|prefixes| prefixes.clone().unwrap_or_default())
    }

    /// Checks what is set.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a value out of range; [`Error::FeatureMissing`].
    pub(crate) fn validate(&self) -> Result<()> {
        self.filter_policy.map_or(Ok(()), |policy| policy.validate())?;
        self.block_bytes.map_or(Ok(()), check_block_bytes)?;
        self.compression.map_or(Ok(()), check_compression)?;
        self.prefixes.clone().transpose()?;
        self.lifetime().map_or(Ok(()), |lifetime| Expiry::after(lifetime).checked().map(drop))?;
        match self.window {
            Some(window) if window < WINDOW_MIN => {
                Err(Error::InvalidArgument(format!("a window of {window:?}: at least 1 s is possible")))
            }
            _ => Ok(()),
        }
    }
}

/// As in the command line: `filter 15 bits per key, compression lz4`.
impl std::fmt::Display for KeyspaceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prefixes = self.own_prefixes().map(|set| {
            let all: Vec<String> = set.iter().map(|extractor| extractor.to_string()).collect();
            format!("prefixes {}", if all.is_empty() { "none".to_owned() } else { all.join(" ") })
        });
        let parts = [
            self.filter_policy.map(|policy| format!("filters {policy}")),
            prefixes,
            self.compression.map(|compression| format!("compression {}", compression.name())),
            self.block_bytes.map(|bytes| format!("blocks of {bytes} bytes")),
            self.expire_after.map(|lifetime| format!("rows expire after {lifetime:?}")),
            self.window.map(|window| format!("a window of {window:?}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("as the store") } else { f.write_str(&parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused() {
        assert!(KeyspaceOptions::new().block_bytes(255).validate().is_err());
        assert!(KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(1.0)).validate().is_err());
        assert!(KeyspaceOptions::new().prefixes([PrefixExtractor::fixed(0)]).validate().is_err());
        assert!(KeyspaceOptions::new().expire_after(Duration::from_micros(999)).validate().is_err());
        assert!(KeyspaceOptions::new().expire_after(Duration::MAX).validate().is_err());
        assert!(KeyspaceOptions::new().expire_after(Duration::from_millis(1)).validate().is_ok());
        let window = |millis| KeyspaceOptions::new().window(Duration::from_millis(millis));
        assert!(window(999).validate().is_err() && window(1000).validate().is_ok());
        assert!(
            window(999).expire_after(Duration::from_millis(999)).validate().is_ok(),
            "the last one counts"
        );
        assert!(KeyspaceOptions::new().window(Duration::MAX).validate().is_err());
        assert!(KeyspaceOptions::new().validate().is_ok());
    }
}
