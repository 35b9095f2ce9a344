//! The file system operations that can fail.

use std::fmt;

/// The operation that the operating system refused. An implementation of [`Fs`](crate::fs::Fs) names its
/// operations by these, and they decide what a failure means: a failed read changes nothing for writes, but
/// after a failed write the store is read-only until it is reopened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoOp {
    /// Opening a file to read it.
    Open,
    /// Reading a file.
    Read,
    /// Mapping a file into memory.
    Map,
    /// Asking for the length, the time or the identity of a file.
    Inspect,
    /// Listing a directory.
    List,
    /// Creating a file.
    Create,
    /// Writing to a file.
    Write,
    /// Making the contents of a file durable.
    Sync,
    /// Renaming a file.
    Rename,
    /// Giving a file another name.
    Link,
    /// Removing a file.
    Remove,
    /// Creating a directory.
    CreateDir,
    /// Removing a directory.
    RemoveDir,
    /// Making the names in a directory durable.
    SyncDir,
    /// Locking a file.
    Lock,
    /// Anything else: a verb, such as "find".
    Other(&'static str),
}

impl IoOp {
    /// The verb, as in "cannot read FILE".
    pub fn verb(self) -> &'static str {
        match self {
            IoOp::Open => "open",
            IoOp::Read => "read",
            IoOp::Map => "map",
            IoOp::Inspect => "inspect",
            IoOp::List => "list",
            IoOp::Create => "create",
            IoOp::Write => "write",
            IoOp::Sync => "sync",
            IoOp::Rename => "rename",
            IoOp::Link => "link",
            IoOp::Remove => "remove",
            IoOp::CreateDir => "create directory",
            IoOp::RemoveDir => "remove directory",
            IoOp::SyncDir => "sync directory",
            IoOp::Lock => "lock",
            IoOp::Other(verb) => verb,
        }
    }
}

impl fmt::Display for IoOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())
    }
}
