//! Reading files with unreadable parts.

use super::file::ReadFile;

/// Size of a read where a longer one fails: one page of the page cache, which fails as a whole.
const PIECE_BYTES: usize = 4096;

/// Reads what is readable and fills the rest with zeros. For salvage, where checksums reveal what is missing.
pub(crate) fn read_around_errors(file: &dyn ReadFile, buf: &mut [u8], mut at: u64) {
    if file.read_exact_at(buf, at).is_ok() {
        return;
    }
    let mut rest = buf;
    while !rest.is_empty() {
        let to_boundary = PIECE_BYTES - (at % PIECE_BYTES as u64) as usize;
        let (piece, more) = rest.split_at_mut(to_boundary.min(rest.len()));
        if file.read_exact_at(piece, at).is_err() {
            piece.fill(0);
        }
        at += piece.len() as u64;
        rest = more;
    }
}
