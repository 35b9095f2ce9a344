/* A store: every function that reads, writes or looks after one, with arguments that are fine. */

#include "check.h"

#include <unistd.h>

static void rows(const char *dir) {
    sb_db *db = open_store(in_dir(dir, "rows"));
    sb_slice keys[3], bound_a = text("a"), bound_c = text("c");
    sb_value *values[3];
    uint8_t verdicts[3];
    bool yes = false;
    sb_value *value = NULL;

    OK(sb_put(db, TEXT("a"), TEXT("1"), &error));
    OK(sb_put(db, TEXT("b"), TEXT("2"), NULL));
    OK(sb_put(db, NULL, 0, NULL, 0, &error));
    OK(sb_put(db, "x\0y", 3, "\0", 1, &error));
    CHECK(has(db, "a", "1") && has(db, "b", "2") && has(db, "", "") && has(db, "x", NULL));
    OK(sb_get(db, "x\0y", 3, &value, &error));
    CHECK(sb_value_bytes(value).length == 1);
    sb_value_free(value);

    keys[0] = text("b");
    keys[1] = text("missing");
    keys[2] = text("a");
    OK(sb_multi_get(db, keys, 3, values, &error));
    CHECK(is_text(sb_value_bytes(values[0]), "2") && values[1] == NULL && is_text(sb_value_bytes(values[2]), "1"));
    sb_value_free(values[0]);
    sb_value_free(values[2]);
    OK(sb_multi_get(db, NULL, 0, NULL, &error));

    OK(sb_contains(db, TEXT("a"), &yes, &error));
    CHECK(yes);
    OK(sb_contains(db, TEXT("missing"), &yes, &error));
    CHECK(!yes);
    OK(sb_flush(db, &error));
    OK(sb_may_contain(db, keys, 3, verdicts, &error));
    CHECK(verdicts[0] == 1 && verdicts[1] == 0 && verdicts[2] == 1);

    OK(sb_delete(db, TEXT("a"), &error));
    CHECK(has(db, "a", NULL));
    OK(sb_put(db, TEXT("a"), TEXT("3"), &error));
    OK(sb_put(db, TEXT("c"), TEXT("4"), &error));
    OK(sb_delete_range(db, &bound_a, &bound_c, &error));
    CHECK(has(db, "a", NULL) && has(db, "b", NULL) && has(db, "c", "4") && has(db, "", ""));
    OK(sb_delete_range(db, NULL, NULL, &error));
    CHECK(has(db, "c", NULL) && has(db, "", NULL));

    OK(sb_put_expiring(db, TEXT("short"), TEXT("life"), 1, &error));
    OK(sb_put_expiring(db, TEXT("long"), TEXT("life"), 3600000, &error));
    usleep(20000);
    CHECK(has(db, "short", NULL) && has(db, "long", "life"));
    close_store(db);
}

static void conditions(const char *dir) {
    sb_db *db = open_store(in_dir(dir, "conditions"));
    sb_slice keys[3], values[3];
    uint8_t inserted[3];
    bool is_new = false;
    int i;

    OK(sb_insert_new(db, TEXT("a"), TEXT("1"), &is_new, &error));
    CHECK(is_new);
    OK(sb_insert_new(db, TEXT("a"), TEXT("2"), &is_new, &error));
    CHECK(!is_new && has(db, "a", "1"));
    OK(sb_insert_new_expiring(db, TEXT("nonce"), NULL, 0, 1, &is_new, &error));
    CHECK(is_new);
    usleep(20000);
    OK(sb_insert_new_expiring(db, TEXT("nonce"), NULL, 0, 3600000, &is_new, &error));
    CHECK(is_new);

    for (i = 0; i < 3; i++) {
        keys[i] = text(i == 0 ? "a" : "b");
        values[i] = text(i == 1 ? "first" : "other");
    }
    OK(sb_insert_new_many(db, keys, values, 3, inserted, &error));
    CHECK(inserted[0] == 0 && inserted[1] == 1 && inserted[2] == 0 && has(db, "b", "first"));
    keys[1] = text("c");
    OK(sb_insert_new_many(db, keys, NULL, 3, inserted, &error));
    CHECK(inserted[0] == 0 && inserted[1] == 1 && inserted[2] == 0 && has(db, "c", ""));
    close_store(db);
}

