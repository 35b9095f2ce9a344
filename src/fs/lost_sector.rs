//! What a power cut leaves of unsynced appends.
//!
//! Disks write whole sectors, in any order. So after a power cut, a sector of an append-only file holds some
//! earlier state: what had been appended by then, followed by zeros.

/// The smallest unit that disks write, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// Whether `bytes`, from offset `at` of an append-only file, include a lost sector: one whose part in `bytes`
/// is all zero. An intact sector looks like that only if it was written as zeros.
pub fn has_lost_sector(bytes: &[u8], at: u64) -> bool {
    let to_boundary = SECTOR_BYTES - (at % SECTOR_BYTES as u64) as usize;
    let (first, rest) = bytes.split_at(to_boundary.min(bytes.len()));
    let is_lost = |sector: &[u8]| !sector.is_empty() && sector.iter().all(|&byte| byte == 0);
    is_lost(first) || rest.chunks(SECTOR_BYTES).any(is_lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_counts_as_lost_only_when_all_of_it_that_is_given_is_zero() {
        let mut bytes = vec![7u8; 2000];
        assert!(!has_lost_sector(&bytes, 100));
        bytes[412..923].fill(0); // Offsets 512..1023 of the file: one byte short of a sector.
        assert!(!has_lost_sector(&bytes, 100));
        bytes[923] = 0;
        assert!(has_lost_sector(&bytes, 100));
        assert!(!has_lost_sector(&bytes, 101));
        assert!(has_lost_sector(&[0, 0, 1], 510), "the end of the first sector");
        assert!(has_lost_sector(&[1, 1, 0], 510), "the beginning of the last sector");
        assert!(!has_lost_sector(&[], 0));
    }
}
