//! Numbers as keys.

/// The bytes of a key.
pub type IntegerKey = [u8; 8];

/// The key of a number of any width, in native byte order.
pub fn widened(bytes: &[u8], is_signed: bool) -> IntegerKey {
    let is_negative = is_signed && bytes.last().is_some_and(|high| high & 0x80 != 0);
    let mut key = [if is_negative { 0xff } else { 0 }; 8];
    key.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    key
}

// `widened` takes the last byte for the highest.
const _: () = assert!(cfg!(target_endian = "little"), "sidebloom for Python is for little-endian machines");
