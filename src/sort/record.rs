//! The records that a sorter sorts.

/// What a sorter sorts.
pub trait Record: Copy + Ord {
    /// Bytes of a record in the temporary file: 1 to 4096.
    const BYTES: usize;

    /// Appends the record to `bytes`.
    fn encode(self, bytes: &mut Vec<u8>);

    /// The record in `bytes`, which has [`BYTES`](Self::BYTES) of them; `None` for any other length.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl Record for u64 {
    const BYTES: usize = size_of::<u64>();

    #[inline]
    fn encode(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Record for u128 {
    const BYTES: usize = size_of::<u128>();

    #[inline]
    fn encode(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(u128::from_le_bytes)
    }
}
