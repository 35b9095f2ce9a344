//! The operations of an encoded batch.

use super::format::{OpKind, decode_operation};
use crate::codec::Decoder;
use bytes::{Buf, Bytes};

/// One operation of an encoded batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchOp {
    /// What it does.
    pub kind: OpKind,
    /// Length of the key at the start of `data`.
    pub key_len: usize,
    /// The key, immediately followed by the value (by expiry and value if it expires, or the start of a
    /// range, followed by its end): a slice that shares the batch's memory.
    pub data: Bytes,
}

impl BatchOp {
    /// The key, or the start of the range.
    pub fn key(&self) -> &[u8] {
        self.data.get(..self.key_len).unwrap_or_default()
    }
}

/// The operations of an encoded batch, in order. Ends early at an invalid operation;
/// [`replay`](super::replay) never returns such a batch. The last operation takes over the buffer, so a batch
/// of one is neither copied nor reference-counted.
pub fn ops(encoded: Bytes) -> BatchOps {
    BatchOps { rest: encoded }
}

/// The iterator that [`ops`] returns.
#[derive(Debug)]
pub struct BatchOps {
    pub(super) rest: Bytes,
}

impl Iterator for BatchOps {
    type Item = BatchOp;

    #[inline]
    fn next(&mut self) -> Option<BatchOp> {
        let mut decoder = Decoder::new(&self.rest);
        let (kind, key_len, data_len) = decode_operation(&mut decoder)?;
        let head = decoder.position() - data_len;
        self.rest.advance(head);
        let data = if self.rest.len() == data_len {
            std::mem::take(&mut self.rest)
        } else {
            self.rest.split_to(data_len)
        };
        Some(BatchOp { kind, key_len, data })
    }
}
