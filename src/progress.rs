//! How far long work is.

use std::ops::ControlFlow;

/// Rows are told of after this many bytes.
const TELL_EVERY: u64 = 1 << 20;

/// How far long work is, as its callback is told: [`compact_with`](crate::Db::compact_with),
/// [`verify_with`](crate::Db::verify_with), [`repair_with`](crate::repair_with),
/// [`ingest_with`](crate::Keyspace::ingest_with), [`checkpoint_with`](crate::Db::checkpoint_with),
/// [`backup_with`](crate::Db::backup_with).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that were processed. Never falls.
    pub bytes_done: u64,
    /// Bytes that are left, as far as known; it may rise while others write. `None` if unknown. When the work
    /// has ended, `Some(0)`.
    pub bytes_left: Option<u64>,
}

/// Is told how far work is. `Break` stops it.
pub(crate) type Tell<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// Keeps count, and tells.
pub(crate) struct Tracker<'a> {
    tell: &'a mut Tell<'a>,
    so_far: Progress,
    /// The bytes done when it last told.
    told: u64,
}

impl<'a> Tracker<'a> {
    /// Nothing is done yet.
    pub fn new(tell: &'a mut Tell<'a>, bytes_left: Option<u64>) -> Self {
        Tracker { tell, so_far: Progress { bytes_done: 0, bytes_left }, told: 0 }
    }

    /// Counts what was done, and tells.
    pub fn advance(&mut self, bytes: u64) -> ControlFlow<()> {
        self.count(bytes);
        self.tell()
    }

    /// Counts a small part of what was done, and tells now and then.
    pub fn add(&mut self, bytes: u64) {
        self.count(bytes);
        if self.so_far.bytes_done - self.told >= TELL_EVERY {
            _ = self.tell();
        }
    }

    fn count(&mut self, bytes: u64) {
        self.so_far.bytes_done = self.so_far.bytes_done.saturating_add(bytes);
        self.so_far.bytes_left = self.so_far.bytes_left.map(|left| left.saturating_sub(bytes));
    }

    fn tell(&mut self) -> ControlFlow<()> {
        self.told = self.so_far.bytes_done;
        (self.tell)(&self.so_far)
    }

    /// Bytes done so far.
    pub fn bytes_done(&self) -> u64 {
        self.so_far.bytes_done
    }

    /// This much is left.
    pub fn expect(&mut self, bytes: u64) {
        self.so_far.bytes_left = Some(bytes);
    }

    /// Tells that nothing is left.
    pub fn finish(&mut self) {
        self.expect(0);
        _ = self.tell();
    }
}

/// Tells this function, which cannot stop the work.
pub(crate) fn unstoppable(mut tell: impl FnMut(&Progress)) -> impl FnMut(&Progress) -> ControlFlow<()> {
    move |so_far| {
        tell(so_far);
        ControlFlow::Continue(())
    }
}

/// Tells nobody.
pub(crate) fn untold(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
