/* A forked process: reads as of the fork, SB_FORKED for everything else, and nothing happens to the parent. */

#include "check.h"

#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void in_child(sb_db *db, sb_guard *guard, const char *dir) {
    sb_slice absent = text("absent");
    sb_iterator *it = NULL;
    sb_batch *batch = NULL;
    sb_db *keyspace = NULL;
    bool yes = false;
    uint8_t verdict = 0;

    CHECK(has(db, "a", "1") && has(db, "absent", NULL));
    OK(sb_iterator_new(db, NULL, NULL, &it, &error));
    OK(sb_iterator_first(it, &error));
    CHECK(is_text(sb_iterator_key(it), "a"));
    sb_iterator_free(it);

    RETURNS(SB_FORKED, sb_put(db, TEXT("b"), TEXT("2"), &error));
    RETURNS(SB_FORKED, sb_delete(db, TEXT("a"), &error));
    RETURNS(SB_FORKED, sb_insert_new(db, TEXT("b"), TEXT("2"), &yes, &error));
    CHECK(!yes);
    OK(sb_batch_new(&batch, &error));
    OK(sb_batch_put(batch, db, TEXT("b"), TEXT("2"), &error));
    RETURNS(SB_FORKED, sb_write(db, batch, SB_DURABILITY_SYNC, &error));
    sb_batch_free(batch);
    RETURNS(SB_FORKED, sb_sync(db, &error));
    RETURNS(SB_FORKED, sb_flush(db, &error));
    RETURNS(SB_FORKED, sb_compact(db, &error));
    RETURNS(SB_FORKED, sb_checkpoint(db, in_dir(dir, "copy"), &error));
    RETURNS(SB_FORKED, sb_keyspace_create(db, "users", 0, &keyspace, &error));
    RETURNS(SB_FORKED, sb_close(db, &error));
    RETURNS(SB_CLOSED, sb_put(db, TEXT("b"), TEXT("2"), &error));
    sb_db_free(db);

    OK(sb_guard_may_contain(guard, &absent, 1, &verdict, &error));
    CHECK(verdict == 1);
    RETURNS(SB_FORKED, sb_guard_contains(guard, TEXT("absent"), &yes, &error));
    RETURNS(SB_FORKED, sb_guard_insert(guard, TEXT("b"), &error));
    RETURNS(SB_FORKED, sb_guard_insert_new(guard, TEXT("b"), &yes, &error));
    RETURNS(SB_FORKED, sb_guard_sync(guard, &error));
    RETURNS(SB_FORKED, sb_guard_close(guard, &error));
    sb_guard_free(guard);
}

static sb_db *busy;
static volatile bool is_over = false;

static void *write_and_read(void *number) {
    int me = (int)(size_t)number;
    while (!is_over) {
        OK(sb_put(busy, &me, sizeof me, TEXT("value"), &error));
        CHECK(has(busy, "a", "1"));
    }
    return NULL;
}

/* The calls of other threads never end in a forked process: closing a handle there must not wait for them. */
static void forks_during_calls(const char *path) {
    pthread_t threads[4];
    size_t i;
    busy = open_store(path);
    OK(sb_put(busy, TEXT("a"), TEXT("1"), &error));
    for (i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, write_and_read, (void *)i) == 0);
    }
    for (i = 0; i < 20; i++) {
        int status = 0;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60); /* kills a child that waits */
            CHECK(has(busy, "a", "1"));
            RETURNS(SB_FORKED, sb_put(busy, TEXT("a"), TEXT("2"), &error));
            RETURNS(SB_FORKED, sb_close(busy, &error));
            sb_db_free(busy);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    is_over = true;
    for (i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(has(busy, "a", "1"));
    close_store(busy);
}

int main(int argc, char **argv) {
    sb_db *db;
    sb_guard *guard = NULL;
    pid_t child;
    int status = 0;
    uint8_t verdict = 1;
    sb_slice absent = text("absent");

    CHECK(argc == 2);
    db = open_store(in_dir(argv[1], "store"));
    OK(sb_put(db, TEXT("a"), TEXT("1"), &error));
    OK(sb_guard_build(SB_INTERFACE, in_dir(argv[1], "guard"), NULL, 0, NULL, SB_DURABILITY_OS, &guard, &error));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        in_child(db, guard, argv[1]);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(access(in_dir(argv[1], "copy"), F_OK) != 0);

    OK(sb_put(db, TEXT("b"), TEXT("2"), &error));
    OK(sb_guard_may_contain(guard, &absent, 1, &verdict, &error));
    CHECK(verdict == 0);
    OK(sb_guard_insert(guard, TEXT("b"), &error));
    OK(sb_guard_close(guard, &error));
    sb_guard_free(guard);
    close_store(db);
    db = open_store(in_dir(argv[1], "store"));
    CHECK(has(db, "a", "1") && has(db, "b", "2"));
    close_store(db);
    forks_during_calls(in_dir(argv[1], "busy"));
    return 0;
}
