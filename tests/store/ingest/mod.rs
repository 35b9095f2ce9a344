//! Ingested rows: all of them or none, in their place among other writes.

mod sequence_numbers;
mod sorted;
mod unsorted;
mod used_store;
