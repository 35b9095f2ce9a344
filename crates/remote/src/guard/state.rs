//! The format of a published state, the objects that it names, and how the newest one is found. Integers are little-endian.
//!
//! ```text
//! guard/state/NNNNNNNNNNNNNNNNNNNN   20 digits; created once, never replaced
//! guard/filter/HHHHHHHHHHHHHHHH…     a filter's file under its SHA-256, 64 hex digits
//! guard/latest                       the digits of a state that is the newest, or was a moment ago: a hint
//!
//!  0  8  magic "SBLMSTA\n"
//!  8  4  version
//! 12  8  the guard's id
//! 20  8  number
//! 28  8  writer: a random number of the publisher
//! 36  8  as of: milliseconds since 1970, by the publisher's clock
//! 44  1  1 if the guard was suspended, else 0
//! 45  …  the guard's settings, and the manifest: each a varint length and bytes
//!     …  the number of filters, a varint; for each of them, with ascending numbers:
//!        8 its number, 8 its length in bytes, 32 SHA-256; without a file, the last two are zero
//!     4  CRC-32 of all bytes before
//! ```
//! *version*: 1. In every version, magic and version are at these offsets, and the last four bytes are the CRC-32 of all others.

use crate::error::{Error, Result};
use crate::find::{HINT_BYTES_MAX, Steps};
use crate::generation::hex;
use crate::remote::Remote;
use bytes::Bytes;
use sidebloom_filter::codec::{Decoder, Encode, crc32};
use std::collections::BTreeMap;
use std::time::SystemTime;

const MAGIC: &[u8; 8] = b"SBLMSTA\n";
const VERSION: u32 = 1;
/// The largest state: a million filters, and a manifest that lists them.
pub const BYTES_MAX: u64 = 128 << 20;
/// The hint.
pub const LATEST: &str = "guard/latest";
/// The directories.
pub const STATES: &str = "guard/state";
pub const FILTERS: &str = "guard/filter";

/// A filter's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilterRef {
    pub len: u64,
    pub sha256: [u8; 32],
}

impl FilterRef {
    /// The name of the file, and the last part of the object's.
    pub fn file_name(&self) -> String {
        hex(&self.sha256)
    }

    pub fn object(&self) -> String {
        format!("{FILTERS}/{}", self.file_name())
    }
}

/// The filters of a state by their numbers; `None` for those without a file.
pub type Filters = BTreeMap<u64, Option<FilterRef>>;

/// A published state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub guard_id: u64,
    pub number: u64,
    pub writer: u64,
    pub as_of_ms: u64,
    pub suspended: bool,
    pub settings: Vec<u8>,
    pub manifest: Vec<u8>,
    pub filters: Filters,
}

/// The object of a state.
pub fn object(number: u64) -> String {
    format!("{STATES}/{number:020}")
}

impl State {
    pub fn encode(&self) -> Bytes {
        let mut buf = MAGIC.to_vec();
        buf.put_u32(VERSION);
        [self.guard_id, self.number, self.writer, self.as_of_ms].iter().for_each(|field| buf.put_u64(*field));
        buf.put_u8(self.suspended.into());
        buf.put_bytes(&self.settings);
        buf.put_bytes(&self.manifest);
        buf.put_varint(self.filters.len() as u64);
        for (number, filter) in &self.filters {
            let filter = filter.unwrap_or(FilterRef { len: 0, sha256: [0; 32] });
            buf.put_u64(*number);
            buf.put_u64(filter.len);
            buf.extend_from_slice(&filter.sha256);
        }
        let crc = crc32(&[&buf]);
        buf.put_u32(crc);
        buf.into()
    }

    pub fn decode(object: &str, bytes: &[u8]) -> Result<Self> {
        let damaged = |offset: usize, what: &str| Error::damaged(object, offset as u64, what);
        let short = || damaged(bytes.len(), "cut short");
        let (body, crc) = bytes.split_last_chunk().ok_or_else(short)?;
        let mut fields = Decoder::new(body);
        if fields.take(MAGIC.len()) != Some(MAGIC) {
            return Err(damaged(0, "not a published guard"));
        }
        // Before the version, so that a damaged version is not taken for another one.
        if *crc != crc32(&[body]).to_le_bytes() {
            return Err(damaged(body.len(), "checksum mismatch"));
        }
        let found = fields.u32().ok_or_else(short)?;
        if found != VERSION {
            return Err(Error::UnsupportedVersion { object: object.to_owned(), found, supported: VERSION });
        }
        let state = Self::fields(&mut fields).ok_or_else(|| damaged(fields.position(), "invalid field"))?;
        match fields.remaining() {
            0 => Ok(state),
            _ => Err(damaged(fields.position(), "bytes after the end")),
        }
    }

