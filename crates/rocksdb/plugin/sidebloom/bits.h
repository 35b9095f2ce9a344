// The two objects of a RocksDB filter policy.
#pragma once

#include <atomic>
#include <cstdint>

#include "filter.h"
#include "rocksdb_internal.h"

namespace sidebloom {

struct BuilderOptions {
  sidebloom_parity_size_t size;
  // Whether to detect memory corruption during and after building.
  bool detect_corruption;
  // With optimize_filters_for_memory, the bytes that filters took beyond their targets so far. Null without it.
  std::atomic<int64_t>* balance;
  // For warnings; may be null.
  ROCKSDB_NAMESPACE::Logger* log;
};

// Builds the filter of an SST file, or of its partitions one by one:
// (AddKey | AddKeyAndAlt)* Finish MaybePostVerify, and again from the start.
ROCKSDB_NAMESPACE::FilterBitsBuilder* NewParityBuilder(const BuilderOptions& options);

// Probes a filter block where it is. The block must outlive it.
ROCKSDB_NAMESPACE::FilterBitsReader* NewParityReader(const ROCKSDB_NAMESPACE::Slice& block);

}  // namespace sidebloom
