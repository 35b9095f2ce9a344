//! A batch of writes, kept in the encoding of the log, so that writing it needs no copy. See
//! [`format`](super::format) for the bytes.

use super::format::{OpKind, varint_len};
use crate::codec::Encode;
use crate::error::{Error, Result};
use crate::key::{MAX_KEY_BYTES, MAX_VALUE_BYTES, NamedKeyspaces, Space};
use crate::ranges::{DeletedRange, RangeTombstones};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;

/// Largest encoded batch, in bytes. No log has a longer record.
pub(super) const MAX_BATCH_BYTES: usize = 1 << 30;
/// The most bytes of ranges to delete, as stored in a segment. A memtable's must fit into one block.
const MAX_RANGE_BYTES: usize = 32 << 20;

/// Writes that are applied atomically: after a crash, all or none exist. Later operations win.
///
/// Limits ([`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES), [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES), 1 GiB in
/// all) are checked when the batch is written.
#[derive(Clone, Default)]
pub struct Batch {
    pub(super) encoded: Vec<u8>,
    pub(super) len: usize,
    largest_key: usize,
    pub(super) largest_value: usize,
    range_bytes: usize,
    /// The first invalid range, or the first expectation that contradicts another.
    invalid: Option<Box<Error>>,
    expected: Option<Box<Expected>>,
    /// Those that its operations name, each once.
    pub(super) keyspaces: NamedKeyspaces,
    /// Whether it stores keys with a [head](Space::head).
    has_heads: bool,
    /// Whether it has puts that expire.
    pub(super) expires: bool,
    pub(super) durations: Option<Box<Durations>>,
}

/// Where an encoded batch has a duration instead of an expiry, until it is written.
#[derive(Clone, Default)]
pub(super) struct Durations(pub Vec<u32>);

