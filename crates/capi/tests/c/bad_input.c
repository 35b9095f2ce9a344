/* Bad input to every function of a store: NULL, impossible lengths, closed handles, paths that are no store. */

#include "check.h"

#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEGATIVE ((size_t)-1)
#define BAD SB_INVALID_ARGUMENT

static const char *dir;

/* Functions that cannot fail, with NULL. */
static void properties_of_null(void) {
    uint64_t offset = 7;
    CHECK(sb_error_code(NULL) == SB_OK && sb_error_message(NULL)[0] == 0 && sb_error_path(NULL) == NULL);
    CHECK(!sb_error_offset(NULL, &offset) && offset == 7 && sb_error_os(NULL) == 0);
    CHECK(strcmp(sb_code_name(SB_LOCKED), "SB_LOCKED") == 0 && strcmp(sb_code_name(-1), "SB_UNKNOWN") == 0);
    CHECK(sb_value_bytes(NULL).data == NULL && sb_batch_count(NULL) == 0 && sb_names_count(NULL) == 0);
    CHECK(sb_names_at(NULL, 0).data == NULL && !sb_iterator_valid(NULL));
    CHECK(sb_iterator_key(NULL).length == 0 && sb_iterator_value(NULL).length == 0);
    sb_error_free(NULL);
    sb_value_free(NULL);
    sb_options_free(NULL);
    sb_db_free(NULL);
    sb_batch_free(NULL);
    sb_snapshot_free(NULL);
    sb_iterator_free(NULL);
    sb_names_free(NULL);
}

