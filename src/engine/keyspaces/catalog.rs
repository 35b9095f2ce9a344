//! The rows of the catalog: the names, numbers and options of keyspaces.
//!
//! ```text
//! key, after the head of the catalog    value
//! 'n' name                              number varint, options (src/options/stored_keyspace_options.rs)
//! 's'                                   next number varint, version varint
//! ```
//!
//! - *name*: 1 to 255 bytes of UTF-8.
//! - *number*: never used again, so a keyspace that is created anew has none of the rows of the earlier one.
//! - *version*: rises with every change of the catalog, so a follower reads one row to notice it.
//!
//! They are rows like all others: a batch writes them, the log and segments hold them, and copies, followers
//! and repairs get them.

use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
use crate::key::{KEYSPACE_NAME_BYTES_MAX, Space};
use crate::options::{KeyspaceOptions, Unreadable, decode_keyspace_options, encode_keyspace_options};
use std::path::Path;

/// What precedes a name.
const NAME: u8 = b'n';
/// The key of the row that counts.
const STATE: &[u8] = b"s";

/// Fails for what cannot be a name.
pub(super) fn check_name(name: &str) -> Result<()> {
    let refused = |why| Err(Error::InvalidKeyspaceName { name: name.chars().take(64).collect(), why });
    match name.len() {
        0 => refused("it is empty"),
        1..=KEYSPACE_NAME_BYTES_MAX => Ok(()),
        _ => refused("it has more than 255 bytes"),
    }
}

/// The stored key of a name's row.
pub(super) fn name_key(name: &str) -> Vec<u8> {
    Space::CATALOG.stored(&[&[NAME], name.as_bytes()].concat())
}

/// The stored keys from which on, and before which, the rows of names are.
pub(super) fn name_bounds() -> (Vec<u8>, Vec<u8>) {
    (Space::CATALOG.stored(&[NAME]), Space::CATALOG.stored(&[NAME + 1]))
}

/// The name in the stored key of its row.
pub(super) fn name_in(stored: &[u8]) -> Option<&str> {
    let name = crate::key::without_head(stored).strip_prefix(&[NAME])?;
    std::str::from_utf8(name).ok().filter(|name| check_name(name).is_ok())
}

/// The stored key of the row that counts.
pub(super) fn state_key() -> Vec<u8> {
    Space::CATALOG.stored(STATE)
}

/// A keyspace as its row has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CatalogRow {
    pub number: u32,
    pub options: KeyspaceOptions,
}

impl CatalogRow {
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::new();
        value.put_varint(u64::from(self.number));
        encode_keyspace_options(&self.options, &mut value);
        value
    }

    /// Reads the row of `name` in the store at `dir`.
    ///
    /// # Errors
    /// [`Error::Corruption`]; [`Error::UnknownCode`] for options of a newer version.
    pub fn decode(value: &[u8], name: &str, dir: &Path) -> Result<Self> {
        let what = || format!("the options of keyspace \"{}\"", crate::show::escaped(name));
        let damaged = || Error::corruption(dir, 0, format!("{} are invalid; drop the keyspace", what()));
        let mut fields = Decoder::new(value);
        let number =
            fields.varint().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
        let number = number.ok_or_else(damaged)?;
        match decode_keyspace_options(&mut fields) {
            Ok(options) => Ok(CatalogRow { number, options }),
            Err(Unreadable::Newer(field)) => {
                Err(Error::unknown_code(dir, 0, format!("field {field} in {}", what())))
            }
            Err(Unreadable::Damaged) => Err(damaged()),
        }
    }
}

/// The row that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CatalogState {
    /// The number of the next keyspace.
    pub next: u32,
    /// How often the catalog was changed.
    pub version: u64,
}

impl CatalogState {
    /// Of a store without keyspaces.
    pub const NEW: CatalogState = CatalogState { next: 1, version: 0 };

    pub fn encode(self) -> Vec<u8> {
        let mut value = Vec::new();
        value.put_varint(u64::from(self.next));
        value.put_varint(self.version);
        value
    }

    /// `None` if it is invalid.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(value);
        let next = fields.varint().and_then(|next| u32::try_from(next).ok()).filter(|next| *next > 0)?;
        let state = CatalogState { next, version: fields.varint()? };
        (fields.remaining() == 0).then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compression, FilterPolicy};

    #[test]
    fn rows_come_back_as_they_were() {
        let dir = Path::new("store");
        for options in [
            KeyspaceOptions::new(),
            KeyspaceOptions::new().filter_policy(FilterPolicy::OFF).compression(Compression::Lz4),
        ] {
            for number in [1, 127, 128, u32::MAX] {
                let row = CatalogRow { number, options: options.clone() };
                assert_eq!(CatalogRow::decode(&row.encode(), "seen", dir).unwrap(), row);
            }
        }
        let state = CatalogState { next: 300, version: u64::MAX };
        assert_eq!(CatalogState::decode(&state.encode()), Some(state));
        for name in ["seen", "ö", &"x".repeat(255)] {
            let key = name_key(name);
            assert_eq!(name_in(&key), Some(name));
            let (first, end) = name_bounds();
            assert!(first < key && key < end && Space::CATALOG.contains(&key));
        }
        assert!(!(name_bounds().0..name_bounds().1).contains(&state_key()));
    }

    #[test]
    fn invalid_rows_have_errors_that_name_the_keyspace() {
        let fails = |value: &[u8]| CatalogRow::decode(value, "a\nb", Path::new("store")).unwrap_err();
        assert!(matches!(fails(&[]), Error::Corruption { .. }));
        assert!(matches!(fails(&[0]), Error::Corruption { .. }), "the catalog's own number");
        let newer = fails(&[1, 200, 0]);
        assert!(matches!(newer, Error::UnknownCode { .. }), "{newer}");
        assert!(
            newer.to_string().contains("a\\nb") && newer.to_string().contains("newer version"),
            "{newer}"
        );
        assert_eq!(CatalogState::decode(&[0, 0]), None);
        assert_eq!(CatalogState::decode(&[1, 0, 0]), None);
        assert!(matches!(check_name(""), Err(Error::InvalidKeyspaceName { .. })));
        assert!(matches!(check_name(&"ö".repeat(128)), Err(Error::InvalidKeyspaceName { .. })));
    }
}
