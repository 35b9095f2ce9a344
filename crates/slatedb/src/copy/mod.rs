//! Copies of stores to a SlateDB and back.
//!
//! A store's calls block, SlateDB's are asynchronous. So each copy has a blocking task for the store, and a
//! channel that holds a few batches: memory stays bounded, and the slower side sets the pace.

mod error;
mod export;
mod import;
mod progress;

pub use error::Error;
pub use export::export;
pub use import::import;
pub use progress::Copied;
