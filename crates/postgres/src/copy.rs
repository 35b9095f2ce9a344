//! Reads the output of `COPY … TO STDOUT (FORMAT binary)` of one column, row by row.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0", flags u32, length of an extension u32, that extension
//! for each row: 1 i16, length of the field i32 (-1: NULL), the field
//! -1 i16
//! ```
//! All numbers are big-endian (PostgreSQL documentation, COPY, "Binary Format").

use sidebloom::{Error, Result};
use std::io::{self, ErrorKind, Read};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Why reading failed.
pub enum CopyError {
    Stream(io::Error),
    Visit(Error),
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        CopyError::Stream(error)
    }
}

/// Calls `visit` with the field of every row until the end.
pub fn read(
    mut input: impl Read,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> std::result::Result<(), CopyError> {
    let mut head = [0; 11];
    input.read_exact(&mut head)?;
    if head != *SIGNATURE {
        return Err(malformed("the signature is missing").into());
    }
    number::<4>(&mut input)?;
    let extension = u32::from_be_bytes(number(&mut input)?);
    io::copy(&mut (&mut input).take(extension.into()), &mut io::sink())?;
    let mut field = Vec::new();
    loop {
        match i16::from_be_bytes(number(&mut input)?) {
            -1 => break,
            1 => {}
            _ => return Err(malformed("a row does not have exactly one field").into()),
        }
        let length = i32::from_be_bytes(number(&mut input)?);
        if length < -1 {
            return Err(malformed("a field has a negative length").into());
        }
        if let Ok(length) = u64::try_from(length) {
            field.clear();
            // Grows with the bytes received, whatever length was announced.
            if (&mut input).take(length).read_to_end(&mut field)? as u64 != length {
                return Err(malformed("a field is truncated").into());
            }
            visit(&field).map_err(CopyError::Visit)?;
        }
    }
    match input.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(malformed("there are bytes after the end").into()),
    }
}

fn number<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("invalid COPY output: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rows: &[Option<&[u8]>]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 2, 7, 7]);
        for row in rows {
            bytes.extend_from_slice(&1i16.to_be_bytes());
            bytes.extend_from_slice(&row.map_or(-1, |row| row.len() as i32).to_be_bytes());
            bytes.extend_from_slice(row.unwrap_or_default());
        }
        bytes.extend_from_slice(&(-1i16).to_be_bytes());
        bytes
    }

    fn keys(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        let visit: &mut dyn FnMut(&[u8]) -> Result<()> = &mut |key| {
            keys.push(key.to_vec());
            Ok(())
        };
        read(bytes, visit).ok().map(|()| keys)
    }

    #[test]
    fn every_row_is_visited_and_nulls_are_skipped() {
        let bytes = stream(&[Some(b"Zombie"), None, Some(b""), Some(&[0xff])]);
        assert_eq!(keys(&bytes).unwrap(), [&b"Zombie"[..], b"", &[0xff]]);
        assert_eq!(keys(&stream(&[])).unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_truncated_or_overlong_stream_is_an_error() {
        let bytes = stream(&[Some(b"Zombie"), Some(b"x")]);
        assert!((0..bytes.len()).all(|cut| keys(&bytes[..cut]).is_none()));
        assert!(keys(&[&bytes[..], b"?"].concat()).is_none());
    }
}
