//! Planned faults.

use sidebloom::IoOp;
use std::io;
use std::path::{Path, PathBuf};

/// The operations of a file system, for fault plans and the operation log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpKind {
    CreateDir,
    Create,
    Append,
    Sync,
    Rename,
    Remove,
    Link,
    SyncDir,
    Lock,
    Open,
    Read,
    Map,
    List,
    Inspect,
}

impl OpKind {
    /// Whether the operation changes what is on disk or makes it durable.
    pub fn is_write(self) -> bool {
        use OpKind::*;
        matches!(self, CreateDir | Create | Append | Sync | Rename | Remove | Link | SyncDir)
    }

    /// The verb in errors, the same as the real file system's.
    pub fn op(self) -> IoOp {
        match self {
            OpKind::CreateDir => IoOp::CreateDir,
            OpKind::Create => IoOp::Create,
            OpKind::Append => IoOp::Write,
            OpKind::Sync => IoOp::Sync,
            OpKind::Rename => IoOp::Rename,
            OpKind::Remove => IoOp::Remove,
            OpKind::Link => IoOp::Link,
            OpKind::SyncDir => IoOp::SyncDir,
            OpKind::Lock => IoOp::Lock,
            OpKind::Open => IoOp::Open,
            OpKind::Read => IoOp::Read,
            OpKind::Map => IoOp::Map,
            OpKind::List => IoOp::List,
            OpKind::Inspect => IoOp::Inspect,
        }
    }
}

/// The error of a failing operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// An I/O error (EIO).
    Io,
    /// No space left on the device (ENOSPC).
    NoSpace,
    /// Another file system (EXDEV).
    OtherDevice,
    /// No permission (EACCES).
    Denied,
    /// The process is out of descriptors (EMFILE).
    TooManyFiles,
    /// The system is out of descriptors (ENFILE).
    TooManyFilesInSystem,
    /// Out of memory (ENOMEM), for example for another map.
    NoMemory,
    /// A request that the kernel does not know (EINVAL).
    Invalid,
    /// A system call that the kernel does not have (ENOSYS).
    NoSuchCall,
    /// No error: the operation panics, like a bug in its thread.
    Panic,
}

impl Errno {
    pub fn code(self) -> i32 {
        match self {
            Errno::Io => 5,
            Errno::NoSpace => 28,
            Errno::OtherDevice => 18,
            Errno::Denied => 13,
            Errno::TooManyFiles => 24,
            Errno::TooManyFilesInSystem => 23,
            Errno::NoMemory => 12,
            Errno::Invalid => 22,
            Errno::NoSuchCall => 38,
            Errno::Panic => panic!("a planned panic"),
        }
    }

    /// Whether there are no descriptors, for the process or for the system.
    pub fn is_of_descriptors(self) -> bool {
        matches!(self, Errno::TooManyFiles | Errno::TooManyFilesInSystem)
    }

    pub fn error(self) -> io::Error {
        io::Error::from_raw_os_error(self.code())
    }
}

/// A planned failure.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The operations that it affects; `None` for all that write.
    pub kind: Option<OpKind>,
    /// How many of them succeed first, counted from now.
    pub after: u64,
    /// Whether all later ones fail too (a dead disk), or just one (a temporary fault).
    pub forever: bool,
    /// Their error.
    pub errno: Errno,
    /// Whether a failing append writes part of its bytes first. A failing read finds the end of the file in
    /// the middle of its bytes.
    pub short: bool,
    /// How many fail, unless they fail forever.
    pub times: u64,
    /// Only operations on files whose names include this.
    pub only: Option<&'static str>,
    /// From the first failure on, all operations of these kinds fail too, until the disk is healed.
    pub spreads_to: &'static [OpKind],
}

/// A failure that occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strike {
    pub kind: OpKind,
    pub path: PathBuf,
    pub errno: Errno,
    pub short: bool,
}

impl Fault {
    /// One operation of this kind fails with EIO after `after` successful ones.
    pub fn once(kind: OpKind, after: u64) -> Self {
        Fault { kind: Some(kind), forever: false, ..Fault::stop(after) }
    }

    /// Every write fails with EIO after `after` successful ones, which leaves the disk as a power loss does.
    pub fn stop(after: u64) -> Self {
        let (errno, only, spreads_to) = (Errno::Io, None, &[]);
        Fault { kind: None, after, forever: true, errno, short: false, times: 1, only, spreads_to }
    }

    /// The same fault with another error.
    pub fn with(self, errno: Errno) -> Self {
        Fault { errno, ..self }
    }

    /// The same fault, but a failing append writes part of its bytes first.
    pub fn short(self) -> Self {
        Fault { short: true, ..self }
    }

    /// The operations that fail once this fault has occurred. A fault spreads once.
    pub(super) fn spread(&mut self) -> impl Iterator<Item = Fault> + use<> {
        let fault = Fault { after: 0, forever: true, only: None, ..*self };
        let kinds = std::mem::take(&mut self.spreads_to);
        kinds.iter().map(move |kind| Fault { kind: Some(*kind), spreads_to: &[], ..fault })
    }

    /// Counts an operation. Returns whether it fails.
    pub(super) fn strikes(&mut self, kind: OpKind, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !self.kind.map_or(kind.is_write(), |only| only == kind)
            || self.only.is_some_and(|part| !name.contains(part))
        {
            return false;
        }
        match self.after.checked_sub(1) {
            Some(left) => {
                self.after = left;
                false
            }
            None => true,
        }
    }
}
