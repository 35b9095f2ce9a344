//! Hex digits, for `--hex` and for bytes that JSON text cannot hold.

use crate::context::Failure;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble & 15)).copied();
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(*b)]).flatten().collect()
}

/// Reads digits in either case. The error says what is wrong.
pub fn decode(digits: &[u8]) -> Result<Vec<u8>, String> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(format!("{} hex digits: the number must be even", digits.len()));
    }
    let pair = |(i, [high, low]): (usize, &[u8; 2])| {
        byte(*high, *low).ok_or_else(|| format!("not a hex digit near character {}", 2 * i + 1))
    };
    pairs.iter().enumerate().map(pair).collect()
}

/// The byte for two digits.
pub fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// A key or value given on the command line: literal bytes, or hex digits with `--hex`.
pub fn argument(name: &str, text: &OsStr, hex: bool) -> Result<Vec<u8>, Failure> {
    if !hex {
        return Ok(text.as_bytes().to_vec());
    }
    decode(text.as_bytes())
        .map_err(|why| Failure::message(format!("{name} {}: {why}", text.as_bytes().escape_ascii())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_gives_back_the_bytes(bytes: Vec<u8>) {
            let digits = encode(&bytes);
            prop_assert_eq!(decode(digits.to_uppercase().as_bytes()).unwrap(), bytes.clone());
            prop_assert_eq!(decode(digits.as_bytes()).unwrap(), bytes);
        }
    }

    #[test]
    fn odd_or_foreign_digits_are_refused() {
        assert!(decode(b"abc").unwrap_err().contains("even"));
        assert!(decode(b"00zz").unwrap_err().contains("character 3"));
        assert!(decode(b"+1").is_err());
    }
}
