//! No writer writes what no reader accepts.

use super::canonical::Canonical;
use super::format::{HashWidth, Settings};
use crate::error::Error;
use crate::options::FilterPolicy;
use std::path::Path;

#[test]
fn i6_settings_that_no_reader_takes_are_not_written() {
    let numbers = [0.0, -1.0, 0.01, 10.0, 60.0, 1e300, f64::INFINITY, f64::NAN];
    let policies = numbers
        .into_iter()
        .flat_map(|n| [FilterPolicy::bits_per_key, FilterPolicy::target_fpr].map(|policy| policy(n)))
        .chain([0, u64::MAX].map(FilterPolicy::memory_budget));
    let sample = Settings::new(HashWidth::Bits128, Canonical::default(), FilterPolicy::OFF).unwrap();
    let of = |(policy, generation)| Settings { policy, generation, ..sample };
    let settings = policies.flat_map(|policy| [0, 1, u64::MAX].map(|n| (policy, n))).map(of);
    let (written, refused): (Vec<_>, Vec<_>) =
        settings.map(|of| (of, of.encode())).partition(|(_, encoded)| encoded.is_ok());
    for (settings, bytes) in &written {
        assert_eq!(Settings::decode(Path::new("GUARD"), bytes.as_ref().unwrap()).unwrap(), *settings);
    }
    assert!(refused.iter().all(|(_, e)| matches!(e, Err(Error::Unencodable { .. }))));
    assert!(written.len() > 5 && refused.len() > 10);
}

#[test]
fn i6_codes_of_a_newer_version_in_settings_are_named_and_are_no_damage() {
    let settings = Settings::new(HashWidth::Bits128, Canonical::default(), FilterPolicy::OFF).unwrap();
    let whole = settings.encode().unwrap();
    let with = |at: usize, code: u8| {
        let mut bytes = whole.clone();
        bytes[at] = code;
        let crc = crate::codec::crc32(&[&bytes[..48]]);
        bytes[48..].copy_from_slice(&crc.to_le_bytes());
        Settings::decode(Path::new("GUARD"), &bytes).unwrap_err()
    };
    for (at, code, what) in
        [(13, 33, "canonical form 33"), (14, 5, "filter policy 5"), (15, 5, "hash code 5")]
    {
        let error = with(at, code);
        let text = format!(
            "GUARD has {what} at offset {at}, which this version does not know: it was written by a newer version of sidebloom"
        );
        assert!(error.to_string().starts_with(&text), "{error}");
        assert!(matches!(error, Error::UnknownCode { .. }));
    }
    for (at, code) in [(12, 9), (13, 12), (15, 1)] {
        assert!(matches!(with(at, code), Error::Corruption { .. }), "byte {at} is {code}");
    }
}
