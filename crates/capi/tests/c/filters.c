/* Filters of every kind: what they answer, their files and messages, and bad input to each function. */

#include "check.h"

#define BAD SB_INVALID_ARGUMENT
#define KEYS 3000
#define OTHERS 100000

static const char *dir;
static uint64_t numbers[KEYS + OTHERS]; /* the first KEYS are in the filters */
static sb_slice keys[KEYS + OTHERS];
static uint8_t verdicts[KEYS + OTHERS];

static size_t maybes(size_t from, size_t to) {
    size_t count = 0;
    for (; from < to; from++) {
        count += verdicts[from];
    }
    return count;
}

/* The filter has all keys, and errs for the others as it says. */
static void check_answers(const sb_filter *filter, double rate) {
    static uint8_t again[KEYS + OTHERS];
    static int32_t offsets[KEYS + OTHERS + 1];
    static int64_t large[KEYS + OTHERS + 1];
    size_t i, wrong;
    bool maybe = false;

    OK(sb_filter_contains_many(filter, keys, KEYS + OTHERS, verdicts, &error));
    CHECK(maybes(0, KEYS) == KEYS);
    wrong = maybes(KEYS, KEYS + OTHERS);
    CHECK((double)wrong < rate * OTHERS * 1.5 + 20);
    /* The key of a counting filter's hash is random, and so are its bits: 10 % are four standard deviations. */
    CHECK(sb_filter_rate(filter) <= (strcmp(sb_filter_kind_name(filter), "counting") == 0 ? 1.1 : 1.0) * rate);
    CHECK(sb_filter_rate(filter) > 0);

    OK(sb_filter_contains_fixed(filter, numbers, 8, KEYS + OTHERS, again, &error));
    CHECK(memcmp(verdicts, again, sizeof again) == 0);
    for (i = 0; i <= KEYS + OTHERS; i++) {
        offsets[i] = (int32_t)(8 * i);
        large[i] = 8 * (int64_t)i;
    }
    memset(again, 2, sizeof again);
    OK(sb_filter_contains_offsets(filter, numbers, sizeof numbers, offsets, KEYS + OTHERS, again, &error));
    CHECK(memcmp(verdicts, again, sizeof again) == 0);
    memset(again, 2, sizeof again);
    OK(sb_filter_contains_large_offsets(filter, numbers, sizeof numbers, large, KEYS + OTHERS, again, &error));
    CHECK(memcmp(verdicts, again, sizeof again) == 0);
    for (i = 0; i < KEYS + OTHERS; i += 997) {
        OK(sb_filter_contains(filter, keys[i].data, keys[i].length, &maybe, &error));
        CHECK(maybe == (verdicts[i] == 1));
    }
}

