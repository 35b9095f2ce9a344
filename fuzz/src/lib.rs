//! Shared by the fuzz targets.
//!
//! Checksums protect almost every byte of a store, so plain fuzzing would test little but checksums. The
//! targets of the file formats therefore run twice: on the bytes as they are, and on the same bytes with
//! corrected checksums ([`repair`]), which a faulty writer or an attacker could produce. Answers may then be
//! wrong, but nothing panics, no allocation is larger than the file justifies (run with `-malloc_limit_mb`),
//! and all ways of reading agree if `verify` finds no problem.

pub mod bucket;
pub mod directory;
pub mod memory;
pub mod repair;
pub mod segment;

/// The simulated file system of the integration tests: files in memory, and crashes.
#[path = "../../tests/support"]
pub mod disk {
    #![allow(dead_code, unused_imports, reason = "the tests use all of it")]
    mod crash;
    #[allow(clippy::module_inception, reason = "the name of the tests' file")]
    mod disk;
    mod fault_hits;
    mod faults;
    mod holes;
    mod rng;
    mod sim_dir;
    mod sim_file;
    mod sim_fs;
    mod sim_locks;
    mod watch;

    pub use crash::Crash;
    pub use sim_fs::SimFs;
}

use sidebloom::Error;

/// Checks that an error is one for damage, which names the file. Any other is a bug in the parser.
pub fn assert_named(error: &Error) {
    let named = matches!(
        error,
        Error::Corruption { .. } | Error::UnsupportedVersion { .. } | Error::UnknownCode { .. }
    );
    // A block compressed with zstd, in a build without it.
    let lacks_zstd = matches!(error, Error::FeatureMissing { feature: "zstd", .. });
    assert!(named || lacks_zstd, "{error}");
}

/// The value, or `None` after an error for damage. Panics on any other error.
pub fn named<T>(result: sidebloom::Result<T>) -> Option<T> {
    result.inspect_err(assert_named).ok()
}
