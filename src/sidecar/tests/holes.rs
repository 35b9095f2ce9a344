//! A sidecar whose lines are a hole in its file.

use super::*;
use crate::support::{Errno, Fault, OpKind, SimFs};
use std::path::Path;

/// Lines of 8 GiB: a reader must find out that they match no checksum before it takes that much memory.
const LINES: u64 = 1 << 27;

#[test]
fn i6_lines_that_are_a_hole_are_refused_at_the_first_group() {
    let mut header = Case::new(BLOOM).bytes();
    header.truncate(HEADER_BYTES);
    header[32..40].copy_from_slice(&LINES.to_le_bytes());
    header[56..64].copy_from_slice(&(HEADER_BYTES as u64 + 64 * LINES).to_le_bytes());
    let crc = crc32(&[&header[..HEADER_BYTES - 4]]);
    header[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    let file_bytes = Header::decode(&header).unwrap().file_bytes();
    for residency in [Residency::Pinned, Residency::Mapped] {
        let fs = SimFs::new();
        fs.write("filter", header.clone());
        fs.lengthen("filter", file_bytes);
        // No map is left, so that a mapped one is also read.
        let maps = Arc::new(Maps::new(Arc::new(fs.clone()), 0, Arc::default()));
        let sidecar = Sidecar::open(&maps, Path::new("filter"), &EXPECT, residency).unwrap();
        fs.fail(Fault { forever: true, ..Fault::once(OpKind::Read, 3).with(Errno::Io) });
        let reason = sidecar.verify().unwrap_err().to_string();
        assert!(reason.contains("checksum"), "{residency:?}: {reason}");
    }
}
