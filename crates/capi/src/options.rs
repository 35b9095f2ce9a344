//! The settings with which a store is opened.

use crate::boundary::{run, run_or};
use crate::bytes::{Out, object_mut};
use crate::error::{Code, Error, Failure};
use crate::version;
use sidebloom::{Compression, Durability, FilterPolicy, KeyHash, Residency};

/// The settings of a store. A setting out of range is an error when the store is opened, unless its function
/// says otherwise. One thread at a time may use it. Free it with sb_options_free; open stores do not need it.
pub struct Options(pub(crate) sidebloom::Options);

/// When a write is acknowledged.
#[repr(u32)]
pub enum DurabilityOption {
    /// As the store was opened. For a store to be opened: SB_DURABILITY_OS.
    Default = 0,
    /// Once the operating system has it: it survives the death of the process. sb_sync makes it durable.
    Os = 1,
    /// Once the disk has it: it survives a power failure.
    Sync = 2,
}

/// The durability with this number; `None` for the default.
///
/// # Errors
/// [`Code::InvalidArgument`] for any other number.
pub fn durability(number: u32) -> Result<Option<Durability>, Failure> {
    const DEFAULT: u32 = DurabilityOption::Default as u32;
    const OS: u32 = DurabilityOption::Os as u32;
    const SYNC: u32 = DurabilityOption::Sync as u32;
    match number {
        DEFAULT => Ok(None),
        OS => Ok(Some(Durability::Os)),
        SYNC => Ok(Some(Durability::Sync)),
        other => Err(Error::invalid(format!("durability {other}: see sb_durability"))),
    }
}

/// How the data of new segments is compressed.
#[repr(u32)]
pub enum CompressionOption {
    /// Chosen for each segment by its first values.
    Auto = 0,
    /// Uncompressed: found keys are fastest.
    None = 1,
    /// LZ4.
    Lz4 = 2,
    /// Zstandard, if the library was built with it; otherwise opening fails with SB_FEATURE_MISSING.
    Zstd = 3,
    /// FSST: each value by itself, with the segment's table of frequent strings.
    Fsst = 4,
}

fn compression(number: u32) -> Result<Compression, Failure> {
    const AUTO: u32 = CompressionOption::Auto as u32;
    const NONE: u32 = CompressionOption::None as u32;
    const LZ4: u32 = CompressionOption::Lz4 as u32;
    const ZSTD: u32 = CompressionOption::Zstd as u32;
    const FSST: u32 = CompressionOption::Fsst as u32;
    match number {
        AUTO => Ok(Compression::Auto),
        NONE => Ok(Compression::None),
        LZ4 => Ok(Compression::Lz4),
        ZSTD => Ok(Compression::Zstd),
        FSST => Ok(Compression::Fsst),
        other => Err(Error::invalid(format!("compression {other}: see sb_compression"))),
    }
}

/// Changes the settings.
///
/// # Safety
/// `error` is null or points to memory for a pointer.
unsafe fn change(
    options: Option<&mut Options>,
    error: *mut *mut Error,
    change: impl FnOnce(sidebloom::Options) -> Result<sidebloom::Options, Failure>,
) -> Code {
    let body = || {
        let options = object_mut(options, "options")?;
        options.0 = change(options.0.clone())?;
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) }
}

/// Makes the default settings. Pass SB_INTERFACE.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_new(
    interface: u32,
    options: *mut *mut Options,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(options, "options")?;
            version::check(interface)?;
            out.give(Options(sidebloom::Options::new()));
            Ok(())
        })
    }
}

/// Frees settings. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn sb_options_free(options: Option<Box<Options>>) {
    run_or((), || drop(options));
}

/// Whether to create a missing store. Default true.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_create_if_missing(
    options: Option<&mut Options>,
    create: bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.create_if_missing(create))) }
}

/// Whether to open the store without changing a byte. Any number of read-only opens can share a store.
/// Default false.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_read_only(
    options: Option<&mut Options>,
    read_only: bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.read_only(read_only))) }
}

