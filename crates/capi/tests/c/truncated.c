/* A file that somebody truncates while it is open: an error, and not the end of the process. */

#include "check.h"

#include <dirent.h>
#include <unistd.h>

#define KEYS 3000

static const char *key_of(int number) {
    static char key[16];
    snprintf(key, sizeof key, "key %05d", number);
    return key;
}

static sb_db *filled(const char *path, bool pinned) {
    sb_options *options = NULL;
    sb_db *db = NULL;
    char value[100];
    int i;
    memset(value, 'v', sizeof value);
    OK(sb_options_new(SB_INTERFACE, &options, &error));
    OK(sb_options_set_compression(options, SB_COMPRESSION_NONE, &error)); /* mapped, unless pinned */
    OK(sb_options_set_pinned(options, pinned, &error));
    OK(sb_open(SB_INTERFACE, path, options, &db, &error));
    sb_options_free(options);
    for (i = 0; i < KEYS; i++) {
        OK(sb_put(db, TEXT(key_of(i)), value, sizeof value, &error));
    }
    OK(sb_flush(db, &error));
    return db;
}

static void truncate_segments(const char *path) {
    DIR *dir = opendir(path);
    struct dirent *entry;
    int truncated = 0;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, ".segment") != NULL) {
            CHECK(truncate(in_dir(path, entry->d_name), 0) == 0);
            truncated++;
        }
    }
    closedir(dir);
    CHECK(truncated > 0);
}

/* No read of a row that is lost may say that there is none. */
static void reads_fail(const char *path, bool pinned) {
    sb_db *db = filled(path, pinned);
    sb_iterator *it = NULL;
    sb_value *value = NULL;
    sb_error *error = NULL;
    int i, failures = 0, rows = 0;
    sb_code code;

    OK(sb_get(db, TEXT(key_of(0)), &value, &error));
    CHECK(value != NULL);
    sb_value_free(value);
    truncate_segments(path);
    for (i = 100; i < KEYS; i += 100) {
        code = sb_get(db, TEXT(key_of(i)), &value, &error);
        CHECK(code == SB_IO || code == SB_CORRUPTION || (code == SB_OK && value != NULL));
        CHECK(code == SB_OK || strstr(sb_error_path(error), ".segment") != NULL);
        failures += code != SB_OK;
        sb_value_free(value);
        sb_error_free(error);
    }
    CHECK(failures > 0);
    OK(sb_iterator_new(db, NULL, NULL, &it, &error));
    for (sb_iterator_first(it, NULL); sb_iterator_valid(it); sb_iterator_next(it, NULL)) {
        rows++;
    }
    CHECK(rows < KEYS && sb_iterator_check(it, NULL) != SB_OK);
    sb_iterator_free(it);
    OK(sb_put(db, TEXT("another"), TEXT("row"), &error)); /* the store goes on */
    CHECK(has(db, "another", "row"));
    sb_db_free(db);
}

/* No key of a filter whose file is lost may be absent. */
static void questions_fail(const char *path) {
    static sb_slice keys[20000];
    static uint8_t verdicts[20000];
    sb_filter *filter = NULL;
    sb_error *error = NULL;
    bool maybe = false;
    size_t i;
    for (i = 0; i < 20000; i++) {
        keys[i].data = &keys[i];
        keys[i].length = sizeof keys[i].data;
    }
    OK(sb_filter_build(SB_INTERFACE, SB_FILTER_KIND_PARITY, keys, 20000, 0.01, &filter, &error));
    OK(sb_filter_save(filter, path, &error));
    sb_filter_free(filter);
    OK(sb_filter_map(SB_INTERFACE, path, &filter, &error));
    CHECK(truncate(path, 4096) == 0);
    CHECK(sb_filter_contains_many(filter, keys, 20000, verdicts, &error) == SB_CORRUPTION);
    sb_error_free(error);
    CHECK(sb_filter_contains(filter, keys[5].data, keys[5].length, &maybe, NULL) == SB_CORRUPTION && maybe);
    sb_filter_free(filter);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    reads_fail(in_dir(argv[1], "pinned"), true);
    OK(sb_catch_sigbus(&error));
    OK(sb_catch_sigbus(&error));
    reads_fail(in_dir(argv[1], "mapped"), false);
    questions_fail(in_dir(argv[1], "filter"));
    return 0;
}
