/*
 * sidebloom.h: the C interface of sidebloom, an embedded key-value store, filters and guards.
 *
 * Errors. A function that can fail returns an sb_code, SB_OK or what went wrong, and takes an sb_error ** as
 * its last parameter. It sets that to an error object, or to NULL on success. Free the object with
 * sb_error_free before you use the place again. Pass NULL if the code is enough. No function throws, unwinds,
 * exits or aborts, except if the system has no memory left; sb_catch_sigbus is about the signals of mapped
 * files. On an error, results are set to NULL, 0 or false, unless the function says otherwise.
 *
 * Objects. Functions make them through a pointer to a pointer, and each type has one function that frees its
 * objects; NULL is fine there. Everywhere else, NULL for an object, a place for a result, or bytes with a
 * length is SB_INVALID_ARGUMENT. Functions that only return a property say what they return for NULL. After
 * sb_close and sb_guard_close, each use of a handle is SB_CLOSED, until it is freed. An object that was freed
 * must not be used, and no function can detect it.
 *
 * Bytes. Keys and values are any bytes, by pointer and length. NULL with length 0 is the empty string. A
 * length above PTRDIFF_MAX, such as a negative number, is SB_INVALID_ARGUMENT. Paths and names are text that
 * ends in NUL; names are UTF-8.
 *
 * Threads. Any number of threads may use an sb_db, sb_snapshot, sb_guard or sb_value at the same time, and
 * ask an sb_filter while none changes it. One thread at a time may use an sb_batch, sb_iterator, sb_options
 * or sb_error.
 *
 * Forks. A store and a guard belong to the process that opened them. In a forked process, reads may see the
 * store as of the fork, guards answer "maybe", and everything else returns SB_FORKED. Free the handles there,
 * and open the store again once the parent has closed it, or as a follower.
 *
 * Versions. Functions that open or make things take SB_INTERFACE. If the program was compiled with the header
 * of another interface than the library's, they return SB_INTERFACE_MISMATCH.
 */

#ifndef SIDEBLOOM_H
#define SIDEBLOOM_H

