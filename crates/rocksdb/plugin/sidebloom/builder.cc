#include <cstdlib>
#include <new>
#include <utility>

#include "bits.h"
#include "rocksdb/env.h"

#ifdef __linux__
#include <malloc.h>
#endif

namespace sidebloom {
namespace {

using ROCKSDB_NAMESPACE::Slice;
using ROCKSDB_NAMESPACE::Status;

// Bytes that RocksDB allocates after a block that it reads.
constexpr size_t kBlockTrailerBytes = 5;

struct FreeBuilder {
  void operator()(sidebloom_parity_builder* builder) const { sidebloom_parity_builder_free(builder); }
};
using BuilderPtr = std::unique_ptr<sidebloom_parity_builder, FreeBuilder>;

// The bytes of memory that an allocation of `bytes` really takes.
size_t UsableBytes(size_t bytes) {
#ifdef __linux__
  void* memory = malloc(bytes);
  size_t usable = memory == nullptr ? bytes : malloc_usable_size(memory);
  free(memory);
  return usable;
#else
  return bytes;
#endif
}

class ParityBuilder final : public ROCKSDB_NAMESPACE::FilterBitsBuilder {
 public:
  explicit ParityBuilder(const BuilderOptions& options) : options_(options), builder_(NewBuilder()) {}

  void AddKey(const Slice& key) override {
    added_ = builder_ ? sidebloom_parity_add(builder_.get(), {key.data(), key.size()}) : added_ + 1;
  }

#if SIDEBLOOM_PREFIXES_APART
  // Not functions of the interface in this version of RocksDB.
  size_t CalculateSpace(size_t num_entries) {
#else
  void AddKeyAndAlt(const Slice& key, const Slice& alt) override {
    added_ = builder_ ? sidebloom_parity_add_with_prefix(builder_.get(), {key.data(), key.size()},
                                                         {alt.data(), alt.size()})
                      : added_ + 1;
  }

  double EstimatedFpRate(size_t num_entries, size_t bytes) override {
    return sidebloom_parity_fpr(num_entries, bytes);
  }

  size_t CalculateSpace(size_t num_entries) override {
#endif
    return sidebloom_parity_bytes(options_.size, num_entries);
  }

  size_t EstimateEntriesAdded() override { return added_; }

  size_t ApproximateNumEntries(size_t bytes) override { return sidebloom_parity_keys(options_.size, bytes); }

  Slice Finish(std::unique_ptr<const char[]>* buf) override { return Finish(buf, nullptr); }

  Slice Finish(std::unique_ptr<const char[]>* buf, Status* status) override {
    finished_ = std::exchange(builder_, NewBuilder());
    const size_t added = std::exchange(added_, 0);
    if (status != nullptr) {
      *status = Status::OK();
    }
    const size_t target = CalculateSpace(added);
    size_t bytes = 0;
    const size_t room = Room(target);
    const int result = finished_ ? sidebloom_parity_build(finished_.get(), room, &bytes) : SIDEBLOOM_NOT_BUILT;
    if (result == SIDEBLOOM_CORRUPTED && status != nullptr) {
      *status = Status::Corruption("sidebloom.parity: a key's hash changed in memory while a filter was built");
    }
    if (result == SIDEBLOOM_BUILT) {
      std::unique_ptr<char[]> block(new (std::nothrow) char[bytes]);
      const size_t written = block ? sidebloom_parity_write(finished_.get(), block.get(), bytes) : 0;
      if (written > 0) {
        if (room > 0) {
          *options_.balance += static_cast<int64_t>(bytes) - static_cast<int64_t>(target);
        }
        const char* data = block.get();
        buf->reset(block.release());
        return Slice(data, written);
      }
    }
    finished_.reset();
    if (added > 0) {
      ROCKSDB_NAMESPACE::Warn(options_.log, "sidebloom.parity: a file or partition stays without a filter: %s",
                              result == SIDEBLOOM_CORRUPTED ? "memory changed" : "not enough memory, or too many keys");
    }
    buf->reset();
    const sidebloom_slice none = sidebloom_parity_no_filter();
    return Slice(none.data, none.bytes);
  }

  Status MaybePostVerify(const Slice& filter_content) override {
    const BuilderPtr finished = std::move(finished_);
    if (finished && !sidebloom_parity_verify(finished.get(), {filter_content.data(), filter_content.size()})) {
      return Status::Corruption("sidebloom.parity: a filter that was just built lacks one of its keys");
    }
    return Status::OK();
  }

 private:
  BuilderPtr NewBuilder() const {
    return BuilderPtr(sidebloom_parity_builder_new(options_.size, options_.detect_corruption));
  }

  // The size of a filter with optimize_filters_for_memory, where allocations are so coarse that more than a thirtieth would be wasted: the
  // real size of an allocation of its target, or the next smaller one if earlier filters exceeded their targets. 0 for its own size.
  size_t Room(size_t target) const {
    const size_t request = target + kBlockTrailerBytes;
    if (options_.balance == nullptr) {
      return 0;
    }
    const size_t usable = UsableBytes(request);
    // More than a third is useless for a filter, or a wrong answer.
    if (usable - request < request / 32 || usable / 4 * 3 > request) {
      return 0;
    }
    if (options_.balance->load() <= 0) {
      return usable - kBlockTrailerBytes;
    }
    for (size_t sixteenths : {15, 14, 13, 12}) {
      const size_t smaller = UsableBytes(request / 16 * sixteenths);
      if (smaller < request) {
        return smaller - kBlockTrailerBytes;
      }
    }
    return 0;
  }

  const BuilderOptions options_;
  BuilderPtr builder_;
  // Between Finish and MaybePostVerify.
  BuilderPtr finished_;
  size_t added_ = 0;
};

}  // namespace

ROCKSDB_NAMESPACE::FilterBitsBuilder* NewParityBuilder(const BuilderOptions& options) {
  return new ParityBuilder(options);
}

}  // namespace sidebloom
