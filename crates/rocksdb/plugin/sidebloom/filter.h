// The filters, which are in Rust (the package sidebloom-rocksdb-plugin). Its src/ffi.rs says what each function does.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A width, or 0 and the bits per key on average.
typedef struct {
  uint32_t width;
  double bits_per_key;
} sidebloom_parity_policy;

typedef struct {
  uint32_t width;
  double keys_per_line;
} sidebloom_parity_size_t;

typedef struct {
  const char* data;
  size_t bytes;
} sidebloom_slice;

typedef struct {
  uint64_t opaque[24];
} sidebloom_parity_reader;

typedef struct sidebloom_parity_builder sidebloom_parity_builder;

// Where a file will be.
enum { SIDEBLOOM_BOTTOM = 0, SIDEBLOOM_UPPER = 1, SIDEBLOOM_UNKNOWN = 2 };

// What sidebloom_parity_build returns.
enum { SIDEBLOOM_BUILT = 0, SIDEBLOOM_NOT_BUILT = 1, SIDEBLOOM_CORRUPTED = 2 };

bool sidebloom_parity_parse(const char* string, size_t bytes, sidebloom_parity_policy* policy, char* text, size_t room);
sidebloom_parity_size_t sidebloom_parity_size(const sidebloom_parity_policy* policy, uint32_t place);
size_t sidebloom_parity_bytes(sidebloom_parity_size_t size, size_t keys);
size_t sidebloom_parity_keys(sidebloom_parity_size_t size, size_t bytes);
double sidebloom_parity_fpr(size_t keys, size_t bytes);

sidebloom_parity_builder* sidebloom_parity_builder_new(sidebloom_parity_size_t size, bool detect_corruption);
void sidebloom_parity_builder_free(sidebloom_parity_builder* builder);
size_t sidebloom_parity_add(sidebloom_parity_builder* builder, sidebloom_slice key);
size_t sidebloom_parity_add_with_prefix(sidebloom_parity_builder* builder, sidebloom_slice key, sidebloom_slice prefix);
int sidebloom_parity_build(sidebloom_parity_builder* builder, size_t room, size_t* bytes);
size_t sidebloom_parity_write(sidebloom_parity_builder* builder, char* to, size_t room);
bool sidebloom_parity_verify(sidebloom_parity_builder* builder, sidebloom_slice block);
sidebloom_slice sidebloom_parity_no_filter(void);

void sidebloom_parity_reader_init(sidebloom_parity_reader* reader, sidebloom_slice block);
bool sidebloom_parity_may_match(const sidebloom_parity_reader* reader, sidebloom_slice key);
void sidebloom_parity_may_match_many(const sidebloom_parity_reader* reader, size_t count,
                                     const sidebloom_slice* const* keys, bool* may_match);

#ifdef __cplusplus
}
#endif
