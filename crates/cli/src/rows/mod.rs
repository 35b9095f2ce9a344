//! The files that `sidebloom load` reads, one module per format, and the text form that `sidebloom scan`
//! prints.

mod columns;
pub mod csv;
pub mod escape;
pub mod jsonl;
pub mod lines;
pub mod scanned;
mod source;
pub mod tsv;

pub use columns::{Column, ColumnChoice};
pub use source::{Row, RowError, Rows};
