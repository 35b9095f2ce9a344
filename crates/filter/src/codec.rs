//! The encoding of stored bytes: little-endian integers, LEB128 varints and CRC-32. No other module deals
//! with byte order or CRC-32.

use std::sync::LazyLock;

/// CRC-32 (IEEE) of `parts` in order: the checksum of records, blocks and headers.
pub fn crc32(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc32::default();
    parts.iter().for_each(|part| crc.update(part));
    crc.value()
}

/// A streaming [`crc32`].
#[derive(Clone)]
pub struct Crc32(crc32fast::Hasher);

/// Of no bytes. To look for the CPU's features each time takes as long as the checksum of a short record.
static EMPTY: LazyLock<crc32fast::Hasher> = LazyLock::new(crc32fast::Hasher::new);

impl Default for Crc32 {
    #[inline]
    fn default() -> Self {
        Crc32(EMPTY.clone())
    }
}

impl Crc32 {
    /// Appends bytes.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes so far.
    #[inline]
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}

/// Appends integers and length-prefixed bytes to a buffer.
pub trait Encode {
    /// One byte.
    fn put_u8(&mut self, v: u8);
    /// Four bytes, little-endian.
    fn put_u32(&mut self, v: u32);
    /// Eight bytes, little-endian.
    fn put_u64(&mut self, v: u64);
    /// The low `width` bytes (0 to 8), little-endian.
    fn put_uint(&mut self, v: u64, width: usize);
    /// LEB128: seven bits per byte, low bits first; 1 to 10 bytes.
    fn put_varint(&mut self, v: u64);
    /// A varint length, followed by the bytes.
    fn put_bytes(&mut self, v: &[u8]);
}

impl Encode for Vec<u8> {
    #[inline]
    fn put_u8(&mut self, v: u8) {
        self.push(v);
    }
    #[inline]
    fn put_u32(&mut self, v: u32) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_u64(&mut self, v: u64) {
        self.extend_from_slice(&v.to_le_bytes());
    }
    #[inline]
    fn put_uint(&mut self, v: u64, width: usize) {
        self.extend_from_slice(v.to_le_bytes().get(..width).unwrap_or_default());
    }
    #[inline]
    fn put_varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.push(v as u8);
    }
    fn put_bytes(&mut self, v: &[u8]) {
        self.put_varint(v.len() as u64);
        self.extend_from_slice(v);
    }
}

/// The integer of `width` bytes (0 to 8) at `at`, little-endian. Bytes past the end of `bytes` read as zero.
#[inline]
pub fn uint_at(bytes: &[u8], at: usize, width: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let word = match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    word & low_bytes(width)
}

/// The number of bytes that [`Encode::put_uint`] needs for `v`.
#[inline]
pub fn uint_width(v: u64) -> usize {
    (u64::BITS - v.leading_zeros()).div_ceil(8) as usize
}

/// A mask of the low `count` bytes of a word.
#[inline]
pub fn low_bytes(count: usize) -> u64 {
    u64::MAX.checked_shr(64u32.saturating_sub(8 * count as u32)).unwrap_or(0)
}

/// Reads from a slice. Every method returns `None` for truncated or malformed input, and none allocates.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, at: 0 }
    }

    /// Bytes consumed so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A varint; `None` also if it does not fit in 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        if first < 0x80 {
            self.at += 1;
            return Some(u64::from(first));
        }
        let mut value = 0u64;
        for (i, &byte) in self.bytes.get(self.at..)?.iter().take(10).enumerate() {
            if i == 9 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.at += i + 1;
                return Some(value);
            }
        }
        None
    }

    /// A varint as a length; `None` also if it does not fit in `usize`.
    #[inline]
    pub fn length(&mut self) -> Option<usize> {
        self.varint().and_then(|v| usize::try_from(v).ok())
    }

    /// Length-prefixed bytes.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.length()?;
        self.take(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_and_every_shorter_input_is_refused() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX];
        let mut buf = Vec::new();
        numbers.iter().for_each(|&v| buf.put_varint(v));
        buf.put_u8(1);
        buf.put_u32(3);
        buf.put_u64(4);
        buf.put_bytes(b"key");
        let decode = |buf: &[u8]| -> Option<()> {
            let mut d = Decoder::new(buf);
            for v in numbers {
                assert_eq!(d.varint()?, v);
            }
            assert_eq!((d.u8()?, d.u32()?, d.u64()?), (1, 3, 4));
            assert_eq!(d.bytes()?, b"key");
            assert_eq!(d.remaining(), 0);
            Some(())
        };
        assert!(decode(&buf).is_some());
        (0..buf.len()).for_each(|n| assert!(decode(&buf[..n]).is_none(), "cut at {n}"));
    }

    #[test]
    fn varints_over_64_bits_are_refused() {
        assert_eq!(Decoder::new(&[0xff; 11]).varint(), None);
        let mut eleven_bits_too_many = vec![0xff; 9];
        eleven_bits_too_many.push(2);
        assert_eq!(Decoder::new(&eleven_bits_too_many).varint(), None);
    }

    #[test]
    fn crc_of_parts_is_crc_of_the_whole() {
        assert_eq!(crc32(&[b"123456789"]), 0xcbf4_3926);
        assert_eq!(crc32(&[b"1234", b"", b"56789"]), 0xcbf4_3926);
    }
}
