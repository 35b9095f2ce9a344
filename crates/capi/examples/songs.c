/*
 * A song catalogue. A guard answers lookups of titles that the catalogue lacks, so that only the others reach
 * the slow database; a store has the rows. Compiles as C99 and as C++11:
 *
 *     cc songs.c $(pkg-config --cflags --libs sidebloom) -o songs && ./songs /tmp/songs
 *
 * The argument is a directory for both, which must be missing or empty.
 */

#include <sidebloom.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Ends the program if a call has failed, with its message. */
static void check(sb_code code, sb_error *error) {
    if (code != SB_OK) {
        fprintf(stderr, "%s: %s\n", sb_code_name(code), sb_error_message(error));
        sb_error_free(error);
        exit(1);
    }
}

static sb_slice text(const char *text) {
    sb_slice slice;
    slice.data = text;
    slice.length = strlen(text);
    return slice;
}

typedef struct {
    const char *title;
    const char *year;
} song;

static const song SONGS[] = {
    {"Fela Kuti - Zombie", "1976"},
    {"Mercedes Sosa - Gracias a la vida", "1971"},
    {"Nina Simone - Feeling Good", "1965"},
    {"Nina Simone - Sinnerman", "1965"},
};
#define SONG_COUNT (sizeof SONGS / sizeof SONGS[0])

/* Writes all songs in one batch: after a crash, the store has all or none. */
static void fill(sb_db *db) {
    sb_error *error = NULL;
    sb_batch *batch = NULL;
    size_t i;
    check(sb_batch_new(&batch, &error), error);
    for (i = 0; i < SONG_COUNT; i++) {
        sb_slice title = text(SONGS[i].title), year = text(SONGS[i].year);
        check(sb_batch_put(batch, db, title.data, title.length, year.data, year.length, &error), error);
    }
    check(sb_write(db, batch, SB_DURABILITY_SYNC, &error), error);
    sb_batch_free(batch);
}

/* Asks the guard first, and the database only if it says "maybe". */
static void look_up(const sb_guard *guard, const sb_db *database, const char *title) {
    sb_error *error = NULL;
    sb_value *year = NULL;
    sb_slice key = text(title);
    uint8_t verdict = 1;
    check(sb_guard_may_contain(guard, &key, 1, &verdict, &error), error);
    if (verdict == 0) {
        printf("%s: not in the catalogue, and the database was not asked\n", title);
        return;
    }
    check(sb_get(database, key.data, key.length, &year, &error), error);
    if (year == NULL) {
        printf("%s: not in the catalogue\n", title);
    } else {
        sb_slice bytes = sb_value_bytes(year);
        printf("%s: %.*s\n", title, (int)bytes.length, (const char *)bytes.data);
    }
    sb_value_free(year);
}

/* Prints all songs of an artist. */
static void list(const sb_db *db, const char *artist) {
    sb_error *error = NULL;
    sb_iterator *it = NULL;
    check(sb_iterator_new_prefix(db, artist, strlen(artist), &it, &error), error);
    for (sb_iterator_first(it, NULL); sb_iterator_valid(it); sb_iterator_next(it, NULL)) {
        sb_slice title = sb_iterator_key(it), year = sb_iterator_value(it);
        printf("  %.*s (%.*s)\n", (int)title.length, (const char *)title.data, (int)year.length,
               (const char *)year.data);
    }
    check(sb_iterator_check(it, &error), error);
    sb_iterator_free(it);
}

/* A filter of the titles, to send to somebody who has none of the above. */
static void filter(void) {
    sb_error *error = NULL;
    sb_filter *filter = NULL;
    sb_slice titles[SONG_COUNT];
    uint8_t verdicts[SONG_COUNT];
    size_t i;
    for (i = 0; i < SONG_COUNT; i++) {
        titles[i] = text(SONGS[i].title);
    }
    check(sb_filter_build(SB_INTERFACE, SB_FILTER_KIND_PARITY, titles, SONG_COUNT, 0.01, &filter, &error), error);
    check(sb_filter_contains_many(filter, titles, SONG_COUNT, verdicts, &error), error);
    for (i = 0; i < SONG_COUNT; i++) {
        if (verdicts[i] == 0) {
            abort(); /* a filter never denies a key that it has */
        }
    }
    printf("a %s filter of %d titles, in %d bytes\n", sb_filter_kind_name(filter), (int)sb_filter_keys(filter),
           (int)sb_filter_bytes(filter));
    sb_filter_free(filter);
}

int main(int argc, char **argv) {
    sb_error *error = NULL;
    sb_db *db = NULL;
    sb_guard *guard = NULL;
    sb_slice titles[SONG_COUNT];
    char path[4096];
    bool is_new = false;
    size_t i;

    if (argc != 2) {
        fprintf(stderr, "usage: songs DIRECTORY\n");
        return 2;
    }
    mkdir(argv[1], 0777);
    snprintf(path, sizeof path, "%s/songs.db", argv[1]);
    check(sb_open(SB_INTERFACE, path, NULL, &db, &error), error);
    fill(db);
    for (i = 0; i < SONG_COUNT; i++) {
        titles[i] = text(SONGS[i].title);
    }
    snprintf(path, sizeof path, "%s/songs.guard", argv[1]);
    check(sb_guard_build(SB_INTERFACE, path, titles, SONG_COUNT, NULL, SB_DURABILITY_DEFAULT, &guard, &error), error);

    look_up(guard, db, "Nina Simone - Sinnerman");
    look_up(guard, db, "Nina Simone - Freebird");
    printf("Nina Simone:\n");
    list(db, "Nina Simone - ");
    check(sb_insert_new(db, "seen", 4, NULL, 0, &is_new, &error), error);
    printf("\"seen\" is new: %s\n", is_new ? "yes" : "no");
    filter();

    check(sb_guard_close(guard, &error), error);
    sb_guard_free(guard);
    check(sb_close(db, &error), error);
    sb_db_free(db);
    return 0;
}
