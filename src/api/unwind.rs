//! What a caught panic leaves intact.
//!
//! 1. The caller's code runs inside a call where it provides rows (`ingest`), receives progress, or logs. No
//!    lock of the store is held around the first two, and unwinding removes what such a call has built. A
//!    logger may panic anywhere.
//! 2. Each critical section leaves its data valid at each step, so locks of a panicked thread are taken over
//!    ([`lock`](crate::sync::lock)). Where several steps belong together (a log commit or a publication), a
//!    panic in between makes the store read-only ([`Error::Poisoned`](crate::Error::Poisoned)).
//! 3. What a thread keeps for its next read is replaced as a whole.
//! 4. The caller's code also runs inside `update` and `transact`. What it has written by then is only in
//!    memory of its own.
//! 5. A batch and a transaction take an operation as a whole. A range and a cursor are only moved by
//!    `&mut self`, which is not [`UnwindSafe`] by itself. Shared, they do not change.

use super::{Cursor, Db, Keys, Range, Snapshot, Transaction, TransactionCursor, TransactionRange};
use crate::wal::Batch;
use std::panic::{RefUnwindSafe, UnwindSafe};

impl UnwindSafe for Db {}
impl RefUnwindSafe for Db {}
impl UnwindSafe for Snapshot {}
impl RefUnwindSafe for Snapshot {}
impl UnwindSafe for Range {}
impl RefUnwindSafe for Range {}
impl UnwindSafe for Keys {}
impl RefUnwindSafe for Keys {}
impl UnwindSafe for Cursor {}
impl RefUnwindSafe for Cursor {}
impl UnwindSafe for Batch {}
impl RefUnwindSafe for Batch {}
impl UnwindSafe for Transaction {}
impl RefUnwindSafe for Transaction {}
impl UnwindSafe for TransactionRange<'_> {}
impl RefUnwindSafe for TransactionRange<'_> {}
impl UnwindSafe for TransactionCursor<'_> {}
impl RefUnwindSafe for TransactionCursor<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_may_cross_a_caught_panic() {
        fn may<T: UnwindSafe + RefUnwindSafe>() {}
        may::<Db>();
        may::<Snapshot>();
        may::<Range>();
        may::<Keys>();
        may::<Cursor>();
        may::<Batch>();
        may::<Transaction>();
        may::<TransactionRange<'_>>();
        may::<TransactionCursor<'_>>();
    }
}