static void kind(uint32_t kind, const char *name, double rate) {
    sb_filter *filter = NULL, *read = NULL, *mapped = NULL, *received = NULL;
    sb_error *failure = NULL;
    sb_value *message = NULL;
    sb_slice bytes;
    bool is_mapped = kind != SB_FILTER_KIND_COUNTING && kind != SB_FILTER_KIND_SCALABLE;
    OK(sb_filter_build(SB_INTERFACE, kind, keys, KEYS, rate, &filter, &error));
    CHECK(strcmp(sb_filter_kind_name(filter), name) == 0);
    CHECK(sb_filter_keys(filter) > KEYS - 100 && sb_filter_keys(filter) <= KEYS);
    CHECK(sb_filter_capacity(filter) >= KEYS && sb_filter_bytes(filter) > KEYS / 2);
    check_answers(filter, rate);
    OK(sb_filter_save(filter, in_dir(dir, name), &error));
    OK(sb_filter_open(SB_INTERFACE, in_dir(dir, name), &read, &error));
    check_answers(read, rate);
    OK(sb_filter_map(SB_INTERFACE, in_dir(dir, name), &mapped, &error));
    check_answers(mapped, rate);
    CHECK(strcmp(sb_filter_kind_name(mapped), name) == 0 && sb_filter_rate(mapped) == sb_filter_rate(filter));
    CHECK(sb_filter_keys(mapped) == sb_filter_keys(filter) && sb_filter_bytes(mapped) == sb_filter_bytes(filter));
    CHECK(sb_filter_capacity(mapped) == sb_filter_keys(filter));
    RETURNS(BAD, sb_filter_insert(mapped, TEXT("ann"), NULL, &error));
    RETURNS(BAD, sb_filter_insert_many(mapped, keys, 2, &error));
    RETURNS(BAD, sb_filter_remove(mapped, TEXT("ann"), NULL, &error));
    OK(sb_filter_save(mapped, in_dir(dir, "copy"), &error));
    sb_filter_free(mapped);
    OK(sb_filter_map(SB_INTERFACE, in_dir(dir, "copy"), &mapped, &error));
    OK(sb_filter_encode(mapped, &message, &error));
    sb_value_free(message);
    sb_filter_free(mapped);
    OK(sb_filter_encode(filter, &message, &error));
    bytes = sb_value_bytes(message);
    OK(sb_filter_decode(SB_INTERFACE, bytes.data, bytes.length, 1 << 20, &received, &error));
    check_answers(received, rate);
    sb_filter_free(received);
    RETURNS(SB_TOO_LARGE, sb_filter_decode(SB_INTERFACE, bytes.data, bytes.length, 100, &received, &error));
    RETURNS(SB_CORRUPTION, sb_filter_decode(SB_INTERFACE, bytes.data, bytes.length / 2, 1 << 20, &received, &error));
    CHECK(received == NULL);
    sb_value_free(message);
    sb_filter_free(read);
    damage(in_dir(dir, name), 4096 + 100);
    RETURNS(SB_CORRUPTION, sb_filter_open(SB_INTERFACE, in_dir(dir, name), &read, &error));
    CHECK(read == NULL);
    if (is_mapped) {
        OK(sb_filter_map(SB_INTERFACE, in_dir(dir, name), &mapped, &error));
        memset(verdicts, 2, sizeof verdicts);
        CHECK(sb_filter_contains_many(mapped, keys, KEYS, verdicts, &failure) == SB_CORRUPTION);
        CHECK(strcmp(sb_error_path(failure), in_dir(dir, name)) == 0);
        sb_error_free(failure);
        sb_filter_free(mapped);
    } else {
        RETURNS(SB_CORRUPTION, sb_filter_map(SB_INTERFACE, in_dir(dir, name), &mapped, &error));
    }
    sb_filter_free(filter);
}

static void changes(void) {
    sb_filter *filter = NULL, *small = NULL, *parity = NULL;
    bool changed = false, maybe = true;
    size_t i;
    sb_code code = SB_OK;

    OK(sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_COUNTING, KEYS, 0.001, &filter, &error));
    OK(sb_filter_insert_many(filter, keys, 100, &error));
    OK(sb_filter_insert(filter, TEXT("ann"), &changed, &error));
    CHECK(changed && sb_filter_keys(filter) == 101);
    OK(sb_filter_remove(filter, TEXT("ann"), &changed, &error));
    CHECK(changed);
    OK(sb_filter_contains(filter, TEXT("ann"), &maybe, &error));
    CHECK(!maybe);
    OK(sb_filter_remove(filter, TEXT("ann"), &changed, &error));
    CHECK(!changed);
    OK(sb_filter_insert(filter, TEXT("bob"), NULL, &error));
    OK(sb_filter_remove(filter, TEXT("bob"), NULL, &error));
    sb_filter_free(filter);

    OK(sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_BLOOM, 10, 0.01, &small, &error));
    for (i = 0; i < 1000 && code == SB_OK; i++) {
        code = sb_filter_insert(small, keys[i].data, keys[i].length, NULL, NULL);
    }
    CHECK(code == SB_FILTER_FULL && i > 10);
    RETURNS(BAD, sb_filter_remove(small, TEXT("ann"), &changed, &error));
    OK(sb_filter_build(SB_INTERFACE, SB_FILTER_KIND_PARITY, keys, 10, 0.01, &parity, &error));
    RETURNS(BAD, sb_filter_insert(parity, TEXT("ann"), &changed, &error));
    RETURNS(BAD, sb_filter_insert_many(parity, keys, 2, &error));
    sb_filter_free(parity);
    sb_filter_free(small);
    OK(sb_filter_build(SB_INTERFACE, SB_FILTER_KIND_PARITY, NULL, 0, 0.01, &parity, &error)); /* of no keys */
    OK(sb_filter_contains(parity, TEXT("ann"), &maybe, &error));
    CHECK(!maybe);
    sb_filter_free(parity);
}

