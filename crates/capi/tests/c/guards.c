/* Guards: what they answer, how they change and survive, and bad input to each function. */

#include "check.h"

#include <sys/stat.h>

#define BAD SB_INVALID_ARGUMENT

static const char *dir;

static bool may(const sb_guard *guard, const char *key) {
    sb_slice asked = text(key);
    uint8_t verdict = 2;
    OK(sb_guard_may_contain(guard, &asked, 1, &verdict, &error));
    return verdict == 1;
}

static void answers(void) {
    const char *path = in_dir(dir, "songs");
    sb_slice titles[3];
    sb_guard *guard = NULL, *second = NULL, *reader = NULL;
    sb_value *json = NULL;
    bool yes = false;

    titles[0] = text("Sinnerman");
    titles[1] = text("Zombie");
    titles[2] = text("Zombie  ");
    OK(sb_guard_build(SB_INTERFACE, path, titles, 3, "pad", SB_DURABILITY_OS, &guard, &error));
    CHECK(may(guard, "Sinnerman") && may(guard, "Zombie ") && !may(guard, "Freebird"));
    OK(sb_guard_contains(guard, TEXT("Zombie"), &yes, &error));
    CHECK(yes);
    OK(sb_guard_insert(guard, TEXT("Freebird"), &error));
    CHECK(may(guard, "Freebird"));
    OK(sb_guard_insert_new(guard, TEXT("Freebird"), &yes, &error));
    CHECK(!yes);
    OK(sb_guard_insert_new(guard, TEXT("Azul"), &yes, &error));
    CHECK(yes);
    OK(sb_guard_remove(guard, TEXT("Azul"), &error));
    OK(sb_guard_contains(guard, TEXT("Azul"), &yes, &error));
    CHECK(!yes);
    OK(sb_guard_remove(guard, TEXT("Zombie"), &error)); /* one of two rows */
    OK(sb_guard_contains(guard, TEXT("Zombie"), &yes, &error));
    CHECK(yes);
    OK(sb_guard_sync(guard, &error));
    OK(sb_guard_stats(guard, &json, &error));
    CHECK(strstr((const char *)sb_value_bytes(json).data, "\"rows\":3,\"keys\":3,") != NULL);
    sb_value_free(json);

    RETURNS(SB_LOCKED, sb_guard_open(SB_INTERFACE, path, false, SB_DURABILITY_DEFAULT, &second, &error));
    CHECK(second == NULL);
    OK(sb_guard_close(guard, &error));
    OK(sb_guard_open(SB_INTERFACE, path, true, SB_DURABILITY_DEFAULT, &second, &error));
    OK(sb_guard_open(SB_INTERFACE, path, true, SB_DURABILITY_DEFAULT, &reader, &error));
    CHECK(may(second, "Freebird") && may(reader, "Zombie") && !may(reader, "Azul"));
    RETURNS(SB_READ_ONLY, sb_guard_insert(second, TEXT("Azul"), &error));
    OK(sb_guard_close(second, &error));
    sb_guard_free(second);
    sb_guard_free(reader); /* without a close */
    sb_guard_free(guard);

    OK(sb_guard_open(SB_INTERFACE, path, false, SB_DURABILITY_SYNC, &guard, &error));
    OK(sb_guard_insert(guard, TEXT("Azul"), &error));
    OK(sb_guard_close(guard, &error));
    sb_guard_free(guard);
}

/* Every function that takes a handle, with this one. */
static void with_handle(const sb_guard *guard, int expected) {
    sb_slice key = text("k");
    sb_value *json = NULL;
    uint8_t verdict = 0;
    bool yes = true;
    RETURNS(expected, sb_guard_may_contain(guard, &key, 1, &verdict, &error));
    CHECK(verdict == 1); /* never a false "absent" */
    RETURNS(expected, sb_guard_contains(guard, TEXT("k"), &yes, &error));
    CHECK(!yes);
    RETURNS(expected, sb_guard_insert(guard, TEXT("k"), &error));
    RETURNS(expected, sb_guard_insert_new(guard, TEXT("k"), &yes, &error));
    RETURNS(expected, sb_guard_remove(guard, TEXT("k"), &error));
    RETURNS(expected, sb_guard_sync(guard, &error));
    RETURNS(expected, sb_guard_stats(guard, &json, &error));
    CHECK(json == NULL);
    RETURNS(expected, sb_guard_close(guard, &error));
}

