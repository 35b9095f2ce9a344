//! Segments: immutable sorted files of entries, each key at most once. See [`mod@format`] for the byte map.
//!
//! A [`SegmentWriter`] writes one front to back. A [`Segment`] is an open one: [`get`](Segment::get) reads
//! one key, [`cursor`](Segment::cursor) walks from a bound in either direction, [`verify`](Segment::verify)
//! checks everything. A [`SegmentFile`] opens its segment on first use. Data blocks come through the store's
//! [`BlockCache`]. Index partitions stay in memory up to a share of the cache, with the small top index.

pub mod format;

mod access;
mod appender;
mod block;
mod block_builder;
mod block_check;
mod block_ends;
mod block_hash;
mod block_layout;
mod cache;
mod compress;
mod compression;
mod copy_check;
mod cursor;
mod damaged_blocks;
mod expiries;
mod facts;
mod file;
mod in_place;
mod index;
mod kept_ranges;
mod leftovers;
mod open_clock;
mod packing;
mod pinned_partition;
mod properties;
mod read_ahead;
mod read_counters;
mod reader;
mod runs;
mod salvage;
mod summary;
mod symbol_decoder;
mod symbol_encoder;
mod symbols;
mod value_coder;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub use access::Access;
#[cfg(feature = "bench-support")]
pub use block::Block;
#[cfg(feature = "bench-support")]
pub use block_builder::BlockBuilder;
pub use cache::BlockCache;
pub use copy_check::CopyCheck;
pub use cursor::SegmentCursor;
pub use damaged_blocks::{DamagedBlocks, count_blocks, describe};
#[cfg(test)]
pub use expiries::Expiries;
pub use facts::Facts;
#[cfg(fuzzing)]
pub use facts::FactsBuilder;
pub use file::{OpenFiles, SegmentFile};
pub use format::Compression;
pub use properties::{KeyspaceName, Properties, StoreIdentity};
pub use read_counters::ReadCounters;
#[cfg(test)]
pub use read_counters::Reads;
pub use reader::Segment;
pub use salvage::{Gap, SEARCH_BYTES_REPAIR, is_damage, read_properties, salvage};
pub use summary::SegmentSummary;
pub use verify::{OnDamage, OnEntry};
pub use writer::{SegmentWriter, UnnumberedSegment, WriterOptions};
