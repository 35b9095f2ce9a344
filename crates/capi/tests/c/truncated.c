/* A segment file that somebody truncates while the store is open: an error, and not the end of the process. */

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

int main(int argc, char **argv) {
    CHECK(argc == 2);
    reads_fail(in_dir(argv[1], "pinned"), true);
    OK(sb_catch_sigbus(&error));
    OK(sb_catch_sigbus(&error));
    reads_fail(in_dir(argv[1], "mapped"), false);
    return 0;
}