static void combinations(void) {
    sb_filter *a = NULL, *b = NULL, *smaller = NULL, *parity = NULL, *both = NULL;
    OK(sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_BLOOM, KEYS, 0.001, &a, &error));
    OK(sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_BLOOM, KEYS, 0.001, &b, &error));
    OK(sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_BLOOM, KEYS / 2, 0.001, &smaller, &error));
    OK(sb_filter_build(SB_INTERFACE, SB_FILTER_KIND_PARITY, keys, 100, 0.01, &parity, &error));
    OK(sb_filter_insert_many(a, keys, 1000, &error));
    OK(sb_filter_insert_many(b, keys + 500, 1000, &error));
    OK(sb_filter_union(a, b, &both, &error));
    OK(sb_filter_contains_many(both, keys, KEYS, verdicts, &error));
    CHECK(maybes(0, 1500) == 1500 && maybes(1500, KEYS) < 20);
    sb_filter_free(both);
    OK(sb_filter_intersection(a, b, &both, &error));
    OK(sb_filter_contains_many(both, keys, KEYS, verdicts, &error));
    CHECK(maybes(500, 1000) == 500 && maybes(0, 500) < 100 && maybes(1000, KEYS) < 100);
    sb_filter_free(both);
    OK(sb_filter_union(a, a, &both, &error));
    sb_filter_free(both);
    both = a;
    RETURNS(SB_FILTER_MISMATCH, sb_filter_union(a, smaller, &both, &error));
    CHECK(both == NULL);
    RETURNS(SB_FILTER_MISMATCH, sb_filter_intersection(a, smaller, &both, &error));
    RETURNS(SB_FILTER_MISMATCH, sb_filter_union(parity, a, &both, &error));
    RETURNS(BAD, sb_filter_union(NULL, a, &both, &error));
    RETURNS(BAD, sb_filter_union(a, NULL, &both, &error));
    RETURNS(BAD, sb_filter_union(a, b, NULL, &error));
    RETURNS(BAD, sb_filter_intersection(NULL, a, &both, &error));
    RETURNS(BAD, sb_filter_intersection(a, b, NULL, &error));
    sb_filter_free(a);
    sb_filter_free(b);
    sb_filter_free(smaller);
    sb_filter_free(parity);
}

