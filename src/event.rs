//! What happens in a store: the events that [`tracing`] and a callback are told.
//!
//! The list is the one home of their names, their fields and their levels. docs/events.md has it for readers.

/// The target of all events in [`tracing`].
const TARGET: &str = "sidebloom::event";

/// What a write waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteStall {
    /// Two full memtables wait for a flush.
    Flush,
    /// Level 0 has so many segments that a compaction must come first.
    Compaction,
}

impl WriteStall {
    /// As in metrics and events: `flush` or `compaction`.
    pub fn name(self) -> &'static str {
        match self {
            WriteStall::Flush => "flush",
            WriteStall::Compaction => "compaction",
        }
    }
}

/// Defines the enum, the names, and how [`tracing`] is told.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $name:literal, $level:ident, $message:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
    )*) => {
        /// Something that happened in a store: see [`Options::on_event`](crate::Options::on_event).
        ///
        /// [`tracing`](https://docs.rs/tracing) gets the same events, with the target `sidebloom::event`, the
        /// [name](Self::name) in the field `event`, and the fields under the names that they have here. Names
        /// and fields stay; later releases may add some. `docs/events.md` lists them with their levels.
        #[derive(Debug, Clone, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "event", rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum Event {
            $($(#[$doc])* #[non_exhaustive] $variant { $($(#[$field_doc])* $field: $type,)* },)*
        }

        impl Event {
            /// The event's name, as in the field `event` of [`tracing`](https://docs.rs/tracing).
            pub fn name(&self) -> &'static str {
                match self { $(Event::$variant { .. } => $name,)* }
            }

            /// Tells [`tracing`].
            pub(crate) fn trace(&self) {
                match self {
                    $(Event::$variant { $($field),* } => tracing::event!(
                        target: TARGET, tracing::Level::$level, event = $name, $($field,)* $message
                    ),)*
                }
            }

            /// The name, the level and the fields of each event.
            #[cfg(test)]
            const ALL: &'static [(&'static str, &'static str, &'static [&'static str])] =
                &[$(($name, stringify!($level), &[$(stringify!($field)),*]),)*];
        }
    };
}

events! {
    /// A memtable was flushed.
    Flush = "flush", DEBUG, "flushed a memtable" {
        /// Segments written; none if all of its rows were deleted before.
        segments: u64,
        /// Their size.
        bytes: u64,
        /// How long it took.
        seconds: f64,
    }
    /// A compaction has ended.
    Compaction = "compaction", DEBUG, "compacted" {
        /// `merge`; `rewrite` of one segment in its level; `move` to another level, or `drop` of whole
        /// segments, neither of which reads them.
        kind: &'static str,
        /// The level of the outputs.
        output_level: u64,
        /// Segments that were replaced.
        input_segments: u64,
        /// Their size.
        input_bytes: u64,
        /// Segments that replace them.
        output_segments: u64,
        /// Their size.
        output_bytes: u64,
        /// How long it took.
        seconds: f64,
    }
    /// A writer has waited for a second, and still waits.
    LongStall = "long_stall", WARN, "writes wait for flushes or compactions" {
        /// Segments in level 0. Writers stall at 36 of a keyspace.
        level0_segments: u64,
        /// Full memtables that wait for a flush, or are in one. Writers stall at 2.
        memtables_waiting: u64,
        /// Segments in running compactions.
        compacting_segments: u64,
    }
    /// A writer has waited, and goes on.
    Stall = "stall", DEBUG, "a write waited" {
        /// What it waited for last: `flush` or `compaction`.
        reason: &'static str,
        /// How long.
        seconds: f64,
    }
    /// A segment cannot be read completely. Compactions leave it out; its readable blocks still serve reads.
    Quarantine = "quarantine", WARN, "cannot read a segment completely; its readable blocks still serve reads, but compactions leave it out; run `sidebloom repair`" {
        /// The segment's file.
        file: String,
        /// Why it could not be read.
        error: String,
    }
    /// A segment was readable again, and is back in its level.
    QuarantineEnd = "quarantine_end", INFO, "a segment is readable again and back from quarantine" {
        /// The segment's file.
        file: String,
    }
    /// A filter is missing or damaged. Its segment is read instead until the filter is rebuilt.
    FilterUnusable = "filter_unusable", WARN, "filter is unusable; its segment is read instead until the filter is rebuilt" {
        /// The filter's file.
        file: String,
        /// What is wrong with it.
        reason: String,
    }
    /// A filter was written for a segment that had none, an unusable one, or one for another policy.
    FilterRebuilt = "filter_rebuilt", DEBUG, "rebuilt a filter" {
        /// The filter's file.
        file: String,
        /// Keys of its segment.
        keys: u64,
        /// How long it took.
        seconds: f64,
    }
    /// An attempt failed for lack of something, and is made again.
    Shortage = "shortage", DEBUG, "an attempt failed for lack of a resource" {
        /// `disk` or `descriptors`.
        resource: &'static str,
        /// The error.
        error: String,
    }
    /// A follower has not seen the writer's changes for more than a second.
    FollowerLag = "follower_lag", WARN, "the follower lags behind the store's writer" {
        /// Everything written longer ago than this is visible.
        seconds: f64,
    }
    /// A follower that lagged sees everything again.
    FollowerCaughtUp = "follower_caught_up", INFO, "the follower has caught up with the store's writer" {
        /// How long it had lagged.
        seconds: f64,
    }
    /// The store takes no more writes until it is reopened.
    Failed = "failed", ERROR, "store is read-only until it is reopened" {
        /// Why.
        cause: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of an event in docs/events.md: its heading, and the names in the first column.
    fn documented(page: &str) -> Vec<(String, String, Vec<String>)> {
        let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
        let mut events: Vec<(String, String, Vec<String>)> = Vec::new();
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## `") {
                let (name, level) = heading.split_once("` (").unwrap();
                events.push((name.to_owned(), level.trim_end_matches(')').to_uppercase(), Vec::new()));
            } else if let (true, Some((.., fields))) = (line.starts_with("| `"), events.last_mut()) {
                fields.push(quoted(line));
            }
        }
        events
    }

    #[test]
    fn the_page_of_events_has_every_name_level_and_field() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events.md");
        let page = documented(&std::fs::read_to_string(path).unwrap());
        let all: Vec<_> = Event::ALL
            .iter()
            .map(|(name, level, fields)| {
                let fields: Vec<String> = fields.iter().map(|field| field.to_string()).collect();
                (name.to_string(), level.to_string(), fields)
            })
            .collect();
        assert_eq!(page, all);
    }
}
