// RocksDB's interface between filter policies and SST files. It is internal, so packages of RocksDB do not install it. In RocksDB's own
// sources this includes their header; elsewhere it declares the same for the versions that the plug-in was tested with. What matters is the
// order of the virtual functions: CheckRocksDB (register.cc) tries them on the RocksDB that the program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/filter_policy.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"
#include "rocksdb/version.h"

#if ROCKSDB_MAJOR == 7 && ROCKSDB_MINOR == 8
#define SIDEBLOOM_PREFIXES_APART 1
#elif ROCKSDB_MAJOR == 11 && ROCKSDB_MINOR == 8
#define SIDEBLOOM_PREFIXES_APART 0
#else
#error "sidebloom supports RocksDB 7.8 and 11.8, but these headers are of another version"
#endif

#if __has_include("table/block_based/filter_policy_internal.h")
#include "table/block_based/filter_policy_internal.h"
#else

namespace ROCKSDB_NAMESPACE {

class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() {}
  virtual void AddKey(const Slice& key) = 0;
#if !SIDEBLOOM_PREFIXES_APART
  virtual void AddKeyAndAlt(const Slice& key, const Slice& alt) = 0;
#endif
  virtual size_t EstimateEntriesAdded() = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buf) = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buf, Status* /* status */) { return Finish(buf); }
  virtual Status MaybePostVerify(const Slice& /* filter_content */) { return Status::OK(); }
  virtual size_t ApproximateNumEntries(size_t bytes) = 0;
#if !SIDEBLOOM_PREFIXES_APART
  virtual size_t CalculateSpace(size_t num_entries) = 0;
  virtual double EstimatedFpRate(size_t num_entries, size_t bytes) = 0;
#endif
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() {}
  virtual bool MayMatch(const Slice& entry) = 0;
  virtual void MayMatch(int num_keys, Slice** keys, bool* may_match) = 0;
};

}  // namespace ROCKSDB_NAMESPACE

#endif
