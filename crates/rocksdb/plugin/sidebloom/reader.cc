#include "bits.h"

namespace sidebloom {
namespace {

using ROCKSDB_NAMESPACE::Slice;

class ParityReader final : public ROCKSDB_NAMESPACE::FilterBitsReader {
 public:
  explicit ParityReader(const Slice& block) {
    sidebloom_parity_reader_init(&reader_, {block.data(), block.size()});
  }

  bool MayMatch(const Slice& entry) override {
    return sidebloom_parity_may_match(&reader_, {entry.data(), entry.size()});
  }

  void MayMatch(int num_keys, Slice** keys, bool* may_match) override {
    static_assert(sizeof(Slice) == sizeof(sidebloom_slice) && alignof(Slice) == alignof(sidebloom_slice));
    sidebloom_parity_may_match_many(&reader_, static_cast<size_t>(num_keys),
                                    reinterpret_cast<const sidebloom_slice* const*>(keys), may_match);
  }

 private:
  sidebloom_parity_reader reader_;
};

}  // namespace

ROCKSDB_NAMESPACE::FilterBitsReader* NewParityReader(const Slice& block) { return new ParityReader(block); }

}  // namespace sidebloom
