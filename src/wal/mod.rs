//! The write-ahead log: every batch is appended to it before becoming visible, and replayed after a crash
//! (invariant I4).

mod batch;
mod batch_ops;
#[cfg(test)]
mod crash_tests;
mod encoder;
mod expiring_batch;
mod format;
mod keyspace_batch;
mod reader;
mod salvage;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub use batch::{Batch, check_lengths};
pub use batch_ops::{BatchOp, ops};
pub use encoder::LogEncoder;
#[cfg(fuzzing)]
pub use format::WRITES;
pub use format::{LogHeader, OpKind};
pub use keyspace_batch::KeyspaceBatch;
#[cfg(any(test, fuzzing))]
pub use reader::replay;
pub use reader::{ExpectedLog, LogEnd, ReadTo, identify, replay_start};
pub use salvage::{LogStart, find_start, find_tag, salvage};
pub use tail::LogTail;
pub use writer::{LogRecord, LogWriter};
