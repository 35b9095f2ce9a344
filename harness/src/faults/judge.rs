//! Which errors a fault explains. The errors of a call must name the operation and the path of a fault that
//! occurred, and only faults that the call depends on may reach it: I2 and I5 in detail.

use crate::support::{Errno, OpKind, STORE, Strike};
use sidebloom::Error;
use std::path::Path;

/// The calls, grouped by the errors that they may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Open,
    /// Writes, flushes, syncs and ingestion: they need the log, new segments and the manifest, but no read.
    Write,
    /// Transactions: they need what a write needs, and read first.
    Transact,
    Read,
    Compact,
    /// Rebuilding and warming filters.
    Filters,
    /// Waiting for all background work.
    Wait,
    Checkpoint,
    Repair,
}

/// Why the call must not return this error; `None` if a fault explains it.
pub fn objection(call: Call, error: &Error, strikes: &[Strike]) -> Option<String> {
    let explained = match error {
        Error::Io { path, op, source } => strikes.iter().any(|strike| {
            let same = strike.path == *path && strike.kind.op() == *op;
            same && source.raw_os_error() == Some(strike.errno.code()) && allows(call, strike)
        }),
        Error::Corruption { file, .. } => strikes.iter().any(|strike| {
            strike.kind == OpKind::Read && strike.short && strike.path == *file && allows(call, strike)
        }),
        Error::Poisoned { cause } => {
            let writes = !matches!(call, Call::Read | Call::Open | Call::Repair);
            let may_poison = |strike: &Strike| poisons(strike) || is_of_lock(strike);
            writes && strikes.iter().any(|strike| may_poison(strike) && text_of(strike) == **cause)
        }
        _ => false,
    };
    (!explained).then(|| format!("{call:?} returned \"{error}\" ({error:?}), which no fault explains"))
}

fn text_of(strike: &Strike) -> String {
    Error::io(strike.kind.op(), &strike.path, strike.errno.error()).to_string()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_sidecar(strike: &Strike) -> bool {
    name(&strike.path).contains(".filter")
}

fn is_segment(strike: &Strike) -> bool {
    let name = name(&strike.path);
    name.ends_with(".segment") || name.ends_with(".obsolete")
}

/// Segments of ingested rows are named like obsolete ones until they get their number.
fn is_of_an_ingest(strike: &Strike) -> bool {
    name(&strike.path).ends_with(".obsolete") && matches!(strike.kind, OpKind::Open | OpKind::Rename)
}

fn is_manifest(strike: &Strike) -> bool {
    name(&strike.path).starts_with("MANIFEST")
}

/// A writer that cannot tell whether it holds its lock must stop, unless it was only removing something.
fn is_of_lock(strike: &Strike) -> bool {
    name(&strike.path) == "LOCK" && strike.kind == OpKind::Inspect
}

fn is_in_copy(strike: &Strike) -> bool {
    strike.path.to_string_lossy().contains("copy")
}

/// A fault in what a write depends on: the log, a new segment, the manifest, or their directory.
fn is_of_a_write(strike: &Strike) -> bool {
    use OpKind::*;
    let ours = strike.path.starts_with(STORE) && !is_sidecar(strike);
    ours && match strike.kind {
        Append | Sync | Create | SyncDir => true,
        // A manifest whose last edit failed is replaced.
        Rename | Remove | Inspect | Open => is_manifest(strike) || is_of_lock(strike),
        _ => false,
    }
}

/// Whether an open store becomes read-only, because it is unknown what reached the disk.
pub fn poisons(strike: &Strike) -> bool {
    use OpKind::*;
    let unknown = match strike.errno {
        errno if errno.is_of_descriptors() => false,
        Errno::NoSpace => strike.kind == SyncDir,
        _ => true,
    };
    unknown
        && is_of_a_write(strike)
        && matches!(strike.kind, Append | Sync | Create | SyncDir | Rename | Remove)
}

/// Whether a call may return the error of this fault.
fn allows(call: Call, strike: &Strike) -> bool {
    use OpKind::*;
    let write = is_of_a_write(strike);
    let read = is_segment(strike) && matches!(strike.kind, Open | Read);
    match call {
        Call::Write => write || is_of_an_ingest(strike),
        Call::Transact => write || read,
        Call::Read => read,
        Call::Compact => write || read,
        Call::Filters | Call::Wait => write || read || is_sidecar(strike),
        Call::Checkpoint => {
            let copies = matches!(strike.kind, Inspect | Open | Read | Link);
            let dirs = matches!(strike.kind, CreateDir | SyncDir | Inspect);
            write || is_in_copy(strike) || dirs || (copies && (is_segment(strike) || is_sidecar(strike)))
        }
        Call::Open => {
            let removes = strike.kind == Remove && !is_manifest(strike);
            !is_sidecar(strike) && !read && !removes && !matches!(strike.kind, Map | Link)
        }
        Call::Repair => true,
    }
}