static void batches(const char *dir) {
    sb_db *db = open_store(in_dir(dir, "batches")), *users = NULL;
    sb_batch *batch = NULL;
    sb_slice from = text("d"), to = text("f");

    OK(sb_keyspace_create(db, "users", 0, &users, &error));
    OK(sb_put(db, TEXT("e"), TEXT("deleted"), &error));
    OK(sb_batch_new(&batch, &error));
    OK(sb_batch_put(batch, db, TEXT("a"), TEXT("1"), &error));
    OK(sb_batch_put(batch, users, TEXT("a"), TEXT("ann"), &error));
    OK(sb_batch_put_expiring(batch, users, TEXT("b"), TEXT("bob"), 3600000, &error));
    OK(sb_batch_delete(batch, db, TEXT("missing"), &error));
    OK(sb_batch_delete_range(batch, db, &from, &to, &error));
    CHECK(sb_batch_count(batch) == 5);
    OK(sb_write(db, batch, SB_DURABILITY_SYNC, &error));
    CHECK(has(db, "a", "1") && has(users, "a", "ann") && has(users, "b", "bob") && has(db, "e", NULL));
    CHECK(sb_batch_count(batch) == 5);

    OK(sb_delete(db, TEXT("a"), &error));
    OK(sb_write(users, batch, SB_DURABILITY_OS, &error)); /* the same store, and the batch was kept */
    CHECK(has(db, "a", "1"));

    OK(sb_batch_clear(batch, &error));
    CHECK(sb_batch_count(batch) == 0);
    OK(sb_batch_expect(batch, db, TEXT("a"), TEXT("1"), &error));
    OK(sb_batch_expect_absent(batch, users, TEXT("z"), &error));
    OK(sb_batch_put(batch, db, TEXT("a"), TEXT("2"), &error));
    OK(sb_batch_put(batch, users, TEXT("z"), TEXT("zoe"), &error));
    OK(sb_write(db, batch, SB_DURABILITY_DEFAULT, &error));
    CHECK(has(db, "a", "2") && has(users, "z", "zoe"));
    RETURNS(SB_CONFLICT, sb_write(db, batch, SB_DURABILITY_DEFAULT, &error));
    sb_batch_free(batch);
    close_store(users);
    close_store(db);
}

static void snapshots_and_keyspaces(const char *dir) {
    sb_db *db = open_store(in_dir(dir, "keyspaces")), *users = NULL, *again = NULL, *brief = NULL;
    sb_snapshot *before = NULL, *users_before = NULL;
    sb_names *names = NULL;
    sb_value *value = NULL;
    bool found = false;

    OK(sb_keyspace_create(db, "users", 0, &users, &error));
    OK(sb_keyspace_create(db, "brief", 1, &brief, &error));
    OK(sb_put(brief, TEXT("a"), TEXT("gone"), &error));
    RETURNS(SB_KEYSPACE_EXISTS, sb_keyspace_create(db, "users", 0, &again, &error));
    CHECK(again == NULL);
    OK(sb_put(users, TEXT("a"), TEXT("ann"), &error));
    OK(sb_snapshot_new(db, &before, &error));
    OK(sb_snapshot_keyspace(before, users, &users_before, &error));
    OK(sb_put(users, TEXT("a"), TEXT("amy"), &error));
    OK(sb_put(db, TEXT("later"), TEXT("1"), &error));
    OK(sb_snapshot_get(users_before, TEXT("a"), &value, &error));
    CHECK(is_text(sb_value_bytes(value), "ann"));
    OK(sb_snapshot_contains(before, TEXT("later"), &found, &error));
    CHECK(!found);
    OK(sb_snapshot_contains(users_before, TEXT("a"), &found, &error));
    CHECK(found);
    sb_snapshot_free(before);
    sb_snapshot_free(users_before);

    OK(sb_keyspace_names(db, &names, &error));
    CHECK(sb_names_count(names) == 2 && is_text(sb_names_at(names, 0), "brief"));
    CHECK(is_text(sb_names_at(names, 1), "users") && sb_names_at(names, 2).data == NULL);
    sb_names_free(names);
    usleep(20000);
    CHECK(has(brief, "a", NULL));

    OK(sb_keyspace_open(db, "users", &again, &error));
    CHECK(has(again, "a", "amy"));
    close_store(again);
    OK(sb_keyspace_drop(db, "users", &error));
    RETURNS(SB_KEYSPACE_DROPPED, sb_put(users, TEXT("a"), TEXT("b"), &error));
    RETURNS(SB_UNKNOWN_KEYSPACE, sb_keyspace_open(db, "users", &again, &error));
    sb_db_free(users); /* without a close */
    close_store(brief);
    close_store(db);
    CHECK(is_text(sb_value_bytes(value), "ann")); /* a value may outlive the store */
    sb_value_free(value);
}

