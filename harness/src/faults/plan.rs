//! The faults of a workload: each kind of operation, each possible error, once and for good, at each index.

use crate::support::{Errno, Fault, OpKind};

/// Each kind of operation, and the counter of its faults.
pub const KINDS: [(OpKind, &str); 14] = [
    (OpKind::CreateDir, "faults of create directory"),
    (OpKind::Create, "faults of create"),
    (OpKind::Append, "faults of append"),
    (OpKind::Sync, "faults of sync"),
    (OpKind::Rename, "faults of rename"),
    (OpKind::Remove, "faults of remove"),
    (OpKind::Link, "faults of link"),
    (OpKind::SyncDir, "faults of directory sync"),
    (OpKind::Lock, "faults of lock"),
    (OpKind::Open, "faults of open"),
    (OpKind::Read, "faults of read"),
    (OpKind::Map, "faults of map"),
    (OpKind::List, "faults of list"),
    (OpKind::Inspect, "faults of inspect"),
];

/// Lasting faults limited to files with this in their name, and the operations on them.
const BY_FILE: [(&str, &[OpKind]); 4] = {
    use OpKind::*;
    [
        (".filter", &[Create, Append, Sync, Rename, Remove, Link, Open, Read, Map, Inspect]),
        (".segment", &[Create, Append, Sync, Rename, Link, Open, Read, Inspect]),
        (".wal", &[Create, Append, Sync, Remove, Open, Read, Inspect]),
        ("MANIFEST", &[Create, Append, Sync, Rename, Open, Read, Inspect]),
    ]
};

/// The possible errors of a kind of operation, other than EIO.
fn errors(kind: OpKind) -> &'static [Errno] {
    use Errno::*;
    match kind {
        OpKind::CreateDir => &[NoSpace, Denied],
        OpKind::Create => &[NoSpace, TooManyFiles],
        OpKind::Append | OpKind::Sync | OpKind::Rename => &[NoSpace],
        OpKind::Remove | OpKind::Read | OpKind::Inspect => &[],
        OpKind::Link => &[NoSpace, OtherDevice, Denied],
        OpKind::SyncDir => &[NoSpace, TooManyFiles],
        OpKind::Lock => &[TooManyFiles, TooManyFilesInSystem, NoMemory],
        OpKind::Open => &[TooManyFiles, Denied],
        OpKind::Map => &[NoMemory, TooManyFiles],
        OpKind::List => &[TooManyFiles, Denied],
    }
}

/// Operations that need a descriptor, even if only briefly.
const NEED_DESCRIPTORS: &[OpKind] =
    &[OpKind::Create, OpKind::SyncDir, OpKind::Lock, OpKind::Open, OpKind::Map, OpKind::List];

/// Whether no descriptor is left until the shortage ends.
pub fn is_lasting_shortage(fault: &Fault) -> bool {
    !fault.spreads_to.is_empty()
}

/// All faults of a workload with this many operations of each kind.
pub fn faults(operations: &[(OpKind, u64)]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for &(kind, count) in operations {
        for after in 0..count {
            for errno in [Errno::Io].iter().chain(errors(kind)) {
                let once = Fault::once(kind, after).with(*errno);
                faults.push(once);
                let lasting = Fault { forever: true, ..once };
                // Calls wait for descriptors, so somebody must end a lasting shortage.
                if errno.is_of_descriptors() {
                    faults.push(Fault { times: 4, ..once });
                    faults.push(Fault { spreads_to: NEED_DESCRIPTORS, ..lasting });
                } else {
                    faults.push(lasting);
                }
                if matches!(kind, OpKind::Append | OpKind::Read) {
                    faults.push(once.short());
                }
            }
        }
    }
    for (only, kinds) in BY_FILE {
        for (kind, after) in kinds.iter().flat_map(|kind| [0, 1, 2, 5, 11].map(|after| (*kind, after))) {
            let fault = Fault { only: Some(only), forever: true, ..Fault::once(kind, after) };
            faults.push(fault);
            if matches!(kind, OpKind::Create | OpKind::Append | OpKind::Sync) {
                faults.push(fault.with(Errno::NoSpace));
            }
        }
    }
    faults
}
