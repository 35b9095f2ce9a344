//! MurmurHash3 x64 128 (Austin Appleby, public domain). Most published Bloom filters use it, so ours can be
//! compared with them bit for bit. It is fast and mixes well, but is not keyed: anyone who knows the seed can
//! prepare collisions.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The two halves of the hash. Both halves start with the seed. The reference implementation has 32-bit
/// seeds, and gives the same values for them.
pub(super) fn hash(key: &[u8], seed: u64) -> (u64, u64) {
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 ^= mix1(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Missing bytes are zero, and a zero half mixes to zero, so padding has no effect.
    let mut last = [0; 16];
    last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    let (k1, k2) = halves(&last);
    h1 ^= mix1(k1) ^ key.len() as u64;
    h2 ^= mix2(k2) ^ key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish(h1), finish(h2));
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut k: u64) -> u64 {
    k = (k ^ k >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ k >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes((h1, h2): (u64, u64)) -> [u8; 16] {
        (u128::from(h2) << 64 | u128::from(h1)).to_le_bytes()
    }

    /// SMHasher's `VerificationTest`: keys {}, {0}, {0, 1}, … with seeds 256, 255, …, then a hash of those.
    #[test]
    fn smhasher_verification_value_is_the_published_one() {
        let key: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256).flat_map(|n| bytes(hash(&key[..n], 256 - n as u64))).collect();
        let [a, b, c, d, ..] = bytes(hash(&hashes, 0));
        assert_eq!(u32::from_le_bytes([a, b, c, d]), 0x6384_ba69);
    }

    #[test]
    fn known_texts_have_their_known_hashes() {
        let hex = |text: &[u8]| bytes(hash(text, 0)).iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(b""), "00000000000000000000000000000000");
        // As printed by the reference as two 64-bit numbers: e34bbc7bbc071b6c 7a433ca9c49a9347.
        assert_eq!(
            hash(b"The quick brown fox jumps over the lazy dog", 0),
            (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347)
        );
    }
}
