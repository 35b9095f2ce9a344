//! Logs that were replaced before they were synced.

use crate::id::FileId;
use crate::sync::{Mutex, lock};
use crate::wal::LogWriter;

/// The logs, oldest first. A sync of the current log must sync them first, or a crash could keep later writes
/// and lose earlier ones. A flush removes those that it makes redundant. Nobody takes another lock under this
/// one.
#[derive(Default)]
pub(crate) struct UnsyncedLogs(Mutex<Vec<(FileId, LogWriter)>>);

impl UnsyncedLogs {
    /// Adds the newest one.
    pub fn push(&self, log: (FileId, LogWriter)) {
        lock(&self.0).push(log);
    }

    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    pub fn take(&self) -> Vec<(FileId, LogWriter)> {
        std::mem::take(&mut lock(&self.0))
    }

    /// Closes the logs before `floor`. An open file would keep its disk space after it is unlinked.
    pub fn close_before(&self, floor: FileId) {
        lock(&self.0).retain(|(log, _)| *log >= floor);
    }
}
