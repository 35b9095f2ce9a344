//! Range tombstones: which ranges of keys were deleted, and when.
//!
//! A set of range tombstones is kept as a step function over the keys: from each step's key up to the next
//! one, every entry older than the step's sequence number is deleted. Overlapping tombstones need no more
//! than two steps each, and the newest one wins. (RocksDB calls the pieces between two steps fragments.)

use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
use crate::key::{MAX_KEY_BYTES, MAX_SEQ, MAX_STORED_KEY_BYTES, Seq, Space, SplitKey, prefix_end};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::LazyLock;

/// A range of keys to delete, from `start` to before `end`, or to the last key without one. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedRange {
    /// The first key.
    pub start: Vec<u8>,
    /// The key after the last one.
    pub end: Option<Vec<u8>>,
}

impl DeletedRange {
    /// The range between two bounds; `None` if no key is between them.
    ///
    /// # Errors
    /// [`Error::InvalidRange`] if the lower bound is greater than the upper one, [`Error::KeyTooLarge`].
    pub fn new(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<Option<Self>> {
        let bytes = |bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let (first, last): (Option<&[u8]>, Option<&[u8]>) = (bytes(from), bytes(to));
        if let Some(len) = first.into_iter().chain(last).map(<[u8]>::len).max().filter(|&n| n > MAX_KEY_BYTES)
        {
            return Err(Error::KeyTooLarge { len, max: MAX_KEY_BYTES });
        }
        if let (Some(first), Some(last)) = (first, last)
            && first > last
        {
            return Err(Error::invalid_range(first, last));
        }
        Ok(Self::within(from, to, MAX_KEY_BYTES))
    }

    /// The range between two bounds of stored keys; `None` if no key is between them.
    pub fn of_stored(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<Self> {
        Self::within(from, to, MAX_STORED_KEY_BYTES)
    }

    fn within(from: Bound<&[u8]>, to: Bound<&[u8]>, longest: usize) -> Option<Self> {
        let successor = |key| next_key(key, longest);
        let start = match from {
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => successor(key)?,
            Bound::Unbounded => Vec::new(),
        };
        let end = match to {
            Bound::Included(key) => successor(key),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        let is_empty = end.as_ref().is_some_and(|end| start >= *end);
        (!is_empty).then_some(DeletedRange { start, end })
    }

    /// All keys that start with `prefix`.
    ///
    /// # Errors
    /// [`Error::EmptyPrefix`], [`Error::KeyTooLarge`].
    pub fn of_prefix(prefix: &[u8]) -> Result<Self> {
        match prefix.len() {
            0 => Err(Error::EmptyPrefix),
            len if len > MAX_KEY_BYTES => Err(Error::KeyTooLarge { len, max: MAX_KEY_BYTES }),
            _ => Ok(DeletedRange { start: prefix.to_vec(), end: prefix_end(prefix) }),
        }
    }

    /// The range of stored keys for this range of a keyspace's keys.
    pub fn stored(self, space: Space) -> Self {
        let end = self.end.map_or_else(|| space.bounds().1, |end| space.stored(&end));
        DeletedRange { start: space.stored(&self.start), end: Some(end) }
    }
}

/// The smallest stored key greater than `key`; `None` if there is none.
pub fn successor(key: &[u8]) -> Option<Vec<u8>> {
    next_key(key, MAX_STORED_KEY_BYTES)
}

/// The smallest key greater than `key`, if the longest ones have this many bytes.
fn next_key(key: &[u8], longest: usize) -> Option<Vec<u8>> {
    if key.len() < longest { Some([key, &[0]].concat()) } else { prefix_end(key) }
}

/// The last key of all. It stands for the end of a range without one.
static LAST_KEY: LazyLock<Bytes> = LazyLock::new(|| vec![0xff; MAX_STORED_KEY_BYTES].into());

/// The last key of all, in shared memory.
pub fn last_key() -> Bytes {
    LAST_KEY.clone()
}

/// Appends a segment's largest key: 0 for the [last key of all](last_key), else 1 + its length and the key.
pub fn put_last_key(out: &mut Vec<u8>, key: &[u8]) {
    if *key == **LAST_KEY {
        out.put_varint(0)
    } else {
        out.put_varint(key.len() as u64 + 1);
        out.extend_from_slice(key);
    }
}

/// Reads the output of [`put_last_key`], and nothing else.
pub fn take_last_key(fields: &mut Decoder<'_>) -> Option<Bytes> {
    match fields.length()?.checked_sub(1) {
        None => Some(last_key()),
        Some(len) => {
            let key = fields.take(len).filter(|key| len <= MAX_STORED_KEY_BYTES && **key != **LAST_KEY)?;
            Some(Bytes::copy_from_slice(key))
        }
    }
}

/// From this key on, entries older than `seq` are deleted. 0 deletes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    from: Bytes,
    seq: Seq,
}

/// Range tombstones. Only the newest one of each key counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeTombstones {
    /// Keys increase strictly, the sequence numbers of neighbours differ, and the first one is not 0.
    steps: Vec<Step>,
}

impl RangeTombstones {
    /// The most bytes of an encoded step apart from its key.
    pub const STEP_BYTES: usize = 13;

