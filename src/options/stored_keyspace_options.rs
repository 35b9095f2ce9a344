//! The stored form of a keyspace's options. Each field is a tag, the length of its contents, and these. So a
//! field of a newer version is told from damage.

use super::{FilterPolicy, KeyspaceOptions};
use crate::codec::{Decoder, Encode};
use crate::filter::{PrefixExtractor, PrefixSet};
use crate::key::Expiry;
use crate::segment::Compression;
use std::time::Duration;

const FILTER_POLICY: u8 = 1;
const PREFIXES: u8 = 2;
const COMPRESSION: u8 = 3;
const BLOCK_BYTES: u8 = 4;
const EXPIRE_AFTER: u8 = 5;
const WINDOW: u8 = 6;

/// Why options cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// They have a field, or a value, that only a newer version knows.
    Newer(u8),
    Damaged,
}

/// Appends the options.
pub fn encode(options: &KeyspaceOptions, out: &mut Vec<u8>) {
    let mut field = |tag: u8, contents: &[u8]| {
        out.put_u8(tag);
        out.put_bytes(contents);
    };
    if let Some(policy) = options.filter_policy {
        let (code, number) = policy.to_code();
        let mut contents = vec![code];
        contents.put_u64(number);
        field(FILTER_POLICY, &contents);
    }
    if let Some(set) = options.own_prefixes() {
        let mut contents = Vec::new();
        set.iter().for_each(|extractor| contents.put_u64(extractor.code()));
        field(PREFIXES, &contents);
    }
    if let Some(compression) = options.compression {
        field(COMPRESSION, &[compression as u8]);
    }
    if let Some(bytes) = options.block_bytes {
        let mut contents = Vec::new();
        contents.put_u64(bytes as u64);
        field(BLOCK_BYTES, &contents);
    }
    for (tag, duration) in [(EXPIRE_AFTER, options.expire_after), (WINDOW, options.window)] {
        if let Some(duration) = duration {
            let mut contents = Vec::new();
            contents.put_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
            field(tag, &contents);
        }
    }
}

/// Reads the output of [`encode`], to its end.
pub fn decode(fields: &mut Decoder<'_>) -> Result<KeyspaceOptions, Unreadable> {
    let mut options = KeyspaceOptions::default();
    while fields.remaining() > 0 {
        let (tag, contents) = fields.u8().zip(fields.bytes()).ok_or(Unreadable::Damaged)?;
        let mut contents = Decoder::new(contents);
        let known = match tag {
            FILTER_POLICY => {
                let (code, number) = contents.u8().zip(contents.u64()).ok_or(Unreadable::Damaged)?;
                if FilterPolicy::is_newer_code(code) {
                    return Err(Unreadable::Newer(tag));
                }
                options.filter_policy = FilterPolicy::from_code(code, number);
                options.filter_policy.is_some()
            }
            PREFIXES => {
                let mut set = Vec::new();
                while contents.remaining() > 0 {
                    let code = contents.u64().ok_or(Unreadable::Damaged)?;
                    set.push(PrefixExtractor::from_code(code).ok_or(Unreadable::Newer(tag))?);
                }
                options.prefixes = Some(PrefixSet::new(set));
                options.prefixes.as_ref().is_some_and(Result::is_ok)
            }
            COMPRESSION => {
                let code = contents.u8().ok_or(Unreadable::Damaged)?;
                let mut all = Compression::ALL.iter().copied();
                let known = all.find(|kind| *kind as u8 == code).ok_or(Unreadable::Newer(tag))?;
                options.compression = Some(known);
                true
            }
            BLOCK_BYTES => {
                let bytes = contents.u64().ok_or(Unreadable::Damaged)?;
                options.block_bytes = usize::try_from(bytes).ok();
                options.block_bytes.is_some_and(|bytes| super::check_block_bytes(bytes).is_ok())
            }
            EXPIRE_AFTER => {
                let lifetime = Duration::from_millis(contents.u64().ok_or(Unreadable::Damaged)?);
                options.expire_after = Some(lifetime);
                Expiry::after(lifetime).checked().is_ok()
            }
            WINDOW => {
                let window = Duration::from_millis(contents.u64().ok_or(Unreadable::Damaged)?);
                options.window = Some(window);
                Expiry::after(window).checked().is_ok()
            }
            newer => return Err(Unreadable::Newer(newer)),
        };
        if !known || contents.remaining() > 0 {
            return Err(Unreadable::Damaged);
        }
    }
    Ok(options)
}

/// Options are the same if they are stored the same.
impl PartialEq for KeyspaceOptions {
    fn eq(&self, other: &Self) -> bool {
        let (mut stored, mut of_other) = (Vec::new(), Vec::new());
        encode(self, &mut stored);
        encode(other, &mut of_other);
        stored == of_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(options: &KeyspaceOptions) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(options, &mut bytes);
        bytes
    }

    #[test]
    fn options_come_back_as_they_were_stored() {
        let policies = [
            FilterPolicy::OFF,
            FilterPolicy::bits_per_key(15.0),
            FilterPolicy::target_fpr(0.01),
            FilterPolicy::memory_budget(1 << 30),
            FilterPolicy::blocked_bloom(10.0),
        ];
        for policy in policies {
            let options = KeyspaceOptions::new().filter_policy(policy);
            let back = decode(&mut Decoder::new(&encoded(&options))).unwrap();
            assert_eq!(back.own_filter_policy(), Some(policy));
        }
        for &compression in Compression::ALL {
            let options = KeyspaceOptions::new()
                .compression(compression)
                .block_bytes(256)
                .expire_after(Duration::from_secs(30))
                .prefixes(PrefixExtractor::row_and_column(b'/'));
            assert_eq!(decode(&mut Decoder::new(&encoded(&options))).unwrap(), options);
            let options = options.window(Duration::from_secs(30));
            assert_eq!(decode(&mut Decoder::new(&encoded(&options))).unwrap(), options);
        }
        assert_eq!(decode(&mut Decoder::new(&[])).unwrap(), KeyspaceOptions::new());
    }

    #[test]
    fn i14_what_only_a_newer_version_knows_is_told_from_damage() {
        let fails = |bytes: &[u8]| decode(&mut Decoder::new(bytes)).unwrap_err();
        assert_eq!(fails(&[9, 0]), Unreadable::Newer(9));
        assert_eq!(fails(&[3, 1, 77]), Unreadable::Newer(3));
        assert_eq!(fails(&[1, 9, 5, 0, 0, 0, 0, 0, 0, 0, 0]), Unreadable::Newer(1));
        let whole = encoded(&KeyspaceOptions::new().block_bytes(4096).compression(Compression::Lz4));
        for cut in 1..whole.len() {
            // Between two fields, nothing is missing.
            assert!(cut == 3 || decode(&mut Decoder::new(&whole[..cut])).is_err(), "{cut}");
        }
        assert_eq!(fails(&[4, 8, 1, 0, 0, 0, 0, 0, 0, 0]), Unreadable::Damaged, "blocks of one byte");
        assert_eq!(fails(&[3, 2, 1, 0]), Unreadable::Damaged, "one byte too many");
    }
}
