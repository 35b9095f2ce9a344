//! The properties block of a segment. The byte map is in [`format`](mod@super::format).

use super::facts::Facts;
use super::format::{Compression, Location, PROPERTIES_MARK};
use super::symbols::Symbols;
use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};
use crate::hash::{KeyHasher, is_newer_code};
use crate::key::{KEYSPACE_NAME_BYTES_MAX, check_seq};
use std::sync::Arc;

/// What identifies a store: set when it is created, never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreIdentity {
    /// A random number. Binds logs and segments to their store.
    pub store_id: u64,
    /// The key hash.
    pub hasher: KeyHasher,
}

/// The only field after the facts that this version writes: the keyspace.
const KEYSPACE: u8 = 1;

/// The keyspace of all rows, for a repair that does not find its name elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyspaceName {
    /// Its number, at least 1.
    pub number: u32,
    /// Its name, of 1 to 255 bytes.
    pub name: String,
}

impl KeyspaceName {
    fn is_sound(&self) -> bool {
        self.number > 0 && (1..=KEYSPACE_NAME_BYTES_MAX).contains(&self.name.len())
    }

    fn decode(fields: &mut Decoder<'_>) -> Option<Self> {
        let number = u32::try_from(fields.varint()?).ok()?;
        let name = std::str::from_utf8(fields.bytes()?).ok()?.to_owned();
        Some(KeyspaceName { number, name }).filter(KeyspaceName::is_sound)
    }
}

/// The contents of the properties block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// The store.
    pub store: StoreIdentity,
    /// The writer's setting.
    pub compression: Compression,
    /// The symbol table of its values, if any of them is coded.
    pub symbols: Option<Arc<Symbols>>,
    /// What the segment holds.
    pub facts: Facts,
    /// The keyspace of all its rows; `None` for the default one, for several, and if its name is not known.
    pub keyspace: Option<KeyspaceName>,
}

impl Properties {
    /// Appends the payload of the properties block.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`]; [`Error::Unencodable`] for what [`decode`](Self::decode) refuses.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        check_seq(self.facts.max_seq)?;
        if !self.facts.is_sound() || self.keyspace.as_ref().is_some_and(|of| !of.is_sound()) {
            let why = "they contradict themselves".into();
            return Err(Error::Unencodable { what: "the properties of a segment", why });
        }
        out.put_u64(PROPERTIES_MARK);
        out.put_u64(self.store.store_id);
        let (code, key) = self.store.hasher.to_code();
        out.put_u8(code);
        key.iter().for_each(|&word| out.put_u64(word));
        out.put_bytes(self.compression.name().as_bytes());
        if self.compression == Compression::Fsst {
            out.put_bytes(self.symbols.as_deref().map_or(&[], Symbols::encoded));
        } else if self.symbols.is_some() {
            let why = "only values coded by FSST have symbols".into();
            return Err(Error::Unencodable { what: "the properties of a segment", why });
        }
        self.facts.encode(out);
        if let Some(KeyspaceName { number, name }) = &self.keyspace {
            out.put_u8(KEYSPACE);
            out.put_varint(u64::from(*number));
            out.put_bytes(name.as_bytes());
        }
        Ok(())
    }

    /// Decodes the payload of the properties block at `location`.
    ///
    /// # Errors
    /// [`Error::Corruption`], or [`Error::UnknownCode`] for a newer version's hash, compression or field.
    pub fn decode(location: Location<'_>, payload: &[u8]) -> Result<Self> {
        let damaged = || location.damaged("the properties do not parse or contradict themselves");
        let newer = |what: String| location.unknown_code(format!("{what} in its properties"));
        let mut fields = Decoder::new(payload);
        let mut head = || {
            Some((
                fields.u64()?,
                fields.u64()?,
                fields.u8()?,
                [fields.u64()?, fields.u64()?],
                fields.bytes()?,
            ))
        };
        let (mark, store_id, code, key, name) = head().ok_or_else(damaged)?;
        if mark != PROPERTIES_MARK || name.is_empty() {
            return Err(damaged());
        }
        if is_newer_code(code) {
            return Err(newer(format!("hash code {code}")));
        }
        let hasher = KeyHasher::from_code(code, key).ok_or_else(damaged)?;
        let compression = Compression::from_name(name)
            .ok_or_else(|| newer(format!("compression \"{}\"", name.escape_ascii())))?;
        let symbols = match compression {
            Compression::Fsst => fields.bytes().ok_or_else(damaged)?,
            _ => &[],
        };
        let symbols = match symbols {
            [] => None,
            encoded => Some(Arc::new(Symbols::parse(encoded).ok_or_else(damaged)?)),
        };
        let facts = Facts::decode(&mut fields).ok_or_else(damaged)?;
        let mut keyspace = None;
        loop {
            match fields.u8() {
                None => break,
                Some(KEYSPACE) if keyspace.is_none() => {
                    keyspace = Some(KeyspaceName::decode(&mut fields).ok_or_else(damaged)?);
                }
                Some(0 | KEYSPACE) => return Err(damaged()),
                Some(code) => return Err(newer(format!("field {code}"))),
            }
        }
        let store = StoreIdentity { store_id, hasher };
        Ok(Properties { store, compression, symbols, facts, keyspace })
    }
}
