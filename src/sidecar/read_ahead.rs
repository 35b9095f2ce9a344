//! How much of a sidecar's file is read at a time: little at first, and more once it is clear that more of it
//! is used. So the first lookups after opening wait for a few pages, not for whole filters.

use crate::filter::format::groups::GROUP_BYTES;
use crate::fs::Map;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// First touches of groups by probes after which the kernel reads ahead in a map as it does by default.
const TOUCHES: u32 = 8;
/// What is read around the group of the second touch, in bytes; twice as much with each later one.
const SECOND_WINDOW: usize = 128 << 10;
/// The first piece that the verifications of a store read, in bytes. The next ones are as large as all
/// before them.
const FIRST_PIECE: usize = 64 << 10;
/// The largest piece in bytes. The next one is read only after this one has matched its checksums.
const LARGEST_PIECE: usize = 64 << 20;
/// Pieces of this size or more, in bytes, are read on huge pages. Smaller ones would grow to that size.
const HUGE_PIECE: usize = 2 << 20;
const _: () = assert!(FIRST_PIECE.is_multiple_of(GROUP_BYTES));

/// The reads of one map by probes.
#[derive(Default)]
pub(super) struct ProbeReads(AtomicU32);

impl ProbeReads {
    /// Starts to read a group and its checksum, which a probe is about to touch for the first time, and then
    /// what is around the group. The probe does not wait for the latter.
    pub fn begin(&self, map: &Map, [lines, checksum]: [Range<usize>; 2]) {
        if self.0.load(Relaxed) > TOUCHES {
            return;
        }
        let touch = self.0.fetch_add(1, Relaxed);
        if touch >= TOUCHES {
            return map.expect_many_pages();
        }
        let window = window(touch, lines.start);
        [lines, checksum, window].into_iter().for_each(|part| map.will_need(part));
    }
}

/// What is read around the group of a touch that begins at `at`.
fn window(touch: u32, at: usize) -> Range<usize> {
    let Some(doublings) = touch.checked_sub(1) else { return at..at };
    let bytes = SECOND_WINDOW << doublings;
    let from = at / bytes * bytes;
    from..from + bytes
}

/// The reads of all verifications of a store: how many bytes so far.
#[derive(Default)]
pub(super) struct VerifyReads(AtomicUsize);

impl VerifyReads {
    /// Reads the next piece of a map from byte `from` on. Returns where it ends.
    pub fn read_piece(&self, map: &Map, from: usize) -> usize {
        let piece = self.next_piece(map.len().saturating_sub(from));
        let to = from + piece;
        if piece < HUGE_PIECE {
            map.will_need(from..to);
        } else {
            map.populate(from..to);
        }
        to
    }

    /// The size of the next piece of a file of which `left` bytes are left.
    fn next_piece(&self, left: usize) -> usize {
        let piece = self.0.load(Relaxed).clamp(FIRST_PIECE, LARGEST_PIECE).min(left);
        self.0.fetch_add(piece, Relaxed);
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_file_and_are_small_in_the_first_ones_only() {
        let reads = VerifyReads::default();
        let mut before = 0;
        for file in [10_000, 1_000_000, 300_000, 200 << 20] {
            let mut left = file;
            while left > 0 {
                let piece = reads.next_piece(left);
                let most = before.clamp(FIRST_PIECE, LARGEST_PIECE);
                assert!(piece > 0 && piece <= most);
                assert!(piece == left || piece == most);
                left -= piece;
                before += piece;
            }
        }
        assert_eq!(reads.next_piece(usize::MAX), LARGEST_PIECE);
    }

    #[test]
    fn the_first_touch_reads_nothing_around_it_and_later_ones_more_and_more() {
        let at = 5_000_000 / GROUP_BYTES * GROUP_BYTES;
        assert!(window(0, at).is_empty());
        for touch in 1..TOUCHES {
            let window = window(touch, at);
            assert!(window.contains(&at), "{touch}");
            assert_eq!(window.len(), SECOND_WINDOW << (touch - 1));
        }
    }
}