/* Generated from crates/capi/src. Do not edit it: see crates/capi/README.md. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version of this header's functions. It changes when programs must be compiled again, and so does the
// name of the shared library. Pass it to the functions that ask for it.
#define SB_INTERFACE 1

// What a call returns. The numbers never change; later versions may add some.
enum sb_code
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The call did what it says. A key that does not exist is no error.
    SB_OK = 0,
    // A null pointer, an impossible length, or a value out of range. The message says which.
    SB_INVALID_ARGUMENT = 1,
    // The program was compiled with the header of another interface.
    SB_INTERFACE_MISMATCH = 2,
    // The handle was closed, or its store is closing.
    SB_CLOSED = 3,
    // The store or the guard was opened before this process was forked, and belongs to the parent.
    SB_FORKED = 4,
    // The operating system refused an operation on a file.
    SB_IO = 5,
    // The store or the guard is already open for writing, in this or another process.
    SB_LOCKED = 6,
    // The lock file of an open store was removed or replaced, so another process may be writing it.
    SB_LOCK_LOST = 7,
    // A checksum or a structural check of a file failed. Nothing wrong was returned.
    SB_CORRUPTION = 8,
    // The file is of a version that this library does not read. It is not damaged.
    SB_OTHER_VERSION = 9,
    // This build of the library lacks an optional feature.
    SB_FEATURE_MISSING = 10,
    // The path is not a store, or there is none and it may not be created.
    SB_NOT_A_STORE = 11,
    // The path is not a guard, or the guard does not match the request.
    SB_NOT_A_GUARD = 12,
    // The target of a copy already exists.
    SB_ALREADY_EXISTS = 13,
    // A write to what was opened read-only.
    SB_READ_ONLY = 14,
    // The store is read-only after a failed write or sync. Fix the cause and reopen it.
    SB_POISONED = 15,
    // A key, a value, a batch or a filter is larger than it may be.
    SB_TOO_LARGE = 16,
    // A key does not have the value that a batch expects. Nothing was written.
    SB_CONFLICT = 17,
    // The store has no keyspace of this name.
    SB_UNKNOWN_KEYSPACE = 18,
    // The store already has a keyspace of this name.
    SB_KEYSPACE_EXISTS = 19,
    // The keyspace of this handle was dropped.
    SB_KEYSPACE_DROPPED = 20,
    // The keyspace is one of another store.
    SB_FOREIGN_KEYSPACE = 21,
    // The filter holds as many keys as its false-positive rate allows.
    SB_FILTER_FULL = 22,
    // Filters of different sizes or hashes cannot be combined.
    SB_FILTER_MISMATCH = 23,
    // The memory for a filter could not be allocated.
    SB_OUT_OF_MEMORY = 24,
    // The store has used all sequence numbers.
    SB_NUMBERS_EXHAUSTED = 25,
    // A bug in the library. Please report it.
    SB_INTERNAL = 26,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sb_code sb_code;
#else
typedef int32_t sb_code;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// When a write is acknowledged.
enum sb_durability
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // As the store was opened. For a store to be opened: SB_DURABILITY_OS.
    SB_DURABILITY_DEFAULT = 0,
    // Once the operating system has it: it survives the death of the process. sb_sync makes it durable.
    SB_DURABILITY_OS = 1,
    // Once the disk has it: it survives a power failure.
    SB_DURABILITY_SYNC = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sb_durability sb_durability;
#else
typedef uint32_t sb_durability;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How the data of new segments is compressed.
enum sb_compression
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Chosen for each segment by its first values.
    SB_COMPRESSION_AUTO = 0,
    // Uncompressed: found keys are fastest.
    SB_COMPRESSION_NONE = 1,
    // LZ4.
    SB_COMPRESSION_LZ4 = 2,
    // Zstandard, if the library was built with it; otherwise opening fails with SB_FEATURE_MISSING.
    SB_COMPRESSION_ZSTD = 3,
    // FSST: each value by itself, with the segment's table of frequent strings.
    SB_COMPRESSION_FSST = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sb_compression sb_compression;
#else
typedef uint32_t sb_compression;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The kinds of filters that can be built.
enum sb_filter_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The smallest, and one cache line per question. Takes no more keys once it is built.
    SB_FILTER_KIND_PARITY = 1,
    // One cache line per question. Takes more keys.
    SB_FILTER_KIND_BLOCKED = 2,
    // The classic one. Takes more keys, and can be combined with others.
    SB_FILTER_KIND_BLOOM = 3,
    // Takes more keys, and keys can be removed. Four times as large as a Bloom filter.
    SB_FILTER_KIND_COUNTING = 4,
    // Grows with the number of keys.
    SB_FILTER_KIND_SCALABLE = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sb_filter_kind sb_filter_kind;
#else
typedef uint32_t sb_filter_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Writes that are applied atomically, even after a crash. Later ones win. Each names the keyspace that it is
// for, by a handle, which must be open at that moment. One thread at a time may use a batch. Free it with
// sb_batch_free.
typedef struct sb_batch sb_batch;

// A keyspace of an open store: its default one, from sb_open, or another one, from sb_keyspace_open. All
// functions that take an sb_db work on that keyspace, unless they say that they work on the whole store. The
// store stays open until the last of its handles is closed. Any number of threads may use a handle.
typedef struct sb_db sb_db;

// An error: its code, a message for people and, where there is one, the file. Free it with sb_error_free.
typedef struct sb_error sb_error;

// A filter: a set of keys that may answer "maybe" for a key that is not in it, and never "absent" for one
// that is. Any number of threads may ask it at the same time, and only while no thread changes it. Free it
// with sb_filter_free.
typedef struct sb_filter sb_filter;

// A guard in front of a slow database: it knows the key of every row, and answers lookups of missing keys
// from memory. Insert a key before the database commits its row, and remove it after the database has
// committed the deletion. Any number of threads may use it. Close it with sb_guard_close, and free it with
// sb_guard_free.
typedef struct sb_guard sb_guard;

// A position among the rows of one moment, in the order of their keys, at none yet. A function that moves it
// leaves it at a row, or at none: at the end, and after an error. The next move must then be one that names
// a place. It keeps memtables in memory and segments on disk, so free it soon, with sb_iterator_free. It may
// outlive its handle, snapshot and store. One thread at a time may use it.
typedef struct sb_iterator sb_iterator;

// The names of keyspaces, in order. Free it with sb_names_free.
typedef struct sb_names sb_names;

// The settings of a store. A setting out of range is an error when the store is opened, unless its function
// says otherwise. One thread at a time may use it. Free it with sb_options_free; open stores do not need it.
typedef struct sb_options sb_options;

// A keyspace as of one moment. Later writes do not change what it reads. It keeps memtables in memory and
// segments on disk, so free it soon, with sb_snapshot_free. Any number of threads may use it.
typedef struct sb_snapshot sb_snapshot;

// A value of a store, or text that a function returns. It shares the memory of what it was read from, and
// may outlive the store. Free it with sb_value_free.
typedef struct sb_value sb_value;

// Bytes of somebody else: a key, or what a function returns. `data` may be NULL if `length` is 0.
typedef struct {
    // The first byte.
    const void *data;
    // How many there are.
    size_t length;
} sb_slice;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The SB_INTERFACE of the library that the program runs with.
uint32_t sb_interface(void);

// The version of the library: "0.1.0". Do not free it.
const char *sb_version(void);

// The code of an error; SB_OK for NULL.
sb_code sb_error_code(const sb_error *error);

// The message, for people; "" for NULL. It lives as long as the error.
const char *sb_error_message(const sb_error *error);

// The file or directory of the error, or NULL. It lives as long as the error.
const char *sb_error_path(const sb_error *error);

// Whether the error names a place in the file. If so, `offset` is set to it, in bytes from the start of the
// file. `offset` may be NULL.
bool sb_error_offset(const sb_error *error, uint64_t *offset);

// The `errno` of the operating system, for SB_IO; otherwise 0.
int32_t sb_error_os(const sb_error *error);

// The name of a code: "SB_LOCKED". "SB_UNKNOWN" for a number that is no code. Do not free it.
const char *sb_code_name(int32_t code);

// Frees an error. NULL is fine.
void sb_error_free(sb_error *error);

// The bytes. They live as long as the value, and do not end in NUL. For NULL, an empty slice whose `data` is
// NULL.
sb_slice sb_value_bytes(const sb_value *value);

// Frees a value. NULL is fine.
void sb_value_free(sb_value *value);

// Makes the default settings. Pass SB_INTERFACE.
sb_code sb_options_new(uint32_t interface, sb_options **options, sb_error **error);

// Frees settings. NULL is fine.
void sb_options_free(sb_options *options);

// Whether to create a missing store. Default true.
sb_code sb_options_set_create_if_missing(sb_options *options, bool create, sb_error **error);

// Whether to open the store without changing a byte. Any number of read-only opens can share a store.
// Default false.
sb_code sb_options_set_read_only(sb_options *options, bool read_only, sb_error **error);

// Whether to open the store read-only and follow the process that writes it, within some 10 ms or at once
// with sb_catch_up. Default false.
sb_code sb_options_set_follow(sb_options *options, bool follow, sb_error **error);

// When writes are acknowledged: an sb_durability. Any other number is an error at once.
sb_code sb_options_set_durability(sb_options *options, uint32_t durability, sb_error **error);

// How new segments are compressed: an sb_compression. Any other number is an error at once.
sb_code sb_options_set_compression(sb_options *options, uint32_t compression, sb_error **error);

// Size of the cache of decompressed blocks, in bytes. Default 256 MiB; 0 turns it off.
sb_code sb_options_set_block_cache_bytes(sb_options *options, uint64_t bytes, sb_error **error);

// Size at which a memtable is flushed, in bytes. Default 64 MiB; from 4 KiB to 256 GiB. Up to three exist.
sb_code sb_options_set_memtable_bytes(sb_options *options, uint64_t bytes, sb_error **error);

// Size at which compaction starts a new segment, in bytes. Default 64 MiB; at least 4 KiB.
sb_code sb_options_set_segment_bytes(sb_options *options, uint64_t bytes, sb_error **error);

// Filter bits per key, on average over the store: 2 to 64, or 0 for no filters. Default 10.
sb_code sb_options_set_filter_bits_per_key(sb_options *options, double bits, sb_error **error);

// Instead of bits per key: the share of lookups of missing keys that may read a block for nothing, above 0
// and below 1. The store takes the least memory that achieves it.
sb_code sb_options_set_filter_rate(sb_options *options, double rate, sb_error **error);

// Whether a new store hashes its keys with a secret key, so that whoever chooses keys cannot force useless
// block reads. Default false. An existing store keeps its hash.
sb_code sb_options_set_secret_hash(sb_options *options, bool secret, sb_error **error);

// Whether filters are kept in the process's own memory, and segments are read instead of mapped. Then a file
// that another program truncates is an error. Otherwise touching it is a SIGBUS, as with every mapped file;
// see sb_catch_sigbus. Default false.
sb_code sb_options_set_pinned(sb_options *options, bool pinned, sb_error **error);

// Number of threads for flushing and compaction: 2 to 64. Default 2.
sb_code sb_options_set_background_threads(sb_options *options, size_t threads, sb_error **error);

// Maximum number of segment files that stay open between reads: at least 8. Default 512.
sb_code sb_options_set_max_open_files(sb_options *options, size_t files, sb_error **error);

// The permission bits of all files that the store creates: 0640, say. The owner needs 0600. Default: those
// that the store has.
sb_code sb_options_set_mode(sb_options *options, uint32_t mode, sb_error **error);

// Opens the store in the directory `path`, and creates it if it is missing. Pass SB_INTERFACE. `options` may
// be NULL for the defaults. Close `db` with sb_close, and free it with sb_db_free.
//
// SB_NOT_A_STORE if the path is something else; SB_LOCKED while the store is open elsewhere; SB_CORRUPTION
// for a damaged log or manifest; SB_INVALID_ARGUMENT for an option out of range.
sb_code sb_open(uint32_t interface,
                const char *path,
                const sb_options *options,
                sb_db **db,
                sb_error **error);

// Closes a handle, once the calls of other threads that use it have ended. The last handle of a store closes
// the store: then SB_OK says that everything acknowledged is durable. Afterwards, every use of the handle
// returns SB_CLOSED; free it with sb_db_free. Iterators and snapshots may outlive it:
// they read on until the store is opened again and has removed a file that they need, which is SB_IO.
//
// SB_POISONED if an earlier write has failed; SB_FORKED in a forked process, where it closes only that
// process's copy. The handle is closed in any case.
sb_code sb_close(const sb_db *db, sb_error **error);

// Frees a handle, and closes it first if it is open. No other thread may use it any more. NULL is fine.
void sb_db_free(sb_db *db);

// Sets `value` to the value of a key, or to NULL if the key does not exist. Free it with sb_value_free.
sb_code sb_get(const sb_db *db, const void *key, size_t key_length, sb_value **value, sb_error **error);

// Gets `count` keys, all as of one moment, and faster than one by one. Sets `values[i]` to the value of
// `keys[i]`, or to NULL if it does not exist. Free each with sb_value_free. On an error, all are NULL.
sb_code sb_multi_get(const sb_db *db,
                     const sb_slice *keys,
                     size_t count,
                     sb_value **values,
                     sb_error **error);

// Whether a key exists.
sb_code sb_contains(const sb_db *db, const void *key, size_t key_length, bool *found, sb_error **error);

// Asks the memtables and filters alone, which never reads a block: 0 if a key certainly does not exist, 1 if
// it may. `verdicts` is set for each of the `count` keys. On an error, all are 1 or unchanged.
sb_code sb_may_contain(const sb_db *db,
                       const sb_slice *keys,
                       size_t count,
                       uint8_t *verdicts,
                       sb_error **error);

// Sets a key to a value.
//
// SB_TOO_LARGE, SB_READ_ONLY; SB_IO if the log cannot be written: on a full disk, writes fail until there is
// space; after any other failure, they fail with SB_POISONED.
sb_code sb_put(const sb_db *db,
               const void *key,
               size_t key_length,
               const void *value,
               size_t value_length,
               sb_error **error);

// sb_put of a row that expires `milliseconds` after it is written: at least 1. From then on, it is as if
// deleted.
sb_code sb_put_expiring(const sb_db *db,
                        const void *key,
                        size_t key_length,
                        const void *value,
                        size_t value_length,
                        uint64_t milliseconds,
                        sb_error **error);

// Deletes a key. It need not exist.
sb_code sb_delete(const sb_db *db, const void *key, size_t key_length, sb_error **error);

// Deletes every key from `from` on and before `to`, with one operation. NULL is no bound.
sb_code sb_delete_range(const sb_db *db, const sb_slice *from, const sb_slice *to, sb_error **error);

// Puts a key if it does not exist, and sets `inserted` to whether it did not. Of any number of calls at the
// same time with the same key, in any threads, one inserts it.
sb_code sb_insert_new(const sb_db *db,
                      const void *key,
                      size_t key_length,
                      const void *value,
                      size_t value_length,
                      bool *inserted,
                      sb_error **error);

// sb_insert_new of a row that expires `milliseconds` after it is written: at least 1.
sb_code sb_insert_new_expiring(const sb_db *db,
                               const void *key,
                               size_t key_length,
                               const void *value,
                               size_t value_length,
                               uint64_t milliseconds,
                               bool *inserted,
                               sb_error **error);

// sb_insert_new for `count` rows at once: all new rows are written or none. Sets `inserted[i]` to 1 if
// `keys[i]` did not exist, and else to 0; of equal keys, the first counts. `values` may be NULL if all
// values are empty.
sb_code sb_insert_new_many(const sb_db *db,
                           const sb_slice *keys,
                           const sb_slice *values,
                           size_t count,
                           uint8_t *inserted,
                           sb_error **error);

// Makes an empty batch.
sb_code sb_batch_new(sb_batch **batch, sb_error **error);

// Frees a batch. NULL is fine.
void sb_batch_free(sb_batch *batch);

// Adds sb_put.
sb_code sb_batch_put(sb_batch *batch,
                     const sb_db *db,
                     const void *key,
                     size_t key_length,
                     const void *value,
                     size_t value_length,
                     sb_error **error);

// Adds sb_put_expiring. The time counts from when the batch is written.
sb_code sb_batch_put_expiring(sb_batch *batch,
                              const sb_db *db,
                              const void *key,
                              size_t key_length,
                              const void *value,
                              size_t value_length,
                              uint64_t milliseconds,
                              sb_error **error);

// Adds sb_delete.
sb_code sb_batch_delete(sb_batch *batch,
                        const sb_db *db,
                        const void *key,
                        size_t key_length,
                        sb_error **error);

// Adds sb_delete_range. A range that runs backwards is an error when the batch is written.
sb_code sb_batch_delete_range(sb_batch *batch,
                              const sb_db *db,
                              const sb_slice *from,
                              const sb_slice *to,
                              sb_error **error);

// Makes the whole batch depend on a key having this value when it is written. Otherwise nothing is written,
// and sb_write returns SB_CONFLICT.
sb_code sb_batch_expect(sb_batch *batch,
                        const sb_db *db,
                        const void *key,
                        size_t key_length,
                        const void *value,
                        size_t value_length,
                        sb_error **error);

// sb_batch_expect of a key that does not exist.
sb_code sb_batch_expect_absent(sb_batch *batch,
                               const sb_db *db,
                               const void *key,
                               size_t key_length,
                               sb_error **error);

// The number of writes in a batch; 0 for NULL.
size_t sb_batch_count(const sb_batch *batch);

// Removes all writes and expectations, and keeps the memory.
sb_code sb_batch_clear(sb_batch *batch, sb_error **error);

// Writes a batch to the store of `db`, with an sb_durability. The batch stays as it is.
//
// SB_TOO_LARGE for more than 1 GiB; SB_CONFLICT if a key differs from what the batch expects;
// SB_FOREIGN_KEYSPACE and SB_KEYSPACE_DROPPED; the errors of sb_put. On an error, nothing is written.
sb_code sb_write(const sb_db *db, const sb_batch *batch, uint32_t durability, sb_error **error);

// Takes a snapshot.
sb_code sb_snapshot_new(const sb_db *db, sb_snapshot **snapshot, sb_error **error);

// The same moment of the keyspace of `db`, which must be of the same store.
//
// SB_FOREIGN_KEYSPACE.
sb_code sb_snapshot_keyspace(const sb_snapshot *snapshot,
                             const sb_db *db,
                             sb_snapshot **same_moment,
                             sb_error **error);

// sb_get at the moment of the snapshot.
sb_code sb_snapshot_get(const sb_snapshot *snapshot,
                        const void *key,
                        size_t key_length,
                        sb_value **value,
                        sb_error **error);

// sb_contains at the moment of the snapshot.
sb_code sb_snapshot_contains(const sb_snapshot *snapshot,
                             const void *key,
                             size_t key_length,
                             bool *found,
                             sb_error **error);

// Frees a snapshot. NULL is fine.
void sb_snapshot_free(sb_snapshot *snapshot);

// Makes an iterator over the rows as they are now, from the key `from` on and before `to`. NULL is no bound.
sb_code sb_iterator_new(const sb_db *db,
                        const sb_slice *from,
                        const sb_slice *to,
                        sb_iterator **iterator,
                        sb_error **error);

// Makes an iterator over the rows as they are now whose keys start with a prefix.
sb_code sb_iterator_new_prefix(const sb_db *db,
                               const void *prefix,
                               size_t prefix_length,
                               sb_iterator **iterator,
                               sb_error **error);

// Makes an iterator over the rows of a snapshot, from the key `from` on and before `to`. NULL is no bound.
sb_code sb_snapshot_iterator(const sb_snapshot *snapshot,
                             const sb_slice *from,
                             const sb_slice *to,
                             sb_iterator **iterator,
                             sb_error **error);

// Moves to the first row.
sb_code sb_iterator_first(sb_iterator *iterator, sb_error **error);

// Moves to the last row.
sb_code sb_iterator_last(sb_iterator *iterator, sb_error **error);

// Moves to the first row whose key is `key` or greater.
sb_code sb_iterator_seek(sb_iterator *iterator, const void *key, size_t key_length, sb_error **error);

// Moves to the last row whose key is `key` or less.
sb_code sb_iterator_seek_for_prev(sb_iterator *iterator,
                                  const void *key,
                                  size_t key_length,
                                  sb_error **error);

// Moves to the next row. An iterator at no row stays there.
sb_code sb_iterator_next(sb_iterator *iterator, sb_error **error);

// Moves to the previous row. An iterator at no row stays there.
sb_code sb_iterator_prev(sb_iterator *iterator, sb_error **error);

// Whether it is at a row; false for NULL.
bool sb_iterator_valid(const sb_iterator *iterator);

// The error of the last move, again: for a loop that only asks whether the iterator is at a row.
sb_code sb_iterator_check(const sb_iterator *iterator, sb_error **error);

// The key of the row, until the next move. At no row, and for NULL, an empty slice whose `data` is NULL.
sb_slice sb_iterator_key(const sb_iterator *iterator);

// The value of the row, until the next move. At no row, and for NULL, an empty slice whose `data` is NULL.
sb_slice sb_iterator_value(const sb_iterator *iterator);

// Frees an iterator. NULL is fine.
void sb_iterator_free(sb_iterator *iterator);

// Creates a keyspace in the store, and opens it. Its name has 1 to 255 bytes of UTF-8. Its rows expire
// this long after they are written, unless a put says otherwise; 0 means never. Close and free `keyspace`
// like the handle of a store.
//
// SB_KEYSPACE_EXISTS.
sb_code sb_keyspace_create(const sb_db *db,
                           const char *name,
                           uint64_t expire_after_milliseconds,
                           sb_db **keyspace,
                           sb_error **error);

// Opens a keyspace of the store. Close and free `keyspace` like the handle of a store.
//
// SB_UNKNOWN_KEYSPACE.
sb_code sb_keyspace_open(const sb_db *db, const char *name, sb_db **keyspace, sb_error **error);

// Drops a keyspace of the store with all its rows, durably. Its handles then return SB_KEYSPACE_DROPPED.
//
// SB_UNKNOWN_KEYSPACE.
sb_code sb_keyspace_drop(const sb_db *db, const char *name, sb_error **error);

// Lists the store's keyspaces, without the default one.
sb_code sb_keyspace_names(const sb_db *db, sb_names **names, sb_error **error);

// How many names there are; 0 for NULL.
size_t sb_names_count(const sb_names *names);

// A name, from 0 on. It lives as long as `names`, and does not end in NUL. Past the last one and for NULL,
// an empty slice whose `data` is NULL.
sb_slice sb_names_at(const sb_names *names, size_t index);

// Frees names. NULL is fine.
void sb_names_free(sb_names *names);

// Handles SIGBUS in mapped files of stores, for the rest of the process's life: if such a file is truncated
// or its disk fails, reads return errors and filters answer "maybe". Any other SIGBUS goes to the handler
// that the process had before. Call it once, after installing a handler of your own. Truncation within a
// page of memory raises no signal; only sb_options_set_pinned protects against that.
sb_code sb_catch_sigbus(sb_error **error);

// Makes all acknowledged writes of the store durable.
sb_code sb_sync(const sb_db *db, sb_error **error);

// Writes the memtables of the store to segments, and waits until that is done.
sb_code sb_flush(const sb_db *db, sb_error **error);

// Flushes, and merges everything written before this call into one sorted run without tombstones: of the
// whole store for the handle of its default keyspace, otherwise of the segments with keys of the keyspace.
sb_code sb_compact(const sb_db *db, sb_error **error);

// Copies the store to a new directory. Both share the segment files through hard links; on another file
// system, they are copied.
//
// SB_ALREADY_EXISTS if there is something at `path`.
sb_code sb_checkpoint(const sb_db *db, const char *path, sb_error **error);

// In a store that follows another process: makes everything visible that was written before this call.
sb_code sb_catch_up(const sb_db *db, sb_error **error);

// The counters of the store since it was opened, and the state of its levels, as one line of JSON. Free it
// with sb_value_free.
sb_code sb_stats(const sb_db *db, sb_value **json, sb_error **error);

// One counter of the store, by its name in sb_stats: "filter_negatives".
//
// SB_INVALID_ARGUMENT if there is none.
sb_code sb_counter(const sb_db *db, const char *name, uint64_t *count, sb_error **error);

// Frees a filter. NULL is fine.
void sb_filter_free(sb_filter *filter);

// Opens the file of a filter, which sb_filter_save or the command `sidebloom filter` has written, and
// verifies every byte. Pass SB_INTERFACE.
//
// SB_IO; SB_CORRUPTION for a file that is damaged or no filter; SB_OTHER_VERSION.
sb_code sb_filter_open(uint32_t interface, const char *path, sb_filter **filter, sb_error **error);

// Opens the file of a filter without reading it, and maps it: processes share its pages, and questions read
// only what they need, which is verified before its first use. The filter cannot be changed. Counting,
// scalable and small filters are read as a whole. Pass SB_INTERFACE.
//
// The errors of sb_filter_open; questions return SB_CORRUPTION for damage that they meet. As with every
// mapped file, truncating it ends the process, unless sb_catch_sigbus was called.
sb_code sb_filter_map(uint32_t interface, const char *path, sb_filter **filter, sb_error **error);

// Writes a filter to a file, durably. Replaces an existing file, which stays as it is on an error.
sb_code sb_filter_save(const sb_filter *filter, const char *path, sb_error **error);

// Encodes a filter as a message. Free it with sb_value_free.
sb_code sb_filter_encode(const sb_filter *filter, sb_value **message, sb_error **error);

// Decodes a message, which may come from a stranger. Pass SB_INTERFACE, and the most bytes that the filter
// may take in memory.
//
// SB_CORRUPTION for a damaged message; SB_TOO_LARGE; SB_OTHER_VERSION.
sb_code sb_filter_decode(uint32_t interface,
                         const void *message,
                         size_t message_length,
                         uint64_t bytes_max,
                         sb_filter **filter,
                         sb_error **error);

// The filter of all keys of two Bloom filters, which were made for the same number of keys and the same
// rate.
//
// SB_FILTER_MISMATCH.
sb_code sb_filter_union(const sb_filter *a, const sb_filter *b, sb_filter **both, sb_error **error);

// A filter of the keys that two Bloom filters share, which were made for the same number of keys and the
// same rate.
//
// SB_FILTER_MISMATCH.
sb_code sb_filter_intersection(const sb_filter *a, const sb_filter *b, sb_filter **both, sb_error **error);

// The number of keys, as far as the kind can tell; 0 for NULL.
uint64_t sb_filter_keys(const sb_filter *filter);

// The number of keys that it can hold; UINT64_MAX for a scalable one, those that it has for a mapped one, 0
// for NULL.
uint64_t sb_filter_capacity(const sb_filter *filter);

// The share of absent keys for which it answers "maybe", 0 to 1: now, or for a mapped filter when it was
// saved; 1 for NULL.
double sb_filter_rate(const sb_filter *filter);

// Its size in bytes, in memory or in its file; 0 for NULL.
uint64_t sb_filter_bytes(const sb_filter *filter);

// The name of its kind: "parity", "blocked-bloom", "bloom", "counting", "scalable" or "small"; "" for NULL.
// Do not free it.
const char *sb_filter_kind_name(const sb_filter *filter);

// Makes an empty filter of an sb_filter_kind, for this many keys at this rate of "maybe"s for absent keys,
// above 0 and below 1. For a scalable one, `capacity` is that of the first of its filters. Pass
// SB_INTERFACE.
//
// SB_INVALID_ARGUMENT for a parity filter, which sb_filter_build makes of all keys; SB_TOO_LARGE;
// SB_OUT_OF_MEMORY.
sb_code sb_filter_new(uint32_t interface,
                      uint32_t kind,
                      uint64_t capacity,
                      double rate,
                      sb_filter **filter,
                      sb_error **error);

// Builds a filter of an sb_filter_kind from all keys, at this rate of "maybe"s for absent keys, above 0 and
// below 1. Pass SB_INTERFACE.
sb_code sb_filter_build(uint32_t interface,
                        uint32_t kind,
                        const sb_slice *keys,
                        size_t count,
                        double rate,
                        sb_filter **filter,
                        sb_error **error);

// Adds a key. `added`, which may be NULL, is set to whether the filter answered "absent" before.
//
// SB_FILTER_FULL beyond the capacity; SB_INVALID_ARGUMENT for a kind that takes no more keys, and for a
// mapped filter.
sb_code sb_filter_insert(sb_filter *filter,
                         const void *key,
                         size_t key_length,
                         bool *added,
                         sb_error **error);

// Adds `count` keys, faster than one by one. On an error, some of them may have been added.
sb_code sb_filter_insert_many(sb_filter *filter, const sb_slice *keys, size_t count, sb_error **error);

// Removes a key from a counting filter, once. `removed`, which may be NULL, is set to whether the filter
// answered "maybe" before. Remove only keys that were added: removing another one can make the filter deny
// keys that it has.
//
// SB_INVALID_ARGUMENT for any other kind.
sb_code sb_filter_remove(sb_filter *filter,
                         const void *key,
                         size_t key_length,
                         bool *removed,
                         sb_error **error);

// Sets `maybe` to false if a key is certainly not in the filter, and to true if it may be.
sb_code sb_filter_contains(const sb_filter *filter,
                           const void *key,
                           size_t key_length,
                           bool *maybe,
                           sb_error **error);

// Asks for `count` keys, faster than one by one. Sets `verdicts[i]` to 0 if `keys[i]` is certainly not in
// the filter, and to 1 if it may be. On an error, all are 1 or unchanged, or some are answered.
sb_code sb_filter_contains_many(const sb_filter *filter,
                                const sb_slice *keys,
                                size_t count,
                                uint8_t *verdicts,
                                sb_error **error);

// sb_filter_contains_many for `count` keys of `width` bytes each, one after the other in `keys`.
sb_code sb_filter_contains_fixed(const sb_filter *filter,
                                 const void *keys,
                                 size_t width,
                                 size_t count,
                                 uint8_t *verdicts,
                                 sb_error **error);

// sb_filter_contains_many for `count` keys that lie in `data`, key `i` from `offsets[i]` up to
// `offsets[i + 1]`, as in Arrow's Binary and Utf8 arrays. There are `count + 1` offsets.
sb_code sb_filter_contains_offsets(const sb_filter *filter,
                                   const void *data,
                                   size_t data_length,
                                   const int32_t *offsets,
                                   size_t count,
                                   uint8_t *verdicts,
                                   sb_error **error);

// sb_filter_contains_offsets with offsets of 64 bits, as in Arrow's LargeBinary and LargeUtf8 arrays.
sb_code sb_filter_contains_large_offsets(const sb_filter *filter,
                                         const void *data,
                                         size_t data_length,
                                         const int64_t *offsets,
                                         size_t count,
                                         uint8_t *verdicts,
                                         sb_error **error);

// Builds a guard in the directory `path`, which must be missing or empty, from the key of every row. Pass
// SB_INTERFACE.
//
// `equality` says which keys are equal, at least those that the database treats as equal: "exact", or one or
// more of "fold" (letter case), "pad" (trailing spaces), and "integer" or "uuid" (spellings), separated by
// commas. NULL is "exact". `durability` is an sb_durability, whose default here is SB_DURABILITY_SYNC.
//
// SB_NOT_A_GUARD if there is something at `path`; SB_FEATURE_MISSING for "fold" in a build without it.
sb_code sb_guard_build(uint32_t interface,
                       const char *path,
                       const sb_slice *keys,
                       size_t count,
                       const char *equality,
                       uint32_t durability,
                       sb_guard **guard,
                       sb_error **error);

// Opens the guard in the directory `path`. Pass SB_INTERFACE. With `read_only`, not a byte is changed, and
// any number of processes can do so at once. `durability` is as for sb_guard_build.
//
// SB_NOT_A_GUARD; SB_LOCKED while it is open elsewhere; SB_CORRUPTION for damaged settings or logs.
sb_code sb_guard_open(uint32_t interface,
                      const char *path,
                      bool read_only,
                      uint32_t durability,
                      sb_guard **guard,
                      sb_error **error);

// Makes all changes durable, and closes the guard, once the calls of other threads that use it have ended.
// Afterwards, every use of it returns SB_CLOSED; free it with sb_guard_free. It is closed in any case.
sb_code sb_guard_close(const sb_guard *guard, sb_error **error);

// Frees a guard, and closes it first if it is open. No other thread may use it any more. NULL is fine.
void sb_guard_free(sb_guard *guard);

// Asks for `count` keys, from memory alone. Sets `verdicts[i]` to 0 if certainly no row has `keys[i]`, and
// to 1 if one may: then ask the database. On an error, all are 1 or unchanged.
sb_code sb_guard_may_contain(const sb_guard *guard,
                             const sb_slice *keys,
                             size_t count,
                             uint8_t *verdicts,
                             sb_error **error);

// Whether a row has a key, as far as the guard knows. May read a block from disk.
sb_code sb_guard_contains(const sb_guard *guard,
                          const void *key,
                          size_t key_length,
                          bool *found,
                          sb_error **error);

// Inserts the key of a row. Commit the row to the database after that, and only on SB_OK.
sb_code sb_guard_insert(const sb_guard *guard, const void *key, size_t key_length, sb_error **error);

// Inserts a key unless it exists, and sets `inserted` to whether it did not. Of any number of calls at the
// same time with the same key, one inserts it. For a guard that is itself a set of keys.
sb_code sb_guard_insert_new(const sb_guard *guard,
                            const void *key,
                            size_t key_length,
                            bool *inserted,
                            sb_error **error);

// Removes the key of a row, after the database has committed its deletion. The key stays until the last row
// with it is removed.
sb_code sb_guard_remove(const sb_guard *guard, const void *key, size_t key_length, sb_error **error);

// Makes all changes so far durable, for a guard with SB_DURABILITY_OS.
sb_code sb_guard_sync(const sb_guard *guard, sb_error **error);

// The counters of a guard since it was opened, and its state, as one line of JSON. Free it with
// sb_value_free.
sb_code sb_guard_stats(const sb_guard *guard, sb_value **json, sb_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SIDEBLOOM_H */
