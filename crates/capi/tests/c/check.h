/* What the test programs share: checks that say where they failed. Compiles as C99 and as C++11. */

#ifndef CHECK_H
#define CHECK_H

#include "sidebloom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stops the program unless the condition holds. */
#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

/* Stops the program unless `call`, which passes `&error`, returns `expected`, and an error object to match. */
#define RETURNS(expected, call)                                                                            \
    do {                                                                                                   \
        sb_error *error = NULL;                                                                            \
        int returned_ = (int)(call);                                                                       \
        check_returned((int)(expected), returned_, error, __FILE__, __LINE__, #call);                      \
        sb_error_free(error);                                                                              \
    } while (0)

#define OK(call) RETURNS(SB_OK, call)

/* Bytes by pointer and length, for calls that take both. */
#define TEXT(text) (text), strlen(text)

#define UNUSED __attribute__((unused))

static UNUSED void check_returned(int expected, int returned, const sb_error *error, const char *file, int line,
                                  const char *call) {
    const char *message = sb_error_message(error);
    if (returned != expected || (int)sb_error_code(error) != expected || (error == NULL) != (expected == SB_OK) ||
        (message[0] == 0) != (expected == SB_OK)) {
        fprintf(stderr, "%s:%d: %s returned %s, not %s: %s\n", file, line, call, sb_code_name(returned),
                sb_code_name(expected), message);
        exit(1);
    }
}

static UNUSED sb_slice slice(const void *data, size_t length) {
    sb_slice made;
    made.data = data;
    made.length = length;
    return made;
}

static UNUSED sb_slice text(const char *text) { return slice(text, strlen(text)); }

static UNUSED bool is_text(sb_slice bytes, const char *expected) {
    return bytes.length == strlen(expected) && memcmp(bytes.data, expected, bytes.length) == 0;
}

/* A path in the directory that the program was given. The result lives until the next call but seven. */
static UNUSED const char *in_dir(const char *dir, const char *name) {
    static char paths[8][4096];
    static int next = 0;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static UNUSED sb_db *open_store(const char *path) {
    sb_db *db = NULL;
    OK(sb_open(SB_INTERFACE, path, NULL, &db, &error));
    return db;
}

static UNUSED void close_store(sb_db *db) {
    OK(sb_close(db, &error));
    sb_db_free(db);
}

/* Whether the key has this value; NULL: whether it is absent. */
static UNUSED bool has(const sb_db *db, const char *key, const char *expected) {
    sb_value *value = NULL;
    bool is_so;
    OK(sb_get(db, TEXT(key), &value, &error));
    is_so = expected == NULL ? value == NULL : value != NULL && is_text(sb_value_bytes(value), expected);
    sb_value_free(value);
    return is_so;
}

static UNUSED void write_file(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
}

/* Flips a byte of a file; a negative offset counts from its end. */
static UNUSED void damage(const char *path, long offset) {
    FILE *file = fopen(path, "r+b");
    int byte;
    CHECK(file != NULL && fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET) == 0);
    offset = ftell(file);
    byte = fgetc(file);
    CHECK(byte != EOF && fseek(file, offset, SEEK_SET) == 0 && fputc(byte ^ 0x55, file) != EOF);
    CHECK(fclose(file) == 0);
}

#endif
