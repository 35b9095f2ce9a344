/* Iterators: every move, bounds, and life after the store. */

#include "check.h"

#include <dirent.h>

static sb_db *filled(const char *path) {
    sb_db *db = open_store(path);
    const char *const keys[] = {"a1", "a2", "b1", "b2", "b3", "c1"};
    size_t i;
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        OK(sb_put(db, TEXT(keys[i]), TEXT(keys[i] + 1), &error));
    }
    return db;
}

/* Whether the iterator is at this key, with its second byte as value; NULL: at no row. */
static bool is_at(const sb_iterator *iterator, const char *key) {
    if (key == NULL) {
        return !sb_iterator_valid(iterator) && sb_iterator_key(iterator).data == NULL &&
               sb_iterator_value(iterator).data == NULL;
    }
    return sb_iterator_valid(iterator) && is_text(sb_iterator_key(iterator), key) &&
           is_text(sb_iterator_value(iterator), key + 1);
}

static void moves(const sb_db *db) {
    sb_iterator *it = NULL;
    sb_slice own;
    OK(sb_iterator_new(db, NULL, NULL, &it, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_next(it, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_first(it, &error));
    CHECK(is_at(it, "a1"));
    OK(sb_iterator_next(it, &error));
    CHECK(is_at(it, "a2"));
    OK(sb_iterator_prev(it, &error));
    CHECK(is_at(it, "a1"));
    OK(sb_iterator_prev(it, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_next(it, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_last(it, &error));
    CHECK(is_at(it, "c1"));
    OK(sb_iterator_seek(it, TEXT("a3"), &error));
    CHECK(is_at(it, "b1"));
    OK(sb_iterator_seek_for_prev(it, TEXT("a3"), &error));
    CHECK(is_at(it, "a2"));
    OK(sb_iterator_seek(it, TEXT("z"), &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_seek_for_prev(it, NULL, 0, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_check(it, &error));

    /* To its own key and value, whose memory the move changes. */
    OK(sb_iterator_first(it, &error));
    own = sb_iterator_key(it);
    OK(sb_iterator_seek_for_prev(it, own.data, own.length, &error));
    CHECK(is_at(it, "a1"));
    own = sb_iterator_key(it);
    OK(sb_iterator_seek(it, own.data, own.length, &error));
    CHECK(is_at(it, "a1"));
    own = sb_iterator_value(it);
    OK(sb_iterator_seek(it, own.data, own.length, &error)); /* "1" */
    CHECK(is_at(it, "a1"));

    /* A loop that does not look at the first code must not go on from the row before. */
    RETURNS(SB_INVALID_ARGUMENT, sb_iterator_seek(it, NULL, 1, &error));
    CHECK(is_at(it, NULL));
    RETURNS(SB_INVALID_ARGUMENT, sb_iterator_check(it, &error));
    OK(sb_iterator_next(it, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_last(it, &error));
    RETURNS(SB_INVALID_ARGUMENT, sb_iterator_seek_for_prev(it, "a", (size_t)-1, &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_first(it, &error));
    OK(sb_iterator_check(it, &error));
    sb_iterator_free(it);
}

/* The keys of an iterator, forwards and then backwards, must be these, separated by spaces. */
static void walk(sb_iterator *it, const char *forwards, const char *backwards) {
    char seen[64] = "";
    for (sb_iterator_first(it, NULL); sb_iterator_valid(it); sb_iterator_next(it, NULL)) {
        strncat(seen, (const char *)sb_iterator_key(it).data, sb_iterator_key(it).length);
        strcat(seen, " ");
    }
    OK(sb_iterator_check(it, &error));
    CHECK(strcmp(seen, forwards) == 0);
    seen[0] = 0;
    for (sb_iterator_last(it, NULL); sb_iterator_valid(it); sb_iterator_prev(it, NULL)) {
        strncat(seen, (const char *)sb_iterator_key(it).data, sb_iterator_key(it).length);
        strcat(seen, " ");
    }
    CHECK(strcmp(seen, backwards) == 0);
}

static void bounds(const sb_db *db) {
    sb_iterator *it = NULL;
    sb_slice from = text("a2"), to = text("b3"), none = text("bz");

    OK(sb_iterator_new(db, &from, &to, &it, &error));
    walk(it, "a2 b1 b2 ", "b2 b1 a2 ");
    OK(sb_iterator_seek(it, TEXT("a"), &error));
    CHECK(is_at(it, "a2"));
    OK(sb_iterator_seek(it, TEXT("b3"), &error));
    CHECK(is_at(it, NULL));
    OK(sb_iterator_seek_for_prev(it, TEXT("z"), &error));
    CHECK(is_at(it, "b2"));
    OK(sb_iterator_seek_for_prev(it, TEXT("a1"), &error));
    CHECK(is_at(it, NULL));
    sb_iterator_free(it);

    OK(sb_iterator_new(db, &to, NULL, &it, &error));
    walk(it, "b3 c1 ", "c1 b3 ");
    sb_iterator_free(it);
    OK(sb_iterator_new(db, NULL, &none, &it, &error));
    walk(it, "a1 a2 b1 b2 b3 ", "b3 b2 b1 a2 a1 ");
    sb_iterator_free(it);
    OK(sb_iterator_new(db, &to, &from, &it, &error)); /* backwards: no rows */
    walk(it, "", "");
    sb_iterator_free(it);
    OK(sb_iterator_new_prefix(db, TEXT("b"), &it, &error));
    walk(it, "b1 b2 b3 ", "b3 b2 b1 ");
    sb_iterator_free(it);
    OK(sb_iterator_new_prefix(db, NULL, 0, &it, &error));
    walk(it, "a1 a2 b1 b2 b3 c1 ", "c1 b3 b2 b1 a2 a1 ");
    sb_iterator_free(it);
}

/* What an iterator sees is fixed when it is made, and stays after the store is closed and freed. */
static void moments(sb_db *db, const char *path) {
    sb_iterator *of_store = NULL, *of_snapshot = NULL;
    sb_snapshot *snapshot = NULL;
    sb_slice all = text("b");

    OK(sb_snapshot_new(db, &snapshot, &error));
    OK(sb_delete_range(db, &all, NULL, &error));
    OK(sb_iterator_new(db, NULL, NULL, &of_store, &error));
    OK(sb_snapshot_iterator(snapshot, &all, NULL, &of_snapshot, &error));
    OK(sb_put(db, TEXT("d1"), TEXT("1"), &error));
    OK(sb_flush(db, &error));
    walk(of_store, "a1 a2 ", "a2 a1 ");
    sb_snapshot_free(snapshot);
    close_store(db);
    walk(of_snapshot, "b1 b2 b3 c1 ", "c1 b3 b2 b1 ");
    walk(of_store, "a1 a2 ", "a2 a1 ");
    sb_iterator_free(of_snapshot);

    db = open_store(path); /* while the iterator still exists */
    CHECK(has(db, "d1", "1") && has(db, "b1", NULL));
    walk(of_store, "a1 a2 ", "a2 a1 ");
    sb_iterator_free(of_store);
    close_store(db);
}

/* The path of a file in a directory, by the end of its name. */
static const char *find(const char *dir, const char *end) {
    DIR *open = opendir(dir);
    struct dirent *entry;
    const char *found = NULL;
    CHECK(open != NULL);
    while (found == NULL && (entry = readdir(open)) != NULL) {
        size_t length = strlen(entry->d_name), of_end = strlen(end);
        if (length > of_end && strcmp(entry->d_name + length - of_end, end) == 0) {
            found = in_dir(dir, entry->d_name);
        }
    }
    closedir(open);
    CHECK(found != NULL);
    return found;
}

/* A damaged block is an error that names its file, not a missing row. */
static void damages(const char *dir) {
    sb_db *db = filled(dir);
    sb_iterator *it = NULL;
    sb_value *value = NULL;
    sb_error *failure = NULL;
    uint64_t offset = 0;
    OK(sb_flush(db, &error));
    close_store(db);
    damage(find(dir, ".segment"), 20);
    db = open_store(dir);
    RETURNS(SB_CORRUPTION, sb_get(db, TEXT("b1"), &value, &error));
    CHECK(value == NULL);
    OK(sb_iterator_new(db, NULL, NULL, &it, &error));
    RETURNS(SB_CORRUPTION, sb_iterator_first(it, &error));
    CHECK(is_at(it, NULL));
    CHECK(sb_iterator_check(it, &failure) == SB_CORRUPTION && strstr(sb_error_path(failure), ".segment") != NULL);
    CHECK(sb_error_offset(failure, &offset));
    sb_error_free(failure);
    RETURNS(SB_CORRUPTION, sb_iterator_check(it, &error)); /* as often as it is asked */
    RETURNS(SB_INVALID_ARGUMENT, sb_iterator_seek(it, NULL, 1, &error));
    sb_iterator_free(it);
    sb_db_free(db);
}

int main(int argc, char **argv) {
    const char *path;
    sb_db *db;
    CHECK(argc == 2);
    path = in_dir(argv[1], "songs");
    db = filled(path);
    moves(db);
    bounds(db);
    OK(sb_compact(db, &error));
    moves(db);
    bounds(db);
    moments(db, path);
    damages(in_dir(argv[1], "damaged"));
    return 0;
}
