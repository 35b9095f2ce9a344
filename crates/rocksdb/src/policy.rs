//! Parity filters as RocksDB's filter policy.

use rocksdb::{BlockBasedOptions, Options};
use sidebloom_rocksdb_plugin::Policy;
use std::ffi::{CStr, c_char};

/// Why RocksDB cannot use the filter policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program has another RocksDB than this crate was built for.
    #[error("{0}")]
    AnotherRocksDb(String),
    /// RocksDB does not accept the options.
    #[error(transparent)]
    Options(#[from] rocksdb::Error),
}

unsafe extern "C" {
    /// In `plugin/sidebloom/register.cc`. Returns null, or text that is never freed.
    safe fn sidebloom_parity_register() -> *const c_char;
}

/// Registers the filter policies `sidebloom.parity:…` in RocksDB, for the whole process. Call it before
/// [`DB::open`](rocksdb::DB::open), [`Options::load_latest`](Options::load_latest) and anything else that
/// reads options with such a policy. Further calls do nothing.
///
/// # Errors
/// [`Error::AnotherRocksDb`] if the program's RocksDB differs in version from the headers that this crate was
/// built with, or in its interface to filters.
pub fn register() -> Result<(), Error> {
    let error = sidebloom_parity_register();
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: text that is never freed.
    let error = unsafe { CStr::from_ptr(error) };
    Err(Error::AnotherRocksDb(error.to_string_lossy().into_owned()))
}

/// New options with this table and this filter policy, and RocksDB's defaults for the rest. Calls
/// [`register`]. Set everything else afterwards, except the table factory, which has the policy.
///
/// ```no_run
/// use rocksdb::{BlockBasedOptions, DB};
///
/// let mut table = BlockBasedOptions::default();
/// table.set_cache_index_and_filter_blocks(true);
/// let mut options = sidebloom_rocksdb::options(&table, "sidebloom.parity:8".parse()?)?;
/// options.create_if_missing(true);
/// let db = DB::open(&options, "songs")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The options are built from a string, which is the only way to give the `rocksdb` crate a filter policy
/// that it does not know. It returns copies, which do not keep alive what other options refer to (a
/// comparator, an `Env`), so this function starts from new options.
///
/// # Errors
/// The errors of [`register`], and [`Error::Options`].
pub fn options(table: &BlockBasedOptions, policy: Policy) -> Result<Options, Error> {
    register()?;
    let mut base = Options::default();
    base.set_block_based_table_factory(table);
    Ok(base.get_options_from_string(format!("block_based_table_factory={{filter_policy={policy}}}"))?)
}
