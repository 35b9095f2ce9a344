#include "policy.h"

#include "bits.h"

namespace sidebloom {
namespace {

using ROCKSDB_NAMESPACE::FilterBuildingContext;

// Where the file will be, as far as that is known when its filter is begun.
uint32_t PlaceOf(const FilterBuildingContext& context) {
  if (context.compaction_style == ROCKSDB_NAMESPACE::kCompactionStyleFIFO ||
      context.reason == ROCKSDB_NAMESPACE::TableFileCreationReason::kMisc || context.level_at_creation < 0) {
    return SIDEBLOOM_UNKNOWN;
  }
  return context.is_bottommost ? SIDEBLOOM_BOTTOM : SIDEBLOOM_UPPER;
}

class ParityPolicy final : public ROCKSDB_NAMESPACE::FilterPolicy {
 public:
  ParityPolicy(const sidebloom_parity_policy& policy, std::string id) : policy_(policy), id_(std::move(id)) {}

  const char* Name() const override { return kPolicyName; }
  const char* CompatibilityName() const override { return kPolicyName; }
  // The form in options files.
  std::string GetId() const override { return id_; }

  ROCKSDB_NAMESPACE::FilterBitsBuilder* GetBuilderWithContext(const FilterBuildingContext& context) const override {
    const auto& table = context.table_options;
    return NewParityBuilder({
        sidebloom_parity_size(&policy_, PlaceOf(context)),
        table.detect_filter_construct_corruption,
        table.optimize_filters_for_memory ? &balance_ : nullptr,
        context.info_log,
    });
  }

  ROCKSDB_NAMESPACE::FilterBitsReader* GetFilterBitsReader(const ROCKSDB_NAMESPACE::Slice& contents) const override {
    return NewParityReader(contents);
  }

 private:
  const sidebloom_parity_policy policy_;
  const std::string id_;
  mutable std::atomic<int64_t> balance_{0};
};

}  // namespace

const ROCKSDB_NAMESPACE::FilterPolicy* NewParityPolicy(const std::string& string, std::string* error) {
  sidebloom_parity_policy policy;
  char text[512] = "";
  if (!sidebloom_parity_parse(string.data(), string.size(), &policy, text, sizeof(text))) {
    *error = text;
    return nullptr;
  }
  return new ParityPolicy(policy, text);
}

}  // namespace sidebloom
