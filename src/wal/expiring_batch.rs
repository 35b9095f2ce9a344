//! Puts that expire, in a batch.
//!
//! A put that says how long its row lives, and not until when, has that duration in place of its expiry until
//! the batch is written.

use super::batch::{Batch, MAX_BATCH_BYTES};
use super::format::{OpKind, varint_len};
use crate::codec::Encode;
use crate::error::Result;
use crate::key::{Expiry, Moment, Space, Time};

impl Batch {
    /// [`push_put`](Self::push_put) of a value that may expire.
    #[inline(never)]
    pub(crate) fn push_put_with(&mut self, head: &[u8], key: &[u8], value: &[u8], expiry: Expiry) {
        match expiry.checked() {
            Ok(Moment::Never) => self.push_put(head, key, value),
            Ok(Moment::At(time)) => self.push_put_until(head, key, time, value),
            Ok(Moment::After(duration)) => {
                self.push_put_until(head, key, duration, value);
                // A batch with more bytes is refused.
                self.durations
                    .get_or_insert_default()
                    .0
                    .extend(u32::try_from(self.encoded.len() - value.len() - Time::BYTES));
            }
            Err(error) => self.refuse(error),
        }
    }

    fn push_put_until(&mut self, head: &[u8], key: &[u8], time: Time, value: &[u8]) {
        let rest = varint_len(value.len() as u64) + Time::BYTES + value.len();
        self.begin(OpKind::PutUntil, head.len(), key.len(), rest);
        self.encoded.put_varint(value.len() as u64);
        self.push_key(head, key);
        self.encoded.extend_from_slice(&time.encoded());
        self.encoded.extend_from_slice(value);
        self.largest_value = self.largest_value.max(value.len());
        self.expires = true;
    }

    /// Appends a put of a stored key that expires then.
    pub(crate) fn put_stored_until(&mut self, stored: &[u8], time: Time, value: &[u8]) {
        let (head, key) = stored.split_at(Space::head_bytes(stored));
        self.push_put_until(head, key, time, value);
    }

    /// Whether it has puts that expire.
    #[inline]
    pub(crate) fn expires(&self) -> bool {
        self.expires
    }

    /// Turns durations into expiries, counted from `now`. With `says_now`, the batch also tells the log that
    /// the clock has reached that.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a row that would expire after the year 9999.
    pub(crate) fn date(&mut self, now: Time, says_now: bool) -> Result<()> {
        for at in self.durations.take().unwrap_or_default().0 {
            let at = at as usize;
            if let Some(place) = self.encoded.get_mut(at..at + Time::BYTES) {
                let lifetime = Time::decode(place).unwrap_or_default();
                place.copy_from_slice(&now.after(lifetime)?.encoded());
            }
        }
        if says_now && self.bytes() + 1 + Time::BYTES <= MAX_BATCH_BYTES {
            self.encoded.put_u8(OpKind::Time as u8);
            self.encoded.extend_from_slice(&now.encoded());
            self.len += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch_ops::{BatchOp, ops};
    use super::super::format::is_well_formed;
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn rows_that_expire_come_back_with_their_moments() {
        let mut batch = Batch::new();
        let at = |millis| Expiry::at(UNIX_EPOCH + Duration::from_millis(millis));
        batch.put_with("a", "1", at(0x0102_0304_0506));
        batch.put_with("", "", Expiry::after(Duration::from_millis(700)));
        batch.put_with("c", "3", Expiry::never());
        batch.put_with("d", "4", at(0));
        assert!(batch.expires());
        batch.validate().unwrap();
        batch.date(Time::of_millis(5_000), true).unwrap();
        assert_eq!(batch.len(), 5);
        let encoded = batch.into_bytes();
        assert!(is_well_formed(&encoded, 5));
        let parts = |op: BatchOp| (op.kind, op.data[..op.key_len].to_vec(), op.data[op.key_len..].to_vec());
        let until = |millis, value: &str| [&Time::of_millis(millis).encoded(), value.as_bytes()].concat();
        let expected = [
            (OpKind::PutUntil, b"a".to_vec(), until(0x0102_0304_0506, "1")),
            (OpKind::PutUntil, Vec::new(), until(5_700, "")),
            (OpKind::Put, b"c".to_vec(), b"3".to_vec()),
            (OpKind::PutUntil, b"d".to_vec(), until(1, "4")),
            (OpKind::Time, Vec::new(), until(5_000, "")),
        ];
        assert_eq!(ops(encoded).map(parts).collect::<Vec<_>>(), expected);
        let never: &[u8] = &[3, 1, 0, b'k', 0, 0, 0, 0, 0, 0];
        assert!(!is_well_formed(never, 1), "an expiry of 0");
        assert!(!is_well_formed(&[4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1), "after the year 9999");
        assert!(!is_well_formed(&[3, 1, 0, b'k', 1, 0, 0, 0, 0], 1), "a cut expiry");
    }
}