static void bad_input(void) {
    sb_filter *filter = NULL, *other = NULL;
    sb_value *message = NULL;
    sb_slice null = slice(NULL, 1);
    uint32_t kinds;
    double rates[5], zero = 0.0;
    int32_t down[3] = {0, 8, 4}, outside[2] = {0, 9}, negative[2] = {-8, 8};
    int64_t far[2] = {0, INT64_MAX};
    bool maybe = false;
    uint8_t answer = 0;
    size_t i;

    CHECK(sb_filter_keys(NULL) == 0 && sb_filter_capacity(NULL) == 0 && sb_filter_bytes(NULL) == 0);
    CHECK(sb_filter_rate(NULL) == 1 && sb_filter_kind_name(NULL)[0] == 0);
    sb_filter_free(NULL);
    rates[0] = 0;
    rates[1] = 1;
    rates[2] = -0.5;
    rates[3] = zero / zero;
    rates[4] = 1 / zero;
    for (kinds = SB_FILTER_KIND_PARITY; kinds <= SB_FILTER_KIND_SCALABLE; kinds++) {
        for (i = 0; i < 5; i++) {
            RETURNS(BAD, sb_filter_build(SB_INTERFACE, kinds, keys, 10, rates[i], &filter, &error));
            RETURNS(BAD, sb_filter_new(SB_INTERFACE, kinds, 10, rates[i], &filter, &error));
        }
        RETURNS(BAD, sb_filter_build(SB_INTERFACE, kinds, keys, 10, 1e-300, &filter, &error));
        RETURNS(BAD, sb_filter_build(SB_INTERFACE, kinds, NULL, 10, 0.1, &filter, &error));
        RETURNS(BAD, sb_filter_build(SB_INTERFACE, kinds, keys, (size_t)-1, 0.1, &filter, &error));
        RETURNS(BAD, sb_filter_build(SB_INTERFACE, kinds, &null, 1, 0.1, &filter, &error));
        RETURNS(BAD, sb_filter_build(SB_INTERFACE, kinds, keys, 10, 0.1, NULL, &error));
        RETURNS(SB_INTERFACE_MISMATCH, sb_filter_build(9, kinds, keys, 10, 0.1, &filter, &error));
        RETURNS(BAD, sb_filter_new(SB_INTERFACE, kinds, 0, 0.1, &filter, &error));
    }
    RETURNS(BAD, sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_PARITY, 10, 0.1, &filter, &error));
    RETURNS(BAD, sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_BLOOM, 10, 0.1, NULL, &error));
    RETURNS(SB_TOO_LARGE, sb_filter_new(SB_INTERFACE, SB_FILTER_KIND_BLOOM, UINT64_MAX, 0.1, &filter, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_filter_new(9, SB_FILTER_KIND_BLOOM, 10, 0.1, &filter, &error));
    RETURNS(BAD, sb_filter_new(SB_INTERFACE, 0, 10, 0.1, &filter, &error));
    RETURNS(BAD, sb_filter_build(SB_INTERFACE, 6, keys, 10, 0.1, &filter, &error));
    CHECK(filter == NULL);

    RETURNS(SB_IO, sb_filter_open(SB_INTERFACE, in_dir(dir, "missing"), &filter, &error));
    RETURNS(SB_IO, sb_filter_map(SB_INTERFACE, in_dir(dir, "missing"), &filter, &error));
    write_file(in_dir(dir, "text"), "not a filter", 12);
    RETURNS(SB_CORRUPTION, sb_filter_open(SB_INTERFACE, in_dir(dir, "text"), &filter, &error));
    RETURNS(BAD, sb_filter_open(SB_INTERFACE, NULL, &filter, &error));
    RETURNS(BAD, sb_filter_open(SB_INTERFACE, in_dir(dir, "text"), NULL, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_filter_open(9, in_dir(dir, "text"), &filter, &error));
    RETURNS(SB_CORRUPTION, sb_filter_map(SB_INTERFACE, in_dir(dir, "text"), &filter, &error));
    RETURNS(BAD, sb_filter_map(SB_INTERFACE, NULL, &filter, &error));
    RETURNS(BAD, sb_filter_map(SB_INTERFACE, in_dir(dir, "text"), NULL, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_filter_map(9, in_dir(dir, "text"), &filter, &error));
    RETURNS(SB_INTERFACE_MISMATCH, sb_filter_decode(9, "x", 1, 100, &filter, &error));
    RETURNS(SB_CORRUPTION, sb_filter_decode(SB_INTERFACE, "x", 1, 100, &filter, &error));
    RETURNS(BAD, sb_filter_decode(SB_INTERFACE, NULL, 1, 100, &filter, &error));
    RETURNS(BAD, sb_filter_decode(SB_INTERFACE, "x", 1, 100, NULL, &error));

    OK(sb_filter_build(SB_INTERFACE, SB_FILTER_KIND_BLOCKED, keys, 10, 0.01, &filter, &error));
    RETURNS(BAD, sb_filter_save(NULL, in_dir(dir, "never"), &error));
    RETURNS(BAD, sb_filter_save(filter, NULL, &error));
    RETURNS(SB_IO, sb_filter_save(filter, in_dir(dir, "no/such/directory"), &error));
    RETURNS(BAD, sb_filter_encode(NULL, &message, &error));
    RETURNS(BAD, sb_filter_encode(filter, NULL, &error));
    RETURNS(BAD, sb_filter_contains(NULL, "k", 1, &maybe, &error));
    CHECK(maybe); /* never a false "absent" */
    RETURNS(BAD, sb_filter_contains(filter, NULL, 1, &maybe, &error));
    RETURNS(BAD, sb_filter_contains(filter, "k", 1, NULL, &error));
    RETURNS(BAD, sb_filter_contains(filter, "k", (size_t)-5, &maybe, &error));
    RETURNS(BAD, sb_filter_contains_many(NULL, keys, 1, &answer, &error));
    CHECK(answer == 1);
    RETURNS(BAD, sb_filter_contains_many(filter, NULL, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_many(filter, keys, 1, NULL, &error));
    RETURNS(BAD, sb_filter_contains_many(filter, &null, 1, &answer, &error));
    OK(sb_filter_contains_many(filter, NULL, 0, NULL, &error));
    RETURNS(BAD, sb_filter_contains_fixed(NULL, numbers, 8, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_fixed(filter, NULL, 8, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_fixed(filter, numbers, 8, 1, NULL, &error));
    RETURNS(BAD, sb_filter_contains_fixed(filter, numbers, (size_t)-1, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_fixed(filter, numbers, SIZE_MAX / 2, 4, verdicts, &error));
    OK(sb_filter_contains_fixed(filter, NULL, 0, 5, verdicts, &error)); /* five empty keys */
    RETURNS(BAD, sb_filter_contains_offsets(NULL, numbers, 8, outside, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_offsets(filter, numbers, 8, outside, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_offsets(filter, numbers, 8, negative, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_offsets(filter, numbers, 8, down, 2, verdicts, &error));
    CHECK(verdicts[0] == 1 && verdicts[1] == 1);
    RETURNS(BAD, sb_filter_contains_offsets(filter, numbers, 8, NULL, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_offsets(filter, NULL, 8, down, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_offsets(filter, numbers, 8, down, 1, NULL, &error));
    RETURNS(BAD, sb_filter_contains_offsets(filter, numbers, 8, down, SIZE_MAX, verdicts, &error));
    RETURNS(BAD, sb_filter_contains_large_offsets(filter, numbers, 8, far, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_large_offsets(NULL, numbers, 8, far, 1, &answer, &error));
    RETURNS(BAD, sb_filter_contains_large_offsets(filter, numbers, 8, NULL, 1, &answer, &error));
    RETURNS(BAD, sb_filter_insert(NULL, "k", 1, &maybe, &error));
    RETURNS(BAD, sb_filter_insert(filter, NULL, 1, &maybe, &error));
    RETURNS(BAD, sb_filter_insert_many(NULL, keys, 1, &error));
    RETURNS(BAD, sb_filter_insert_many(filter, NULL, 1, &error));
    RETURNS(BAD, sb_filter_remove(NULL, "k", 1, &maybe, &error));
    RETURNS(BAD, sb_filter_remove(filter, NULL, 1, &maybe, &error));
    CHECK(message == NULL && other == NULL);
    sb_filter_free(filter);
}

int main(int argc, char **argv) {
    uint64_t i;
    CHECK(argc == 2);
    dir = argv[1];
    for (i = 0; i < KEYS + OTHERS; i++) {
        numbers[i] = i * 0x9e3779b97f4a7c15u;
        keys[i] = slice(&numbers[i], sizeof numbers[i]);
    }
    kind(SB_FILTER_KIND_PARITY, "parity", 0.004);
    kind(SB_FILTER_KIND_BLOCKED, "blocked-bloom", 0.01);
    kind(SB_FILTER_KIND_BLOOM, "bloom", 0.01);
    kind(SB_FILTER_KIND_COUNTING, "counting", 0.01);
    kind(SB_FILTER_KIND_SCALABLE, "scalable", 0.01);
    changes();
    combinations();
    bad_input();
    return 0;
}