static void bad_input(void) {
    sb_slice key = text("k"), null = slice(NULL, 1);
    sb_guard *guard = NULL;
    sb_error *error = NULL;
    sb_db *db;
    uint8_t verdict = 0;
    bool yes = false;

    RETURNS(SB_INTERFACE_MISMATCH, sb_guard_build(9, in_dir(dir, "new"), &key, 1, NULL, 0, &guard, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_guard_open(9, in_dir(dir, "songs"), true, 0, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, NULL, &key, 1, NULL, 0, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, in_dir(dir, "new"), NULL, 1, NULL, 0, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, in_dir(dir, "new"), &null, 1, NULL, 0, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, in_dir(dir, "new"), &key, (size_t)-1, NULL, 0, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, in_dir(dir, "new"), &key, 1, "alike", 0, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, in_dir(dir, "new"), &key, 1, NULL, 3, &guard, &error));
    RETURNS(BAD, sb_guard_build(SB_INTERFACE, in_dir(dir, "new"), &key, 1, NULL, 0, NULL, &error));
    RETURNS(BAD, sb_guard_open(SB_INTERFACE, NULL, true, 0, &guard, &error));
    RETURNS(BAD, sb_guard_open(SB_INTERFACE, in_dir(dir, "songs"), true, 3, &guard, &error));
    RETURNS(BAD, sb_guard_open(SB_INTERFACE, in_dir(dir, "songs"), true, 0, NULL, &error));

    RETURNS(SB_NOT_A_GUARD, sb_guard_build(SB_INTERFACE, in_dir(dir, "songs"), &key, 1, NULL, 0, &guard, &error));
    CHECK(sb_guard_open(SB_INTERFACE, in_dir(dir, "missing"), false, 0, &guard, &error) == SB_NOT_A_GUARD);
    CHECK(strstr(sb_error_path(error), "missing") != NULL);
    sb_error_free(error);
    db = open_store(in_dir(dir, "store"));
    RETURNS(SB_NOT_A_GUARD, sb_guard_open(SB_INTERFACE, in_dir(dir, "store"), false, 0, &guard, &error));
    close_store(db);
    damage(in_dir(dir, "songs/GUARD"), -1);
    CHECK(sb_guard_open(SB_INTERFACE, in_dir(dir, "songs"), false, 0, &guard, &error) == SB_CORRUPTION);
    CHECK(strstr(sb_error_path(error), "GUARD") != NULL && guard == NULL);
    sb_error_free(error);

    OK(sb_guard_build(SB_INTERFACE, in_dir(dir, "empty"), NULL, 0, NULL, SB_DURABILITY_OS, &guard, &error));
    RETURNS(BAD, sb_guard_may_contain(guard, NULL, 1, &verdict, &error));
    RETURNS(BAD, sb_guard_may_contain(guard, &null, 1, &verdict, &error));
    RETURNS(BAD, sb_guard_may_contain(guard, &key, 1, NULL, &error));
    RETURNS(BAD, sb_guard_contains(guard, NULL, 1, &yes, &error));
    RETURNS(BAD, sb_guard_contains(guard, "k", 1, NULL, &error));
    RETURNS(BAD, sb_guard_insert(guard, NULL, 1, &error));
    RETURNS(BAD, sb_guard_insert(guard, "k", (size_t)-1, &error));
    RETURNS(BAD, sb_guard_insert_new(guard, NULL, 1, &yes, &error));
    RETURNS(BAD, sb_guard_insert_new(guard, "k", 1, NULL, &error));
    RETURNS(BAD, sb_guard_remove(guard, NULL, 1, &error));
    RETURNS(BAD, sb_guard_stats(guard, NULL, &error));
    CHECK(!may(guard, "k"));
    OK(sb_guard_close(guard, &error));
    with_handle(guard, SB_CLOSED);
    with_handle(NULL, BAD);
    sb_guard_free(guard);
    sb_guard_free(NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    dir = argv[1];
    answers();
    bad_input();
    return 0;
}
