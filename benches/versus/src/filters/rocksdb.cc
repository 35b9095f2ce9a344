// RocksDB's filters without a store, through its internal API.

#include <cstdlib>
#include <cstring>
#include <memory>

#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "table/block_based/filter_policy_internal.h"
#include "util/hash.h"

using namespace ROCKSDB_NAMESPACE;

namespace {
struct Free {
  void operator()(char* bits) const { std::free(bits); }
};

// The bits start on a cache line, which suits RocksDB's cache-local filters best.
struct Filter {
  std::unique_ptr<char, Free> bits;
  size_t bytes;
  std::unique_ptr<BuiltinFilterBitsReader> reader;

  explicit Filter(const Slice& contents)
      : bits(static_cast<char*>(std::aligned_alloc(64, (contents.size() + 63) / 64 * 64))),
        bytes(contents.size()) {
    std::memcpy(bits.get(), contents.data(), bytes);
    // The bits end with their filter type, so any policy can read them. Built-in policies only return readers of this class.
    std::unique_ptr<const FilterPolicy> policy(NewBloomFilterPolicy(10));
    reader.reset(static_cast<BuiltinFilterBitsReader*>(policy->GetFilterBitsReader(Slice(bits.get(), bytes))));
  }
};

Slice KeySlice(const uint64_t& key) {
  return Slice(reinterpret_cast<const char*>(&key), sizeof(key));
}
}  // namespace

extern "C" {

// RocksDB's hash of an eight-byte key, which its filters probe.
uint64_t versus_rocksdb_hash(uint64_t key) { return GetSliceHash64(KeySlice(key)); }

// Builds a filter over `count` keys and sets `bytes` to its size. Returns null if it cannot be built.
void* versus_rocksdb_build(bool ribbon, double bits_per_key, const uint64_t* keys, size_t count, size_t* bytes) {
  std::unique_ptr<const FilterPolicy> policy(ribbon ? NewRibbonFilterPolicy(bits_per_key, -1)
                                                    : NewBloomFilterPolicy(bits_per_key));
  BlockBasedTableOptions options;
  FilterBuildingContext context(options);
  context.level_at_creation = 6;
  std::unique_ptr<FilterBitsBuilder> builder(policy->GetBuilderWithContext(context));
  if (!builder) return nullptr;
  for (size_t i = 0; i < count; i++) builder->AddKey(KeySlice(keys[i]));
  std::unique_ptr<const char[]> owner;
  Slice contents = builder->Finish(&owner);
  *bytes = contents.size();
  return new Filter(contents);
}

void* versus_rocksdb_copy(const void* filter) {
  const Filter* of = static_cast<const Filter*>(filter);
  return new Filter(Slice(of->bits.get(), of->bytes));
}

bool versus_rocksdb_may_match(const void* filter, uint64_t hash) {
  return static_cast<const Filter*>(filter)->reader->HashMayMatch(hash);
}

// Returns how many of the keys may be present. At most 32 keys (BATCH_KEYS in filter.rs).
size_t versus_rocksdb_may_match_many(const void* filter, const uint64_t* keys, size_t count) {
  Slice slices[32];
  Slice* pointers[32];
  bool matches[32];
  for (size_t i = 0; i < count; i++) {
    slices[i] = KeySlice(keys[i]);
    pointers[i] = &slices[i];
    matches[i] = true;
  }
  static_cast<const Filter*>(filter)->reader->MayMatch(static_cast<int>(count), pointers, matches);
  size_t found = 0;
  for (size_t i = 0; i < count; i++) found += matches[i];
  return found;
}

void versus_rocksdb_free(void* filter) { delete static_cast<Filter*>(filter); }
}