/// The values that stored keys must have; `None` if a key must be absent.
pub type Expected = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a put of the key that is stored as `head` and `key`.
    #[inline(always)]
    pub(crate) fn push_put(&mut self, head: &[u8], key: &[u8], value: &[u8]) {
        self.begin(OpKind::Put, head.len(), key.len(), varint_len(value.len() as u64) + value.len());
        self.encoded.put_varint(value.len() as u64);
        self.push_key(head, key);
        self.encoded.extend_from_slice(value);
        self.largest_value = self.largest_value.max(value.len());
    }

    /// Appends a deletion of the key that is stored as `head` and `key`.
    #[inline]
    pub(super) fn push_delete(&mut self, head: &[u8], key: &[u8]) {
        self.begin(OpKind::Delete, head.len(), key.len(), 0);
        self.push_key(head, key);
    }

    /// Appends a put of a stored key.
    pub(crate) fn put_stored(&mut self, stored: &[u8], value: &[u8]) {
        let (head, key) = stored.split_at(Space::head_bytes(stored));
        self.push_put(head, key, value);
    }

    /// Appends a deletion of a stored key.
    pub(crate) fn delete_stored(&mut self, stored: &[u8]) {
        let (head, key) = stored.split_at(Space::head_bytes(stored));
        self.push_delete(head, key);
    }

    /// Appends the deletion of a range of stored keys. The caller has checked the length of its bounds.
    pub(crate) fn push_range(&mut self, range: &DeletedRange) {
        let end = range.end.as_deref().unwrap_or_default();
        let head = Space::head_bytes(&range.start);
        self.begin(
            OpKind::DeleteRange,
            head,
            range.start.len() - head,
            varint_len(end.len() as u64) + end.len(),
        );
        self.encoded.put_varint(end.len() as u64);
        self.encoded.extend_from_slice(&range.start);
        self.encoded.extend_from_slice(end);
        self.range_bytes += range.start.len() + end.len() + 2 * RangeTombstones::STEP_BYTES;
    }

    #[inline]
    pub(super) fn push_key(&mut self, head: &[u8], key: &[u8]) {
        if !head.is_empty() {
            self.encoded.extend_from_slice(head);
        }
        self.encoded.extend_from_slice(key);
    }

    /// Notes an error, which writing the batch returns.
    pub(super) fn refuse(&mut self, error: Error) {
        self.invalid.get_or_insert_with(|| Box::new(error));
    }

    pub(super) fn add_expectation(&mut self, space: Space, key: &[u8], value: Option<&[u8]>) {
        self.largest_key = self.largest_key.max(key.len());
        self.largest_value = self.largest_value.max(value.map_or(0, <[u8]>::len));
        let stored = space.stored(key);
        let expected = self.expected.get_or_insert_default();
        let before = expected.get(&stored).map(|before| before.as_deref() == value);
        match before {
            None => _ = expected.insert(stored, value.map(<[u8]>::to_vec)),
            Some(true) => {}
            Some(false) => self.refuse(Error::contradiction(key)),
        }
    }

    /// Whether it stores keys with a [head](Space::head), as those of all these keyspaces are.
    #[inline]
    pub(crate) fn has_heads(&self) -> bool {
        self.has_heads
    }

    /// The keyspaces that its operations name, except for the default one.
    #[inline]
    pub(crate) fn keyspaces(&self) -> &NamedKeyspaces {
        &self.keyspaces
    }

    /// Adds keyspaces that its operations name.
    pub(crate) fn name_keyspaces(&mut self, named: &NamedKeyspaces) {
        self.keyspaces.clone_from(named);
    }

    /// Takes [`keyspaces`](Self::keyspaces) out.
    #[inline]
    pub(crate) fn take_keyspaces(&mut self) -> NamedKeyspaces {
        std::mem::take(&mut self.keyspaces)
    }

    /// Takes out what keys must have for the batch to be written.
    pub(crate) fn take_expected(&mut self) -> Option<Box<Expected>> {
        self.expected.take()
    }

    /// Whether it depends on the values of keys.
    pub(crate) fn has_expectations(&self) -> bool {
        self.expected.is_some()
    }

    /// Reserves the exact size first: a batch of one operation allocates once.
    #[inline(always)]
    pub(super) fn begin(&mut self, kind: OpKind, head_bytes: usize, key_bytes: usize, value_bytes: usize) {
        let key_len = head_bytes + key_bytes;
        let bytes = 1 + varint_len(key_len as u64) + key_len + value_bytes;
        if self.encoded.capacity() == 0 {
            self.encoded = Vec::with_capacity(bytes); // Half the instructions of a `reserve`.
        } else {
            self.encoded.reserve(bytes);
        }
        self.encoded.put_u8(kind as u8);
        self.encoded.put_varint(key_len as u64);
        self.len += 1;
        self.has_heads |= head_bytes > 0;
        self.largest_key = self.largest_key.max(key_bytes);
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it deletes ranges of keys.
    pub(crate) fn deletes_ranges(&self) -> bool {
        self.range_bytes > 0
    }

    /// Size in the log, in bytes: keys, values and a few bytes per operation.
    pub fn bytes(&self) -> usize {
        self.encoded.len()
    }

    /// Removes all operations and expectations but keeps the memory.
    pub fn clear(&mut self) {
        *self = Batch { encoded: std::mem::take(&mut self.encoded), ..Self::default() };
        self.encoded.clear();
    }

    /// Checks the limits.
    ///
    /// # Errors
    /// [`Error::KeyTooLarge`], [`Error::ValueTooLarge`], [`Error::BatchTooLarge`], [`Error::InvalidRange`],
    /// [`Error::EmptyPrefix`], [`Error::Contradiction`].
    pub(crate) fn validate(&self) -> Result<()> {
        if let Some(error) = &self.invalid {
            return Err(Error::clone(error));
        }
        check_lengths(self.largest_key, self.largest_value)?;
        if self.bytes() > MAX_BATCH_BYTES {
            return Err(Error::BatchTooLarge { len: self.bytes(), max: MAX_BATCH_BYTES });
        }
        if self.range_bytes > MAX_RANGE_BYTES {
            return Err(Error::BatchTooLarge { len: self.range_bytes, max: MAX_RANGE_BYTES });
        }
        Ok(())
    }

    /// The encoded operations, without a copy: the form that the log stores and [`ops`](super::ops) reads.
    #[inline]
    pub(crate) fn into_bytes(self) -> Bytes {
        self.encoded.into()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} operations, {} bytes)", self.len, self.bytes())
    }
}