/// Whether to open the store read-only and follow the process that writes it, within some 10 ms or at once
/// with sb_catch_up. Default false.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_follow(
    options: Option<&mut Options>,
    follow: bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.follow(follow))) }
}

/// When writes are acknowledged: an sb_durability. Any other number is an error at once.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_durability(
    options: Option<&mut Options>,
    durability: u32,
    error: *mut *mut Error,
) -> Code {
    let set = |options: sidebloom::Options| {
        Ok(options.durability(self::durability(durability)?.unwrap_or_default()))
    };
    // SAFETY: the caller's promise.
    unsafe { change(options, error, set) }
}

/// How new segments are compressed: an sb_compression. Any other number is an error at once.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_compression(
    options: Option<&mut Options>,
    compression: u32,
    error: *mut *mut Error,
) -> Code {
    let set = |options: sidebloom::Options| Ok(options.compression(self::compression(compression)?));
    // SAFETY: the caller's promise.
    unsafe { change(options, error, set) }
}

/// Size of the cache of decompressed blocks, in bytes. Default 256 MiB; 0 turns it off.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_block_cache_bytes(
    options: Option<&mut Options>,
    bytes: u64,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.block_cache_bytes(bytes))) }
}

/// Size at which a memtable is flushed, in bytes. Default 64 MiB; from 4 KiB to 256 GiB. Up to three exist.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_memtable_bytes(
    options: Option<&mut Options>,
    bytes: u64,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.memtable_bytes(bytes))) }
}

/// Size at which compaction starts a new segment, in bytes. Default 64 MiB; at least 4 KiB.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_segment_bytes(
    options: Option<&mut Options>,
    bytes: u64,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.segment_bytes(bytes))) }
}

/// Filter bits per key, on average over the store: 2 to 64, or 0 for no filters. Default 10.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_filter_bits_per_key(
    options: Option<&mut Options>,
    bits: f64,
    error: *mut *mut Error,
) -> Code {
    let policy = if bits == 0.0 { FilterPolicy::OFF } else { FilterPolicy::bits_per_key(bits) };
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.filter_policy(policy))) }
}

/// Instead of bits per key: the share of lookups of missing keys that may read a block for nothing, above 0
/// and below 1. The store takes the least memory that achieves it.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_filter_rate(
    options: Option<&mut Options>,
    rate: f64,
    error: *mut *mut Error,
) -> Code {
    let policy = FilterPolicy::target_fpr(rate);
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.filter_policy(policy))) }
}

/// Whether a new store hashes its keys with a secret key, so that whoever chooses keys cannot force useless
/// block reads. Default false. An existing store keeps its hash.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_secret_hash(
    options: Option<&mut Options>,
    secret: bool,
    error: *mut *mut Error,
) -> Code {
    let hash = if secret { KeyHash::SipHash13 } else { KeyHash::Xxh3 };
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.key_hash(hash))) }
}

/// Whether filters are kept in the process's own memory, and segments are read instead of mapped. Then a file
/// that another program truncates is an error. Otherwise touching it is a SIGBUS, as with every mapped file;
/// see sb_catch_sigbus. Default false.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_pinned(
    options: Option<&mut Options>,
    pinned: bool,
    error: *mut *mut Error,
) -> Code {
    let residency = if pinned { Residency::Pinned } else { Residency::Mapped };
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.residency(residency))) }
}

/// Number of threads for flushing and compaction: 2 to 64. Default 2.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_background_threads(
    options: Option<&mut Options>,
    threads: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.background_threads(threads))) }
}

/// Maximum number of segment files that stay open between reads: at least 8. Default 512.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_max_open_files(
    options: Option<&mut Options>,
    files: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.max_open_files(files))) }
}

/// The permission bits of all files that the store creates: 0640, say. The owner needs 0600. Default: those
/// that the store has.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_options_set_mode(
    options: Option<&mut Options>,
    mode: u32,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe { change(options, error, |options| Ok(options.mode(mode))) }
}