    fn fields(fields: &mut Decoder<'_>) -> Option<Self> {
        let [guard_id, number, writer, as_of_ms] =
            [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
        let suspended = match fields.u8()? {
            flag @ (0 | 1) => flag == 1,
            _ => return None,
        };
        let (settings, manifest) = (fields.bytes()?.to_vec(), fields.bytes()?.to_vec());
        let mut filters = BTreeMap::new();
        for _ in 0..fields.varint()? {
            let (number, len) = (fields.u64()?, fields.u64()?);
            let sha256 = fields.take(32)?.try_into().ok()?;
            if filters.last_key_value().is_some_and(|(last, _)| *last >= number) {
                return None;
            }
            filters.insert(number, (len > 0).then_some(FilterRef { len, sha256 }));
        }
        Some(State { guard_id, number, writer, as_of_ms, suspended, settings, manifest, filters })
    }

    /// Whether both have the same guard with the same keys.
    pub fn has_keys_of(&self, other: &State) -> bool {
        (&self.settings, &self.manifest, &self.filters) == (&other.settings, &other.manifest, &other.filters)
    }
}

/// A state that was read, with its time by the bucket's clock.
pub struct Read {
    pub state: State,
    pub modified: SystemTime,
}

/// A state; `None` if it has not been published, or was collected.
pub fn read(remote: &Remote, number: u64) -> Result<Option<Read>> {
    let name = object(number);
    let Some(found) = remote.get_at_most(&name, BYTES_MAX)? else { return Ok(None) };
    let name = remote.object(&name);
    let state = State::decode(&name, &found.bytes)?;
    match state.number == number {
        true => Ok(Some(Read { state, modified: found.meta.last_modified.into() })),
        false => Err(Error::damaged(&name, 20, format!("it is state {}", state.number))),
    }
}

/// The number of a state that is the newest or was; `None` if there is no such hint.
pub fn hint(remote: &Remote) -> Result<Option<u64>> {
    let hint = remote.get_at_most(LATEST, HINT_BYTES_MAX)?;
    Ok(hint.and_then(|hint| std::str::from_utf8(&hint.bytes).ok()?.parse().ok()))
}

/// The newest state; `None` if none was ever published.
pub fn newest(remote: &Remote) -> Result<Option<Read>> {
    if let Some(number) = hint(remote)?
        && let Some(newest) = newest_from(remote, number)?
    {
        return Ok(Some(newest));
    }
    match remote.largest(STATES, number_in)? {
        Some(number) => newest_from(remote, number),
        None => Ok(None),
    }
}

/// The newest state, if there is one with this number. Looks at one after the other.
pub fn newest_from(remote: &Remote, number: u64) -> Result<Option<Read>> {
    let Some(mut newest) = read(remote, number)? else { return Ok(None) };
    let mut steps = Steps::new(number);
    while let Some(next) = steps.after(remote, newest.state.number)?
        && let Some(found) = read(remote, next)?
    {
        newest = found;
        if steps.ask_hint()
            && let Some(number) = hint(remote)?.filter(|number| *number > newest.state.number)
            && let Some(leap) = read(remote, number)?
        {
            newest = leap;
        }
    }
    Ok(Some(newest))
}

/// The number in the name of a state's object.
pub fn number_in(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> State {
        let filter = FilterRef { len: 9000, sha256: [7; 32] };
        State {
            guard_id: 1,
            number: 2,
            writer: 3,
            as_of_ms: 4,
            suspended: true,
            settings: b"settings".to_vec(),
            manifest: vec![5; 300],
            filters: BTreeMap::from([(3, Some(filter)), (9, None)]),
        }
    }

    #[test]
    fn a_state_round_trips_and_its_bytes_are_frozen() {
        let bytes = sample().encode();
        assert_eq!(State::decode("x", &bytes).unwrap(), sample());
        assert_eq!(bytes.len(), 45 + 9 + 302 + 1 + 2 * 48 + 4);
        assert_eq!(format!("{:08x}", crc32(&[&bytes[..bytes.len() - 4]])), "4ffffa51");
    }

    #[test]
    fn every_flipped_bit_and_every_shorter_or_longer_state_is_refused() {
        let good = sample().encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(State::decode("x", &bad), Err(Error::Damaged { .. })), "bit {bit}");
        }
        (0..good.len()).for_each(|len| assert!(State::decode("x", &good[..len]).is_err(), "cut to {len}"));
        let mut longer = good[..good.len() - 4].to_vec();
        longer.push(0);
        let crc = crc32(&[&longer]);
        longer.put_u32(crc);
        assert!(State::decode("x", &longer).unwrap_err().to_string().contains("bytes after the end"));
        let mut newer = good[..good.len() - 4].to_vec();
        newer[8] = 2;
        let crc = crc32(&[&newer]);
        newer.put_u32(crc);
        assert!(matches!(State::decode("x", &newer), Err(Error::UnsupportedVersion { found: 2, .. })));
    }
}