    /// The tombstone of one range.
    pub fn of(start: Bytes, end: Option<Bytes>, seq: Seq) -> Self {
        let end = end.map(|from| Step { from, seq: 0 });
        RangeTombstones { steps: std::iter::once(Step { from: start, seq }).chain(end).collect() }
    }

    /// Whether nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Number of ranges, each deleted by one tombstone as far as it reaches.
    pub fn len(&self) -> usize {
        self.steps.iter().filter(|step| step.seq > 0).count()
    }

    /// Approximate memory, in bytes.
    pub fn bytes(&self) -> u64 {
        let keys: usize = self.steps.iter().map(|step| step.from.len()).sum();
        (keys + self.steps.len() * size_of::<Step>()) as u64
    }

    /// The first deleted key; empty if there is none.
    pub fn start(&self) -> &[u8] {
        self.steps.first().map(|step| &*step.from).unwrap_or_default()
    }

    /// The key after the last deleted one; `None` if the deleted keys extend to the last.
    pub fn end(&self) -> Option<&[u8]> {
        self.steps.last().filter(|step| step.seq == 0).map(|step| &*step.from)
    }

    /// The smallest and the largest sequence number; `None` if nothing is deleted.
    pub fn seqs(&self) -> Option<(Seq, Seq)> {
        let seqs = || self.steps.iter().map(|step| step.seq).filter(|&seq| seq > 0);
        Some((seqs().min()?, seqs().max()?))
    }

    /// The ranges in order: start, end (`None`: up to and including the last key), sequence number.
    pub fn ranges(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>, Seq)> {
        let ends = self.steps.iter().skip(1).map(|step| Some(&*step.from)).chain([None]);
        self.steps
            .iter()
            .zip(ends)
            .map(|(step, end)| (&*step.from, end, step.seq))
            .filter(|range| range.2 > 0)
    }

    /// A step's key and sequence number: older entries from this key up to the next step are deleted.
    pub fn step(&self, at: usize) -> Option<(&[u8], Seq)> {
        self.steps.get(at).map(|step| (&*step.from, step.seq))
    }

    /// The number of steps at or before the key.
    fn steps_to(&self, key: &[u8]) -> usize {
        self.steps.partition_point(|step| *step.from <= *key)
    }

    /// Entries of the key that are older than this are deleted.
    pub fn seq_at(&self, key: &[u8]) -> Seq {
        self.steps_to(key).checked_sub(1).and_then(|at| self.steps.get(at)).map_or(0, |step| step.seq)
    }

    /// Narrows a span around `key` to where these tombstones stay the same, and adds them to it.
    pub fn narrow(&self, key: &[u8], span: &mut Span) {
        let behind = self.steps_to(key);
        let at = behind.checked_sub(1).and_then(|at| self.steps.get(at));
        let next = self.steps.get(behind).map(|step| &*step.from);
        span.narrow(at.map(|step| &*step.from), next);
        span.seq = span.seq.max(at.map_or(0, |step| step.seq));
    }

    /// Whether every entry of these keys that is not newer than `newest` is deleted.
    pub fn cover(&self, smallest: &[u8], largest: &[u8], newest: Seq) -> bool {
        let Some(first) = self.steps_to(smallest).checked_sub(1) else { return false };
        let within = self.steps.iter().skip(first).take_while(|step| *step.from <= *largest);
        within.map(|step| step.seq).min().is_some_and(|seq| seq > newest)
    }

