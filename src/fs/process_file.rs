//! Files that only the process that created them writes.

use super::file::AppendFile;
use super::process::Process;
use crate::error::Result;

/// A file for appending. Refuses in a forked process: both processes would write at the same end.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    file: Box<dyn AppendFile>,
    process: Process,
}

impl ProcessFile {
    /// A file of this process.
    pub fn new(file: Box<dyn AppendFile>, process: Process) -> Self {
        ProcessFile { file, process }
    }
}

impl AppendFile for ProcessFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.process.check()?;
        self.file.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        self.process.check()?;
        self.file.sync()
    }
}
