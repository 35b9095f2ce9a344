//! Block compression.

use super::format::{Compression, DATA_BYTES_MAX, LZ4_MAX_RATIO, Location};
use super::payload::Payload;
use crate::codec::{Decoder, Encode};
use crate::error::{Error, Result};

/// Compresses the blocks of one segment, one at a time.
pub struct Compressor {
    packed: Vec<u8>,
    method: Method,
}

enum Method {
    None,
    Lz4(Box<lz4_flex::block::CompressTable>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// For one segment. [`Error::FeatureMissing`] when this build lacks the method.
    pub fn new(compression: Compression) -> Result<Self> {
        let method = match compression {
            Compression::None => Method::None,
            Compression::Lz4 => Method::Lz4(Box::new(lz4_flex::block::CompressTable::large())),
            #[cfg(feature = "zstd")]
            Compression::Zstd => Method::Zstd(
                zstd::bulk::Compressor::new(3).map_err(|e| Error::Internal(format!("zstd: {e}")))?,
            ),
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => return Err(lacks_zstd("Compression::Zstd".to_owned())),
        };
        Ok(Compressor { packed: Vec::new(), method })
    }

    /// Replaces the bytes of `out` from `start` on with their compressed form if that saves at least an
    /// eighth. Returns the form used.
    pub fn pack(&mut self, out: &mut Vec<u8>, start: usize) -> Compression {
        let Compressor { packed, method } = self;
        let raw = &out[start..];
        let room = raw.len() - raw.len().div_ceil(8);
        packed.clear();
        packed.put_u32(raw.len() as u32);
        let kind = match method {
            Method::None => return Compression::None,
            Method::Lz4(table) => {
                packed.resize(4 + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                match lz4_flex::block::compress_into_with_table(raw, &mut packed[4..], table) {
                    Ok(len) => packed.truncate(4 + len),
                    Err(_) => return Compression::None,
                }
                Compression::Lz4
            }
            #[cfg(feature = "zstd")]
            Method::Zstd(compressor) => {
                packed.resize(4 + zstd::zstd_safe::compress_bound(raw.len()), 0);
                match compressor.compress_to_buffer(raw, &mut packed[4..]) {
                    Ok(len) => packed.truncate(4 + len),
                    Err(_) => return Compression::None,
                }
                Compression::Zstd
            }
        };
        if packed.len() > room {
            return Compression::None;
        }
        out.truncate(start);
        out.extend_from_slice(packed);
        kind
    }
}

/// Decompresses the payload of a data block whose crc has been checked.
pub fn unpack(location: Location<'_>, kind: Compression, payload: &[u8]) -> Result<Payload> {
    if kind == Compression::None {
        return Ok(payload.into());
    }
    let mut fields = Decoder::new(payload);
    let len = fields.u32().ok_or_else(|| location.damaged("the compressed block lacks its length"))? as usize;
    let packed = fields.take(fields.remaining()).unwrap_or_default();
    let bound = match kind {
        Compression::Lz4 => packed.len().saturating_mul(LZ4_MAX_RATIO).min(DATA_BYTES_MAX),
        Compression::None | Compression::Zstd => DATA_BYTES_MAX,
    };
    if len > bound {
        return Err(location.damaged(format!(
            "a compressed block of {} bytes claims to expand to {len} bytes",
            packed.len()
        )));
    }
    Payload::filled(len, |raw| {
        let written = match kind {
            Compression::None => None,
            Compression::Lz4 => lz4_flex::block::decompress_into(packed, raw).ok(),
            Compression::Zstd => unzstd(location, packed, raw)?,
        };
        if written == Some(len) {
            Ok(())
        } else {
            Err(location.damaged(format!("the {} data does not decompress", kind.name())))
        }
    })
}

#[cfg(feature = "zstd")]
fn unzstd(_: Location<'_>, packed: &[u8], raw: &mut [u8]) -> Result<Option<usize>> {
    Ok(zstd::bulk::decompress_to_buffer(packed, raw).ok())
}

#[cfg(not(feature = "zstd"))]
fn unzstd(location: Location<'_>, _: &[u8], _: &mut [u8]) -> Result<Option<usize>> {
    Err(lacks_zstd(format!("the zstd compression of {}", location.path.display())))
}

#[cfg(not(feature = "zstd"))]
fn lacks_zstd(what: String) -> Error {
    Error::FeatureMissing { what, feature: "zstd" }
}
