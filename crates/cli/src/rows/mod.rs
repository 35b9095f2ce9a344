//! The formats that `sidebloom load` reads, one module each, and the text form of `sidebloom scan`.

mod columns;
pub mod csv;
pub mod escape;
pub mod jsonl;
pub mod lines;
pub mod scanned;
mod source;
pub mod tsv;

pub use columns::{Column, ColumnChoice};
pub use source::{MAX_LINE_BYTES, Row, RowError, Rows};
