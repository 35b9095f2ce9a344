//! Named Bloom and cuckoo filters.
//!
//! [`Filters`] is a store with two keyspaces: one has a record for each filter, the other a row for each
//! item. So filters cost what was added to them, whatever they were created for, and are exact: an item is
//! its keyed hash of 128 bits. Questions about items that are not there cost a cache line, as in any store.
//!
//! Parameters are RedisBloom's. What is not needed to store items is kept and reported: the error rate of a
//! Bloom filter, and the bucket size and iterations of a cuckoo filter. What limits items is enforced.

mod bloom;
mod cuckoo;
mod dump;
mod filter;
mod growth;
mod items;
mod keys;
mod names;
mod parameters;
mod record;
mod refusal;
mod store;

pub use bloom::Bloom;
pub use cuckoo::{Cuckoo, NoCuckoo};
pub use dump::is_chunk;
pub use filter::{Filter, Mark};
pub use items::{ItemCommands, ItemOp, ItemOutcome, ItemOutcomes};
pub use keys::Created;
pub use names::DATABASES;
pub use parameters::{Kind, Parameters};
pub use refusal::{Refusal, Result};
pub use store::{Filters, FiltersOptions, NamedFilter};

#[cfg(test)]
mod tests;
