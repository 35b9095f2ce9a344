/* Eight threads on one handle: of those that insert a key, one wins; a close waits for their calls. */

#include "check.h"

#include <pthread.h>

#define THREADS 8
#define KEYS 2000

static sb_db *db;
static sb_guard *guard;
static int wins[THREADS], guard_wins[THREADS], closed[THREADS];

static void *work(void *number) {
    int me = (int)(size_t)number, i;
    char key[32], own[32];
    sb_value *value = NULL;
    bool is_new = false;
    for (i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "shared %d", i);
        OK(sb_insert_new(db, TEXT(key), &me, sizeof me, &is_new, &error));
        wins[me] += is_new;
        OK(sb_get(db, TEXT(key), &value, &error));
        CHECK(value != NULL && sb_value_bytes(value).length == sizeof me);
        CHECK(!is_new || memcmp(sb_value_bytes(value).data, &me, sizeof me) == 0);
        sb_value_free(value);
        snprintf(own, sizeof own, "own %d %d", me, i);
        OK(sb_put(db, TEXT(own), TEXT(key), &error));
        CHECK(has(db, own, key));
        if (i % 10 == 0) {
            OK(sb_guard_insert_new(guard, TEXT(key), &is_new, &error));
            guard_wins[me] += is_new;
        }
    }
    return NULL;
}

/* Writes until another thread closes the handle. */
static void *write_until_closed(void *number) {
    int me = (int)(size_t)number;
    sb_code code = SB_OK;
    while (code == SB_OK) {
        code = sb_put(db, &me, sizeof me, TEXT("value"), NULL);
    }
    closed[me] = code == SB_CLOSED;
    return NULL;
}

static void in_threads(void *(*body)(void *), void (*meanwhile)(void)) {
    pthread_t threads[THREADS];
    size_t i;
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    }
    if (meanwhile != NULL) {
        meanwhile();
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void close_handle(void) { OK(sb_close(db, &error)); }

int main(int argc, char **argv) {
    int i, sum = 0, guard_sum = 0;
    CHECK(argc == 2);
    db = open_store(in_dir(argv[1], "store"));
    OK(sb_guard_build(SB_INTERFACE, in_dir(argv[1], "guard"), NULL, 0, NULL, SB_DURABILITY_OS, &guard, &error));
    in_threads(work, NULL);
    for (i = 0; i < THREADS; i++) {
        sum += wins[i];
        guard_sum += guard_wins[i];
    }
    CHECK(sum == KEYS && guard_sum == KEYS / 10);
    OK(sb_guard_close(guard, &error));
    sb_guard_free(guard);

    in_threads(write_until_closed, close_handle);
    for (i = 0; i < THREADS; i++) {
        CHECK(closed[i]);
    }
    sb_db_free(db);
    db = open_store(in_dir(argv[1], "store"));
    CHECK(has(db, "own 7 1999", "shared 1999"));
    close_store(db);
    return 0;
}
