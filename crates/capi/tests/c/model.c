/* Random operations on a store and on an array, which must agree, over many reopenings. */

#include "check.h"

#define KEYS 64
#define STEPS 6000

static uint64_t state;
static int model[KEYS]; /* the value of each key; -1 if it does not exist */
static sb_db *db;
static const char *path;

static uint32_t random_below(uint32_t end) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % end;
}

static sb_slice key_of(int key) {
    static char keys[4][16];
    static int next = 0;
    char *at = keys[next++ % 4];
    snprintf(at, sizeof keys[0], "key %02d", key);
    return text(at);
}

static void check_value(sb_slice bytes, int expected) {
    int value;
    CHECK(bytes.length == sizeof value);
    memcpy(&value, bytes.data, sizeof value);
    CHECK(value == expected);
}

static void check_key(int number) {
    sb_slice key = key_of(number);
    sb_value *value = NULL;
    uint8_t verdict = 0;
    OK(sb_get(db, key.data, key.length, &value, &error));
    CHECK((value != NULL) == (model[number] >= 0));
    if (value != NULL) {
        check_value(sb_value_bytes(value), model[number]);
        OK(sb_may_contain(db, &key, 1, &verdict, &error));
        CHECK(verdict == 1);
    }
    sb_value_free(value);
}

/* The rows from one key up to another, forwards or backwards. */
static void check_range(int from, int to, bool forwards) {
    sb_slice lower = key_of(from), upper = key_of(to);
    sb_iterator *it = NULL;
    int at = forwards ? from - 1 : to;
    OK(sb_iterator_new(db, &lower, &upper, &it, &error));
    OK(forwards ? sb_iterator_first(it, &error) : sb_iterator_last(it, &error));
    while (sb_iterator_valid(it)) {
        do {
            at += forwards ? 1 : -1;
            CHECK(from <= at && at < to);
        } while (model[at] < 0);
        CHECK(is_text(sb_iterator_key(it), (const char *)key_of(at).data));
        check_value(sb_iterator_value(it), model[at]);
        OK(forwards ? sb_iterator_next(it, &error) : sb_iterator_prev(it, &error));
    }
    for (at += forwards ? 1 : -1; from <= at && at < to; at += forwards ? 1 : -1) {
        CHECK(model[at] < 0);
    }
    sb_iterator_free(it);
}

static void write_batch(void) {
    sb_batch *batch = NULL;
    int i, number, value, new_model[KEYS];
    memcpy(new_model, model, sizeof model);
    OK(sb_batch_new(&batch, &error));
    for (i = 0; i < 8; i++) {
        sb_slice key = key_of(number = (int)random_below(KEYS));
        value = (int)random_below(1000);
        if (random_below(3) == 0) {
            OK(sb_batch_delete(batch, db, key.data, key.length, &error));
            new_model[number] = -1;
        } else {
            OK(sb_batch_put(batch, db, key.data, key.length, &value, sizeof value, &error));
            new_model[number] = value;
        }
    }
    if (random_below(4) == 0) { /* an expectation that fails */
        sb_slice key = key_of(number = (int)random_below(KEYS));
        value = 5000;
        OK(sb_batch_expect(batch, db, key.data, key.length, &value, sizeof value, &error));
        RETURNS(SB_CONFLICT, sb_write(db, batch, SB_DURABILITY_DEFAULT, &error));
    } else {
        OK(sb_write(db, batch, SB_DURABILITY_DEFAULT, &error));
        memcpy(model, new_model, sizeof model);
    }
    sb_batch_free(batch);
}

static void open_small(void) {
    sb_options *options = NULL;
    OK(sb_options_new(SB_INTERFACE, &options, &error));
    OK(sb_options_set_memtable_bytes(options, 16 << 10, &error));
    OK(sb_options_set_segment_bytes(options, 4 << 10, &error));
    OK(sb_open(SB_INTERFACE, path, options, &db, &error));
    sb_options_free(options);
}

static void step(void) {
    int number = (int)random_below(KEYS), to = number + (int)random_below((uint32_t)(KEYS - number));
    int value = (int)random_below(1000), i;
    sb_slice key = key_of(number), end = key_of(to);
    bool is_new = false;
    switch (random_below(40)) {
    case 0:
        OK(sb_delete_range(db, &key, &end, &error));
        for (i = number; i < to; i++) {
            model[i] = -1;
        }
        break;
    case 1:
        OK(sb_flush(db, &error));
        break;
    case 2:
        if (random_below(5) == 0) {
            OK(sb_compact(db, &error));
        }
        break;
    case 3:
        if (random_below(3) == 0) {
            close_store(db);
            open_small();
        }
        break;
    case 4:
    case 5:
        write_batch();
        break;
    case 6:
    case 7:
        check_range(number, to, value % 2 == 0);
        break;
    case 8:
    case 9:
    case 10:
        OK(sb_insert_new(db, key.data, key.length, &value, sizeof value, &is_new, &error));
        CHECK(is_new == (model[number] < 0));
        model[number] = is_new ? value : model[number];
        break;
    case 11:
    case 12:
    case 13:
        OK(sb_delete(db, key.data, key.length, &error));
        model[number] = -1;
        break;
    default:
        if (value % 2 == 0) {
            check_key(number);
        } else {
            OK(sb_put(db, key.data, key.length, &value, sizeof value, &error));
            model[number] = value;
        }
    }
}

int main(int argc, char **argv) {
    int i, steps;
    CHECK(argc == 2);
    path = in_dir(argv[1], "store");
    steps = getenv("SIDEBLOOM_TEST_STEPS") == NULL ? STEPS : atoi(getenv("SIDEBLOOM_TEST_STEPS"));
    for (i = 0; i < KEYS; i++) {
        model[i] = -1;
    }
    open_small();
    for (i = 0; i < steps; i++) {
        state += (uint64_t)i;
        step();
    }
    for (i = 0; i < KEYS; i++) {
        check_key(i);
    }
    check_range(0, KEYS, true);
    close_store(db);
    return 0;
}
