//! Making filters and changing them.

use crate::boundary::run;
use crate::bytes::{Out, Slice, bytes, object_mut, slices};
use crate::error::{Code, Error, Failure};
use crate::filter::Filter;
use crate::version;
use sidebloom::KeyHasher;
use sidebloom::filter::{AnyFilter, Bloom, CountingBloom, LineFilter, ScalableBloom};
use std::ffi::c_void;

/// The kinds of filters that can be built.
#[repr(u32)]
pub enum FilterKind {
    /// The smallest, and one cache line per question. Takes no more keys once it is built.
    Parity = 1,
    /// One cache line per question. Takes more keys.
    Blocked = 2,
    /// The classic one. Takes more keys, and can be combined with others.
    Bloom = 3,
    /// Takes more keys, and keys can be removed. Four times as large as a Bloom filter.
    Counting = 4,
    /// Grows with the number of keys.
    Scalable = 5,
}

const PARITY: u32 = FilterKind::Parity as u32;
const BLOCKED: u32 = FilterKind::Blocked as u32;
const BLOOM: u32 = FilterKind::Bloom as u32;
const COUNTING: u32 = FilterKind::Counting as u32;
const SCALABLE: u32 = FilterKind::Scalable as u32;

/// The seed of line filters.
const SEED: u64 = 0;

fn empty(kind: u32, capacity: u64, rate: f64) -> Result<AnyFilter, Failure> {
    match kind {
        PARITY => Err(Error::invalid(
            "a parity filter takes no more keys once it is built: give all of them to sb_filter_build",
        )),
        BLOCKED => Ok(AnyFilter::Lines(LineFilter::empty_blocked_at(rate, capacity, SEED)?)),
        BLOOM => Ok(AnyFilter::Bloom(Bloom::new(capacity, rate)?)),
        COUNTING => Ok(AnyFilter::Counting(CountingBloom::new(capacity, rate)?)),
        SCALABLE => Ok(AnyFilter::Scalable(ScalableBloom::new(capacity, rate)?)),
        other => Err(Error::invalid(format!("filter kind {other}: see sb_filter_kind"))),
    }
}

fn check(rate: f64, capacity: u64) -> Result<(), Failure> {
    if !(rate > 0.0 && rate < 1.0) {
        return Err(Error::invalid(format!("a rate of {rate}: it must be above 0 and below 1")));
    }
    if capacity == 0 {
        return Err(Error::invalid("a capacity of 0: a filter needs room for at least 1 key"));
    }
    Ok(())
}

/// Makes an empty filter of an sb_filter_kind, for this many keys at this rate of "maybe"s for absent keys,
/// above 0 and below 1. For a scalable one, `capacity` is that of the first of its filters. Pass
/// SB_INTERFACE.
///
/// SB_INVALID_ARGUMENT for a parity filter, which sb_filter_build makes of all keys; SB_TOO_LARGE;
/// SB_OUT_OF_MEMORY.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_new(
    interface: u32,
    kind: u32,
    capacity: u64,
    rate: f64,
    filter: *mut *mut Filter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(filter, "filter")?;
            version::check(interface)?;
            check(rate, capacity)?;
            out.give(Filter::Held(empty(kind, capacity, rate)?));
            Ok(())
        })
    }
}

/// Builds a filter of an sb_filter_kind from all keys, at this rate of "maybe"s for absent keys, above 0 and
/// below 1. Pass SB_INTERFACE.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_build(
    interface: u32,
    kind: u32,
    keys: *const Slice,
    count: usize,
    rate: f64,
    filter: *mut *mut Filter,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(filter, "filter")?;
            version::check(interface)?;
            let keys = slices(keys, count, usize::MAX, "keys")?;
            let capacity = (count as u64).max(1);
            check(rate, capacity)?;
            out.give(Filter::Held(if kind == PARITY {
                let hasher = KeyHasher::from(SEED);
                let hashes: Vec<u64> = keys.iter().map(|key| hasher.hash(key)).collect();
                AnyFilter::Lines(LineFilter::parity_at(rate, &hashes, hasher)?)
            } else {
                let mut filter = empty(kind, capacity, rate)?;
                filter.insert_many(&keys)?;
                filter
            }));
            Ok(())
        })
    }
}

/// Adds a key. `added`, which may be NULL, is set to whether the filter answered "absent" before.
///
/// SB_FILTER_FULL beyond the capacity; SB_INVALID_ARGUMENT for a kind that takes no more keys, and for a
/// mapped filter.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_insert(
    filter: Option<&mut Filter>,
    key: *const c_void,
    key_length: usize,
    added: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::optional(added, false, "added")?;
            let key = bytes(key, key_length, "key")?;
            let added = object_mut(filter, "filter")?.held()?.insert(key)?;
            out.into_iter().for_each(|out| out.set(added));
            Ok(())
        })
    }
}

/// Adds `count` keys, faster than one by one. On an error, some of them may have been added.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_insert_many(
    filter: Option<&mut Filter>,
    keys: *const Slice,
    count: usize,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let keys = slices(keys, count, usize::MAX, "keys")?;
            Ok(object_mut(filter, "filter")?.held()?.insert_many(&keys)?)
        })
    }
}

/// Removes a key from a counting filter, once. `removed`, which may be NULL, is set to whether the filter
/// answered "maybe" before. Remove only keys that were added: removing another one can make the filter deny
/// keys that it has.
///
/// SB_INVALID_ARGUMENT for any other kind.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_filter_remove(
    filter: Option<&mut Filter>,
    key: *const c_void,
    key_length: usize,
    removed: *mut bool,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::optional(removed, false, "removed")?;
            let key = bytes(key, key_length, "key")?;
            let removed = object_mut(filter, "filter")?.held()?.remove(key)?;
            out.into_iter().for_each(|out| out.set(removed));
            Ok(())
        })
    }
}
