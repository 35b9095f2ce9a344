//! Generations that nobody has published.

/// A generation's object with other contents and a valid checksum.
pub fn forged(bytes: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut body: serde_json::Value = serde_json::from_slice(&bytes[at..]).unwrap();
    change(&mut body);
    let body = serde_json::to_vec(&body).unwrap();
    let crc = sidebloom::filter::codec::crc32(&[&body]);
    [format!("sidebloom generation 2 {} {crc:08x}\n", body.len()).into_bytes(), body].concat()
}
