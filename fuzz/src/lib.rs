//! What the fuzz targets share.
//!
//! A checksum guards almost every byte of a store, so that a fuzzer which changes bytes would look at little but checksums. The
//! targets of the file formats therefore ask twice: about the bytes as they are, and about the same bytes under right checksums
//! ([`repair`]), which is what a broken writer or an attacker could leave. Answers may be anything then, but two ways of reading agree
//! when `verify` finds nothing, nothing panics, and no allocation is larger than the file justifies (run with `-malloc_limit_mb`).

pub mod repair;
pub mod segment;

/// The simulated file system of the integration tests: files in memory, and crashes.
#[path = "../../tests/support"]
pub mod disk {
    #![allow(dead_code, reason = "the tests use all of it")]
    mod crash;
    #[allow(clippy::module_inception, reason = "the name of the tests' file")]
    mod disk;
    mod faults;
    mod rng;
    mod sim_fs;

    pub use crash::Crash;
    pub use sim_fs::SimFs;
}

use sidebloom::Error;

/// Damage has its own errors, which name the file; anything else would be the parser's fault.
pub fn assert_named(error: &Error) {
    let named = matches!(error, Error::Corruption { .. } | Error::UnsupportedVersion { .. });
    // A block that says zstd, in a build without it.
    let lacks_zstd = matches!(error, Error::FeatureMissing { feature: "zstd", .. });
    assert!(named || lacks_zstd, "{error}");
}

/// Ends the program for an error that is not the damage's.
pub fn named<T>(result: sidebloom::Result<T>) -> Option<T> {
    result.inspect_err(assert_named).ok()
}