/// Checks the length of a key and that of a value.
///
/// # Errors
/// [`Error::KeyTooLarge`], [`Error::ValueTooLarge`].
pub fn check_lengths(key: usize, value: usize) -> Result<()> {
    if key > MAX_KEY_BYTES {
        return Err(Error::KeyTooLarge { len: key, max: MAX_KEY_BYTES });
    }
    if value > MAX_VALUE_BYTES {
        return Err(Error::ValueTooLarge { len: value, max: MAX_VALUE_BYTES });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::batch_ops::{BatchOp, ops};
    use super::super::format::is_well_formed;
    use super::*;
    use crate::key::without_head;
    use proptest::prelude::*;

    type Model = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn build(model: &Model) -> Batch {
        let mut batch = Batch::new();
        for (key, value) in model {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch
    }

    fn read(encoded: &Bytes) -> Model {
        let split = |op: BatchOp| match op.kind {
            OpKind::Put => (without_head(op.key()).to_vec(), Some(op.data[op.key_len..].to_vec())),
            OpKind::Delete => (without_head(op.key()).to_vec(), None),
            kind => unreachable!("the model has no {kind:?}"),
        };
        ops(encoded.clone()).map(split).collect()
    }

    proptest! {
        #[test]
        fn operations_come_back_in_order_and_as_they_were(model: Model) {
            let batch = build(&model);
            batch.validate().unwrap();
            prop_assert_eq!(batch.len(), model.len());
            let encoded = batch.into_bytes();
            prop_assert!(is_well_formed(&encoded, model.len() as u32));
            prop_assert!(!is_well_formed(&encoded, model.len() as u32 + 1));
            prop_assert_eq!(read(&encoded), model);
        }

        #[test]
        fn i6_arbitrary_bytes_never_panic_and_decode_only_when_well_formed(bytes: Vec<u8>) {
            let bytes = Bytes::from(bytes);
            let read = ops(bytes.clone()).count() as u32;
            let whole = (0..=read).any(|count| is_well_formed(&bytes, count));
            let left = { let mut all = ops(bytes.clone()); all.by_ref().for_each(drop); all.rest };
            prop_assert_eq!(whole, left.is_empty());
        }
    }

    #[test]
    fn ranges_come_back_and_those_that_are_none_are_refused_by_name() {
        let mut batch = Batch::new();
        batch.delete_range("b".."d");
        batch.delete_range(..);
        batch.delete_range("x".."x");
        batch.delete_prefix("p");
        batch.validate().unwrap();
        assert_eq!(batch.len(), 3, "an empty range is no operation");
        let encoded = batch.into_bytes();
        assert!(is_well_formed(&encoded, 3));
        let parts = |op: BatchOp| (op.kind, op.data[..op.key_len].to_vec(), op.data[op.key_len..].to_vec());
        let read: Vec<_> = ops(encoded).map(parts).collect();
        let range = |start: &str, end: &[u8]| (OpKind::DeleteRange, start.into(), end.into());
        assert_eq!(read, [range("b", b"d"), range("", b"\xff\x01"), range("p", b"q")]);

        let refused = |fill: &dyn Fn(&mut Batch)| {
            let mut batch = build(&vec![(b"k".to_vec(), None)]);
            fill(&mut batch);
            batch.validate().unwrap_err()
        };
        assert!(matches!(refused(&|batch| batch.delete_range("d".."b")), Error::InvalidRange { .. }));
        assert!(matches!(refused(&|batch| batch.delete_prefix("")), Error::EmptyPrefix));
        let long = vec![0; MAX_KEY_BYTES + 1];
        assert!(matches!(refused(&|batch| batch.delete_prefix(&long)), Error::KeyTooLarge { .. }));
        let many = |batch: &mut Batch| (0..600).for_each(|_| batch.delete_prefix(vec![1; MAX_KEY_BYTES]));
        assert!(matches!(refused(&many), Error::BatchTooLarge { .. }));
        assert!(!is_well_formed(&[2, 1, 1, b'b', b'a'], 1), "backwards");
        assert!(!is_well_formed(&[2, 1, 1, b'b', b'b'], 1), "empty");
    }

    #[test]
    fn one_operation_allocates_exactly_once() {
        for value in [0, 1, 127, 128, 20_000] {
            let batch = build(&vec![(b"a key".to_vec(), Some(vec![1; value]))]);
            assert_eq!(batch.encoded.capacity(), batch.encoded.len().max(8));
        }
    }

    #[test]
    fn limits_are_checked_by_name() {
        let too_large = |key, value| build(&vec![(vec![0; key], Some(vec![0; value]))]).validate();
        assert!(too_large(MAX_KEY_BYTES, MAX_VALUE_BYTES).is_ok());
        assert!(matches!(too_large(MAX_KEY_BYTES + 1, 0), Err(Error::KeyTooLarge { .. })));
        assert!(matches!(too_large(0, MAX_VALUE_BYTES + 1), Err(Error::ValueTooLarge { .. })));
    }

    #[test]
    fn a_cleared_batch_is_like_a_new_one() {
        let mut batch = build(&vec![(vec![0; MAX_KEY_BYTES + 1], None)]);
        batch.clear();
        batch.put(b"k", b"v");
        batch.validate().unwrap();
        assert_eq!(read(&batch.into_bytes()), vec![(b"k".to_vec(), Some(b"v".to_vec()))]);
    }
}