    /// Both sets together.
    pub fn merged(&self, other: &Self) -> Self {
        let mut merged = RangeTombstones { steps: Vec::with_capacity(self.steps.len() + other.steps.len()) };
        let (mut mine, mut theirs) = (self.steps.iter().peekable(), other.steps.iter().peekable());
        let (mut a, mut b) = (0, 0);
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (Some(x), Some(y)) => {
                    if x.from <= y.from {
                        &x.from
                    } else {
                        &y.from
                    }
                }
                (Some(x), None) => &x.from,
                (None, Some(y)) => &y.from,
                (None, None) => return merged,
            }
            .clone();
            a = mine.next_if(|step| step.from == next).map_or(a, |step| step.seq);
            b = theirs.next_if(|step| step.from == next).map_or(b, |step| step.seq);
            merged.push(next, a.max(b));
        }
    }

    fn push(&mut self, from: Bytes, seq: Seq) {
        if self.steps.last().map_or(0, |last| last.seq) != seq {
            self.steps.push(Step { from, seq });
        }
    }

    /// Several sets together.
    pub fn all<'a>(sets: impl IntoIterator<Item = &'a RangeTombstones>) -> Self {
        let mut sets: Vec<RangeTombstones> =
            sets.into_iter().filter(|set| !set.is_empty()).cloned().collect();
        while sets.len() > 1 {
            sets = sets
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => a.merged(b),
                    rest => rest.first().cloned().unwrap_or_default(),
                })
                .collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// Splits the set: the part before the key stays, the part from the key on is returned.
    pub fn split_off(&mut self, key: &[u8]) -> Self {
        let at = self.steps.partition_point(|step| *step.from < *key);
        let mut rest = RangeTombstones { steps: self.steps.split_off(at) };
        let seq = self.steps.last().map_or(0, |step| step.seq);
        if seq > 0 {
            let key = Bytes::copy_from_slice(key);
            if rest.steps.first().is_none_or(|step| step.from != key) {
                rest.steps.insert(0, Step { from: key.clone(), seq });
            }
            self.steps.push(Step { from: key, seq: 0 });
        }
        if rest.steps.first().is_some_and(|step| step.seq == 0) {
            rest.steps.remove(0);
        }
        rest
    }

    /// Appends the number of steps, and key and sequence number of each.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.steps.len() as u64);
        for step in &self.steps {
            out.put_bytes(&step.from);
            out.put_varint(step.seq);
        }
    }

    /// Decodes the output of [`encode`](Self::encode), and nothing else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(bytes);
        let count = fields.length()?;
        let mut set = RangeTombstones::default();
        for _ in 0..count {
            let from = fields.bytes().filter(|key| key.len() <= MAX_STORED_KEY_BYTES)?;
            let step = Step {
                from: Bytes::copy_from_slice(from),
                seq: fields.varint().filter(|&seq| seq <= MAX_SEQ)?,
            };
            let (before, seq) = set.steps.last().map_or((None, 0), |last| (Some(&last.from), last.seq));
            if before.is_some_and(|before| *before >= step.from) || seq == step.seq {
                return None;
            }
            set.steps.push(step);
        }
        (fields.remaining() == 0).then_some(set)
    }
}

/// Neighbouring keys that the same range tombstones delete, around one key. Saves searching for the next
/// keys.
#[derive(Debug, Clone, Default)]
pub struct Span {
    from: Vec<u8>,
    /// Only if it `ends`. Otherwise kept for its memory.
    to: Vec<u8>,
    ends: bool,
    /// Entries older than this are deleted.
    pub seq: Seq,
}

impl Span {
    /// All keys, before [`narrow`](RangeTombstones::narrow).
    pub fn reset(&mut self) {
        self.from.clear();
        (self.ends, self.seq) = (false, 0);
    }

    /// Its first key.
    pub fn start(&self) -> &[u8] {
        &self.from
    }

    /// The key after its last one; `None` if it extends to the last key.
    pub fn end(&self) -> Option<&[u8]> {
        self.ends.then_some(&self.to)
    }

    /// Whether the key is in the span.
    #[inline]
    pub fn has(&self, key: SplitKey<'_>) -> bool {
        key.cmp_bytes(&self.from).is_ge() && (!self.ends || key.cmp_bytes(&self.to).is_lt())
    }

    /// Excludes the keys before `from`, and those from `to` on.
    pub fn narrow(&mut self, from: Option<&[u8]>, to: Option<&[u8]>) {
        if let Some(from) = from.filter(|from| *from > &*self.from) {
            self.from.clear();
            self.from.extend_from_slice(from);
        }
        if let Some(to) = to.filter(|to| !self.ends || *to < &*self.to) {
            self.to.clear();
            self.to.extend_from_slice(to);
            self.ends = true;
        }
    }
}

#[cfg(test)]
mod tests;