static void options(void) {
    sb_options *options = NULL;
    sb_db *db = NULL;
    RETURNS(BAD, sb_options_new(SB_INTERFACE, NULL, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_options_new(SB_INTERFACE + 1, &options, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_open(0, in_dir(dir, "mismatch"), NULL, &db, &error));
    CHECK(options == NULL && db == NULL && access(in_dir(dir, "mismatch"), F_OK) != 0);
    RETURNS(BAD, sb_options_set_create_if_missing(NULL, true, &error));
    RETURNS(BAD, sb_options_set_read_only(NULL, true, &error));
    RETURNS(BAD, sb_options_set_follow(NULL, true, &error));
    RETURNS(BAD, sb_options_set_durability(NULL, SB_DURABILITY_OS, &error));
    RETURNS(BAD, sb_options_set_compression(NULL, SB_COMPRESSION_AUTO, &error));
    RETURNS(BAD, sb_options_set_block_cache_bytes(NULL, 1, &error));
    RETURNS(BAD, sb_options_set_memtable_bytes(NULL, 1 << 20, &error));
    RETURNS(BAD, sb_options_set_segment_bytes(NULL, 1 << 20, &error));
    RETURNS(BAD, sb_options_set_filter_bits_per_key(NULL, 10, &error));
    RETURNS(BAD, sb_options_set_filter_rate(NULL, 0.1, &error));
    RETURNS(BAD, sb_options_set_secret_hash(NULL, true, &error));
    RETURNS(BAD, sb_options_set_pinned(NULL, true, &error));
    RETURNS(BAD, sb_options_set_background_threads(NULL, 2, &error));
    RETURNS(BAD, sb_options_set_max_open_files(NULL, 100, &error));
    RETURNS(BAD, sb_options_set_mode(NULL, 0600, &error));

    OK(sb_options_new(SB_INTERFACE, &options, &error));
    RETURNS(BAD, sb_options_set_durability(options, 3, &error));
    RETURNS(BAD, sb_options_set_compression(options, 5, &error));
    OK(sb_options_set_memtable_bytes(options, 1, &error));
    RETURNS(BAD, sb_open(SB_INTERFACE, in_dir(dir, "out of range"), options, &db, &error));
    OK(sb_options_set_memtable_bytes(options, 1 << 20, &error));
    OK(sb_options_set_filter_bits_per_key(options, -1, &error));
    RETURNS(BAD, sb_open(SB_INTERFACE, in_dir(dir, "out of range"), options, &db, &error));
    OK(sb_options_set_filter_bits_per_key(options, 0, &error));
    OK(sb_options_set_create_if_missing(options, false, &error));
    RETURNS(SB_NOT_A_STORE, sb_open(SB_INTERFACE, in_dir(dir, "missing"), options, &db, &error));
    OK(sb_options_set_create_if_missing(options, true, &error));
    OK(sb_options_set_compression(options, SB_COMPRESSION_NONE, &error));
    OK(sb_open(SB_INTERFACE, in_dir(dir, "without filters"), options, &db, &error));
    sb_options_free(options);
    close_store(db);
}

/* Each error names its file. */
static void paths(void) {
    sb_db *db = open_store(in_dir(dir, "store")), *second = (sb_db *)&db;
    sb_error *error = NULL;
    uint64_t offset = 0;
    const char *path;

    RETURNS(BAD, sb_open(SB_INTERFACE, NULL, NULL, &second, &error));
    CHECK(second == NULL);
    RETURNS(BAD, sb_open(SB_INTERFACE, "", NULL, &second, &error));
    RETURNS(BAD, sb_open(SB_INTERFACE, in_dir(dir, "store"), NULL, NULL, &error));
    CHECK(sb_open(SB_INTERFACE, in_dir(dir, "store"), NULL, &second, &error) == SB_LOCKED && second == NULL);
    CHECK(strstr(sb_error_path(error), "/store/") != NULL && !sb_error_offset(error, &offset));
    CHECK(strstr(sb_error_message(error), "already open") != NULL);
    sb_error_free(error);
    CHECK(sb_open(SB_INTERFACE, in_dir(dir, "store"), NULL, &second, NULL) == SB_LOCKED);

    write_file(in_dir(dir, "a file"), "not a store", 11);
    RETURNS(SB_NOT_A_STORE, sb_open(SB_INTERFACE, in_dir(dir, "a file"), NULL, &second, &error));
    CHECK(mkdir(in_dir(dir, "other files"), 0700) == 0);
    write_file(in_dir(dir, "other files/letter.txt"), "Dear reader", 11);
    RETURNS(SB_NOT_A_STORE, sb_open(SB_INTERFACE, in_dir(dir, "other files"), NULL, &second, &error));
    CHECK(sb_open(SB_INTERFACE, in_dir(dir, "a file/below"), NULL, &second, &error) != SB_OK);
    CHECK(sb_error_path(error) != NULL);
    sb_error_free(error);

    RETURNS(SB_ALREADY_EXISTS, sb_checkpoint(db, in_dir(dir, "other files"), &error));
    RETURNS(BAD, sb_checkpoint(db, NULL, &error));
    RETURNS(BAD, sb_checkpoint(db, "", &error));
    close_store(db);

    damage(in_dir(dir, "store/MANIFEST"), -1);
    CHECK(sb_open(SB_INTERFACE, in_dir(dir, "store"), NULL, &second, &error) == SB_CORRUPTION);
    path = sb_error_path(error);
    CHECK(path != NULL && strstr(path, "MANIFEST") != NULL && sb_error_offset(error, &offset));
    CHECK(sb_error_offset(error, NULL));
    sb_error_free(error);
}

/* Every function that takes a handle, with this one. */
static void with_handle(const sb_db *db, int expected) {
    sb_value *value = NULL;
    sb_db *keyspace = NULL;
    sb_snapshot *snapshot = NULL;
    sb_iterator *iterator = NULL;
    sb_names *names = NULL;
    sb_batch *batch = NULL;
    sb_slice key = text("k");
    bool yes = true;
    uint8_t answer = 0;
    uint64_t count = 1;

    RETURNS(expected, sb_get(db, TEXT("k"), &value, &error));
    RETURNS(expected, sb_multi_get(db, &key, 1, &value, &error));
    RETURNS(expected, sb_contains(db, TEXT("k"), &yes, &error));
    RETURNS(expected, sb_may_contain(db, &key, 1, &answer, &error));
    CHECK(answer == 1); /* never a false "absent" */
    RETURNS(expected, sb_put(db, TEXT("k"), TEXT("v"), &error));
    RETURNS(expected, sb_put_expiring(db, TEXT("k"), TEXT("v"), 1000, &error));
    RETURNS(expected, sb_delete(db, TEXT("k"), &error));
    RETURNS(expected, sb_delete_range(db, &key, NULL, &error));
    RETURNS(expected, sb_insert_new(db, TEXT("k"), TEXT("v"), &yes, &error));
    RETURNS(expected, sb_insert_new_expiring(db, TEXT("k"), TEXT("v"), 1000, &yes, &error));
    RETURNS(expected, sb_insert_new_many(db, &key, NULL, 1, &answer, &error));
    CHECK(!yes && answer == 0);
    RETURNS(expected, sb_keyspace_create(db, "name", 0, &keyspace, &error));
    RETURNS(expected, sb_keyspace_open(db, "name", &keyspace, &error));
    RETURNS(expected, sb_keyspace_drop(db, "name", &error));
    RETURNS(expected, sb_keyspace_names(db, &names, &error));
    RETURNS(expected, sb_snapshot_new(db, &snapshot, &error));
    RETURNS(expected, sb_iterator_new(db, NULL, NULL, &iterator, &error));
    RETURNS(expected, sb_iterator_new_prefix(db, TEXT("k"), &iterator, &error));
    RETURNS(expected, sb_sync(db, &error));
    RETURNS(expected, sb_flush(db, &error));
    RETURNS(expected, sb_compact(db, &error));
    RETURNS(expected, sb_catch_up(db, &error));
    RETURNS(expected, sb_checkpoint(db, in_dir(dir, "never made"), &error));
    RETURNS(expected, sb_stats(db, &value, &error));
    RETURNS(expected, sb_counter(db, "user_bytes", &count, &error));
    CHECK(!value && !keyspace && !names && !snapshot && !iterator && count == 0);

    OK(sb_batch_new(&batch, &error));
    RETURNS(expected, sb_batch_put(batch, db, TEXT("k"), TEXT("v"), &error));
    RETURNS(expected, sb_batch_put_expiring(batch, db, TEXT("k"), TEXT("v"), 1000, &error));
    RETURNS(expected, sb_batch_delete(batch, db, TEXT("k"), &error));
    RETURNS(expected, sb_batch_delete_range(batch, db, &key, NULL, &error));
    RETURNS(expected, sb_batch_expect(batch, db, TEXT("k"), TEXT("v"), &error));
    RETURNS(expected, sb_batch_expect_absent(batch, db, TEXT("k"), &error));
    RETURNS(expected, sb_write(db, batch, SB_DURABILITY_DEFAULT, &error));
    sb_batch_free(batch);
    RETURNS(expected, sb_close(db, &error));
}

/* NULL and impossible lengths for everything but the handle. */
static void arguments(void) {
    sb_db *db = open_store(in_dir(dir, "arguments")), *other = open_store(in_dir(dir, "other"));
    sb_db *keyspace = NULL;
    sb_value *value = NULL, *values[2];
    sb_slice key = text("k"), negative = slice("k", NEGATIVE), null = slice(NULL, 1), pair[2];
    sb_batch *batch = NULL;
    sb_snapshot *snapshot = NULL, *same = NULL;
    sb_iterator *it = NULL;
    static char large[(64 << 10) + 1];
    bool yes = false;
    uint8_t answer = 0;
    uint64_t count = 0;

    RETURNS(BAD, sb_get(db, NULL, 1, &value, &error));
    RETURNS(BAD, sb_get(db, "k", NEGATIVE, &value, &error));
    RETURNS(BAD, sb_get(db, "k", 1, NULL, &error));
    RETURNS(SB_TOO_LARGE, sb_get(db, large, sizeof large, &value, &error));
    RETURNS(SB_TOO_LARGE, sb_get(db, "k", NEGATIVE / 2, &value, &error));
    OK(sb_get(db, large, sizeof large - 1, &value, &error));
    RETURNS(BAD, sb_multi_get(db, NULL, 1, &value, &error));
    RETURNS(BAD, sb_multi_get(db, &key, 1, NULL, &error));
    RETURNS(BAD, sb_multi_get(db, &key, NEGATIVE, &value, &error));
    RETURNS(BAD, sb_multi_get(db, &negative, 1, &value, &error));
    pair[0] = key;
    pair[1] = null;
    values[0] = values[1] = (sb_value *)&value;
    RETURNS(BAD, sb_multi_get(db, pair, 2, values, &error));
    CHECK(values[0] == NULL && values[1] == NULL);
    RETURNS(BAD, sb_contains(db, NULL, 1, &yes, &error));
    RETURNS(BAD, sb_contains(db, "k", 1, NULL, &error));
    RETURNS(BAD, sb_may_contain(db, &null, 1, &answer, &error));
    CHECK(answer == 1);
    RETURNS(BAD, sb_may_contain(db, &key, 1, NULL, &error));
    RETURNS(BAD, sb_put(db, NULL, 1, "v", 1, &error));
    RETURNS(BAD, sb_put(db, "k", 1, NULL, 1, &error));
    RETURNS(BAD, sb_put(db, "k", NEGATIVE, "v", 1, &error));
    RETURNS(BAD, sb_put(db, "k", 1, "v", NEGATIVE, &error));
    RETURNS(SB_TOO_LARGE, sb_put(db, large, sizeof large, "v", 1, &error));
    RETURNS(SB_TOO_LARGE, sb_put(db, "k", 1, "v", NEGATIVE / 2, &error));
    RETURNS(BAD, sb_put_expiring(db, "k", 1, "v", 1, 0, &error));
    RETURNS(BAD, sb_put_expiring(db, "k", 1, "v", 1, UINT64_MAX, &error));
    RETURNS(BAD, sb_put_expiring(db, NULL, 1, "v", 1, 1, &error));
    RETURNS(BAD, sb_delete(db, NULL, 1, &error));
    RETURNS(BAD, sb_delete_range(db, &null, NULL, &error));
    RETURNS(BAD, sb_delete_range(db, NULL, &negative, &error));
    pair[0] = text("b");
    pair[1] = text("a");
    RETURNS(BAD, sb_delete_range(db, &pair[0], &pair[1], &error)); /* backwards */
    RETURNS(BAD, sb_insert_new(db, NULL, 1, "v", 1, &yes, &error));
    RETURNS(BAD, sb_insert_new(db, "k", 1, NULL, 1, &yes, &error));
    RETURNS(BAD, sb_insert_new(db, "k", 1, "v", 1, NULL, &error));
    RETURNS(BAD, sb_insert_new_expiring(db, "k", 1, "v", 1, 0, &yes, &error));
    RETURNS(BAD, sb_insert_new_expiring(db, "k", 1, "v", 1, 1, NULL, &error));
    RETURNS(BAD, sb_insert_new_many(db, NULL, NULL, 1, &answer, &error));
    RETURNS(BAD, sb_insert_new_many(db, &key, &null, 1, &answer, &error));
    RETURNS(BAD, sb_insert_new_many(db, &key, NULL, NEGATIVE, &answer, &error));
    RETURNS(BAD, sb_insert_new_many(db, &key, NULL, 1, NULL, &error));
    CHECK(has(db, "k", NULL));

    RETURNS(BAD, sb_keyspace_create(db, NULL, 0, &keyspace, &error));
    RETURNS(BAD, sb_keyspace_create(db, "", 0, &keyspace, &error));
    RETURNS(BAD, sb_keyspace_create(db, "\xff", 0, &keyspace, &error));
    RETURNS(BAD, sb_keyspace_create(db, "name", UINT64_MAX, &keyspace, &error));
    RETURNS(BAD, sb_keyspace_create(db, "name", 0, NULL, &error));
    RETURNS(BAD, sb_keyspace_open(db, NULL, &keyspace, &error));
    RETURNS(BAD, sb_keyspace_open(db, "name", NULL, &error));
    RETURNS(SB_UNKNOWN_KEYSPACE, sb_keyspace_open(db, "name", &keyspace, &error));
    RETURNS(BAD, sb_keyspace_drop(db, NULL, &error));
    RETURNS(SB_UNKNOWN_KEYSPACE, sb_keyspace_drop(db, "name", &error));
    RETURNS(BAD, sb_keyspace_names(db, NULL, &error));
    RETURNS(BAD, sb_stats(db, NULL, &error));
    RETURNS(BAD, sb_counter(db, NULL, &count, &error));
    RETURNS(BAD, sb_counter(db, "no such counter", &count, &error));
    RETURNS(BAD, sb_counter(db, "user_bytes", NULL, &error));

    RETURNS(BAD, sb_batch_new(NULL, &error));
    RETURNS(BAD, sb_batch_clear(NULL, &error));
    RETURNS(BAD, sb_batch_put(NULL, db, "k", 1, "v", 1, &error));
    RETURNS(BAD, sb_batch_put_expiring(NULL, db, "k", 1, "v", 1, 1, &error));
    RETURNS(BAD, sb_batch_delete(NULL, db, "k", 1, &error));
    RETURNS(BAD, sb_batch_delete_range(NULL, db, NULL, NULL, &error));
    RETURNS(BAD, sb_batch_expect(NULL, db, "k", 1, "v", 1, &error));
    RETURNS(BAD, sb_batch_expect_absent(NULL, db, "k", 1, &error));
    RETURNS(BAD, sb_write(db, NULL, SB_DURABILITY_DEFAULT, &error));
    OK(sb_batch_new(&batch, &error));
    RETURNS(BAD, sb_write(db, batch, 3, &error));
    RETURNS(BAD, sb_batch_put(batch, db, NULL, 1, "v", 1, &error));
    RETURNS(BAD, sb_batch_put(batch, db, "k", 1, "v", NEGATIVE, &error));
    RETURNS(SB_TOO_LARGE, sb_batch_put(batch, db, "k", 1, "v", NEGATIVE / 2, &error));
    RETURNS(BAD, sb_batch_put_expiring(batch, db, "k", NEGATIVE, "v", 1, 1, &error));
    RETURNS(BAD, sb_batch_delete(batch, db, NULL, 1, &error));
    RETURNS(BAD, sb_batch_delete_range(batch, db, &null, NULL, &error));
    RETURNS(BAD, sb_batch_expect(batch, db, NULL, 1, "v", 1, &error));
    RETURNS(BAD, sb_batch_expect(batch, db, "k", 1, NULL, 1, &error));
    RETURNS(BAD, sb_batch_expect_absent(batch, db, NULL, 1, &error));
    CHECK(sb_batch_count(batch) == 0);
    OK(sb_keyspace_create(other, "foreign", 0, &keyspace, &error));
    OK(sb_batch_put(batch, keyspace, "k", 1, "v", 1, &error));
    RETURNS(SB_FOREIGN_KEYSPACE, sb_write(db, batch, SB_DURABILITY_DEFAULT, &error));
    sb_batch_free(batch);

    RETURNS(BAD, sb_snapshot_new(db, NULL, &error));
    OK(sb_snapshot_new(db, &snapshot, &error));
    RETURNS(BAD, sb_snapshot_keyspace(NULL, db, &same, &error));
    RETURNS(BAD, sb_snapshot_keyspace(snapshot, NULL, &same, &error));
    RETURNS(BAD, sb_snapshot_keyspace(snapshot, db, NULL, &error));
    RETURNS(SB_FOREIGN_KEYSPACE, sb_snapshot_keyspace(snapshot, keyspace, &same, &error));
    RETURNS(BAD, sb_snapshot_get(NULL, "k", 1, &value, &error));
    RETURNS(BAD, sb_snapshot_get(snapshot, NULL, 1, &value, &error));
    RETURNS(BAD, sb_snapshot_get(snapshot, "k", 1, NULL, &error));
    RETURNS(BAD, sb_snapshot_contains(NULL, "k", 1, &yes, &error));
    RETURNS(BAD, sb_snapshot_contains(snapshot, "k", NEGATIVE, &yes, &error));
    RETURNS(BAD, sb_snapshot_contains(snapshot, "k", 1, NULL, &error));
    RETURNS(BAD, sb_snapshot_iterator(NULL, NULL, NULL, &it, &error));
    RETURNS(BAD, sb_snapshot_iterator(snapshot, &null, NULL, &it, &error));
    RETURNS(BAD, sb_snapshot_iterator(snapshot, NULL, NULL, NULL, &error));
    sb_snapshot_free(snapshot);

    RETURNS(BAD, sb_iterator_new(db, NULL, NULL, NULL, &error));
    RETURNS(BAD, sb_iterator_new(db, &negative, NULL, &it, &error));
    RETURNS(BAD, sb_iterator_new(db, NULL, &null, &it, &error));
    RETURNS(BAD, sb_iterator_new_prefix(db, NULL, 1, &it, &error));
    RETURNS(BAD, sb_iterator_new_prefix(db, "k", 1, NULL, &error));
    CHECK(it == NULL);
    RETURNS(BAD, sb_iterator_first(NULL, &error));
    RETURNS(BAD, sb_iterator_last(NULL, &error));
    RETURNS(BAD, sb_iterator_next(NULL, &error));
    RETURNS(BAD, sb_iterator_prev(NULL, &error));
    RETURNS(BAD, sb_iterator_seek(NULL, "k", 1, &error));
    RETURNS(BAD, sb_iterator_seek_for_prev(NULL, "k", 1, &error));
    RETURNS(BAD, sb_iterator_check(NULL, &error));
    OK(sb_iterator_new(db, NULL, NULL, &it, &error));
    RETURNS(BAD, sb_iterator_seek(it, NULL, 1, &error));
    RETURNS(BAD, sb_iterator_seek_for_prev(it, "k", NEGATIVE, &error));
    sb_iterator_free(it);
    close_store(keyspace);
    close_store(other);
    close_store(db);
}

int main(int argc, char **argv) {
    sb_db *closed;
    CHECK(argc == 2);
    dir = argv[1];
    properties_of_null();
    options();
    paths();
    with_handle(NULL, BAD);
    closed = open_store(in_dir(dir, "closed"));
    OK(sb_close(closed, &error));
    with_handle(closed, SB_CLOSED);
    sb_db_free(closed);
    CHECK(access(in_dir(dir, "never made"), F_OK) != 0);
    arguments();
    return 0;
}
