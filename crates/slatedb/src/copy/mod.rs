//! Stores copied to a SlateDB and back.
//!
//! The calls of a store block, those of SlateDB are asynchronous. So each copy has a blocking task for the
//! store, and a channel that holds a few batches: memory stays bounded, and the slower side sets the pace.

mod copied;
mod error;
mod export;
mod import;

pub use copied::Copied;
pub use error::Error;
pub use export::export;
pub use import::import;