static void maintenance(const char *dir) {
    sb_db *db = NULL, *copy = NULL, *follower = NULL;
    sb_options *options = NULL;
    sb_value *json = NULL;
    uint64_t negatives = 1, count = 0;
    char key[16];
    int i;

    OK(sb_options_new(SB_INTERFACE, &options, &error));
    OK(sb_options_set_durability(options, SB_DURABILITY_SYNC, &error));
    OK(sb_options_set_compression(options, SB_COMPRESSION_LZ4, &error));
    OK(sb_options_set_block_cache_bytes(options, 1 << 20, &error));
    OK(sb_options_set_memtable_bytes(options, 1 << 16, &error));
    OK(sb_options_set_segment_bytes(options, 1 << 16, &error));
    OK(sb_options_set_filter_rate(options, 0.01, &error));
    OK(sb_options_set_filter_bits_per_key(options, 12, &error));
    OK(sb_options_set_secret_hash(options, true, &error));
    OK(sb_options_set_background_threads(options, 3, &error));
    OK(sb_options_set_max_open_files(options, 64, &error));
    OK(sb_options_set_mode(options, 0600, &error));
    OK(sb_open(SB_INTERFACE, in_dir(dir, "kept"), options, &db, &error));
    sb_options_free(options);
    for (i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "key %03d", i);
        OK(sb_put(db, TEXT(key), TEXT("value"), &error));
    }
    OK(sb_sync(db, &error));
    OK(sb_flush(db, &error));
    OK(sb_compact(db, &error));
    CHECK(has(db, "key 0505", NULL));
    OK(sb_counter(db, "filter_negatives", &negatives, &error));
    OK(sb_counter(db, "user_bytes", &count, &error));
    CHECK(negatives <= 1 && count > 1000);
    OK(sb_stats(db, &json, &error));
    CHECK(strstr((const char *)sb_value_bytes(json).data, "\"counters\":{\"filter_probes\":") != NULL);
    sb_value_free(json);

    OK(sb_checkpoint(db, in_dir(dir, "copy"), &error));
    OK(sb_delete(db, TEXT("key 007"), &error));
    copy = open_store(in_dir(dir, "copy"));
    CHECK(has(copy, "key 007", "value") && has(db, "key 007", NULL));
    close_store(copy);

    OK(sb_options_new(SB_INTERFACE, &options, &error));
    OK(sb_options_set_follow(options, true, &error));
    OK(sb_open(SB_INTERFACE, in_dir(dir, "kept"), options, &follower, &error));
    OK(sb_put(db, TEXT("news"), TEXT("1"), &error));
    OK(sb_catch_up(follower, &error));
    CHECK(has(follower, "news", "1"));
    RETURNS(SB_READ_ONLY, sb_put(follower, TEXT("a"), TEXT("b"), &error));
    close_store(follower);
    close_store(db);

    OK(sb_options_set_follow(options, false, &error));
    OK(sb_options_set_read_only(options, true, &error));
    OK(sb_open(SB_INTERFACE, in_dir(dir, "kept"), options, &db, &error));
    OK(sb_open(SB_INTERFACE, in_dir(dir, "kept"), options, &copy, &error)); /* read-only opens share */
    CHECK(has(db, "news", "1") && has(copy, "key 042", "value"));
    RETURNS(SB_READ_ONLY, sb_delete(db, TEXT("a"), &error));
    close_store(copy);
    close_store(db);
    sb_options_free(options);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(sb_interface() == SB_INTERFACE && strchr(sb_version(), '.') != NULL);
    rows(argv[1]);
    conditions(argv[1]);
    batches(argv[1]);
    snapshots_and_keyspaces(argv[1]);
    maintenance(argv[1]);
    return 0;
}
