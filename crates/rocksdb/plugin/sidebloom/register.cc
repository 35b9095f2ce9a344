#include <cstdio>
#include <exception>

// First, so that ROCKSDB_NAMESPACE is defined.
#include "rocksdb_internal.h"

#include "policy.h"
#include "register.h"
#include "rocksdb/utilities/object_registry.h"

namespace sidebloom {
namespace {

using namespace ROCKSDB_NAMESPACE;

std::string CheckVersion() {
  const std::string built = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
  const std::string runs = GetRocksVersionAsString(/*with_patch=*/false);
  if (runs == built) {
    return "";
  }
  return "sidebloom: this library is built for RocksDB " + built + ", but the program has RocksDB " + runs +
         "; build it with the headers of that version";
}

// Calls the internal interface of RocksDB's own Bloom filter through our declarations. If the running RocksDB has other ones,
// other functions answer.
bool InterfaceFits() {
  const std::unique_ptr<const FilterPolicy> bloom(NewBloomFilterPolicy(10));
  const BlockBasedTableOptions table;
  const FilterBuildingContext context(table);
  if (context.compaction_style != kCompactionStyleLevel || context.num_levels != -1 || context.level_at_creation != -1 ||
      context.is_bottommost || context.reason != TableFileCreationReason::kMisc) {
    return false;
  }
  const std::unique_ptr<FilterBitsBuilder> builder(bloom->GetBuilderWithContext(context));
  if (!builder) {
    return false;
  }
  builder->AddKey("a");
  builder->AddKey("b");
#if SIDEBLOOM_PREFIXES_APART
  builder->AddKey("c");
  builder->AddKey("d");
#else
  builder->AddKeyAndAlt("c", "d");
  const double rate = builder->EstimatedFpRate(1000, builder->CalculateSpace(1000));
  if (!(rate > 0.001 && rate < 0.05)) {
    return false;
  }
#endif
  const size_t fitting = builder->ApproximateNumEntries(1280);
  if (builder->EstimateEntriesAdded() != 4 || fitting < 800 || fitting > 1100) {
    return false;
  }
  std::unique_ptr<const char[]> memory;
  Status status = Status::Busy();
  const Slice block = builder->Finish(&memory, &status);
  if (!status.ok() || block.size() < 8 || block.size() > 1024 || !builder->MaybePostVerify(block).ok()) {
    return false;
  }
  const std::unique_ptr<FilterBitsReader> reader(bloom->GetFilterBitsReader(block));
  Slice in("c"), out("e");
  Slice* keys[] = {&in, &out};
  bool may_match[] = {false, true};
  reader->MayMatch(2, keys, may_match);
  return reader->MayMatch("a") && reader->MayMatch("d") && may_match[0] && !may_match[1] && !reader->MayMatch(out);
}

std::string Register() {
  std::string error = CheckVersion();
  if (error.empty() && !InterfaceFits()) {
    error = "sidebloom: the interface of this RocksDB to its filters is not the one that its version should have; build it from "
            "the sources of its release, or sidebloom with its own headers";
  }
  if (error.empty()) {
    sidebloom_register(*ObjectLibrary::Default(), "");
  }
  return error;
}

}  // namespace
}  // namespace sidebloom

extern "C" int sidebloom_register(ROCKSDB_NAMESPACE::ObjectLibrary& library, const std::string& /*arg*/) {
  using namespace ROCKSDB_NAMESPACE;
  // Whatever begins with our name. By default, RocksDB continues without a filter if it finds no factory, so that a typo would pass
  // unnoticed. This factory says what to use.
  library.AddFactory<const FilterPolicy>(
      ObjectLibrary::PatternEntry("sidebloom").AddSeparator(".", /*at_least_one=*/false),
      [](const std::string& uri, std::unique_ptr<const FilterPolicy>* guard, std::string* error) {
        guard->reset(sidebloom::NewParityPolicy(uri, error));
#if SIDEBLOOM_PREFIXES_APART
        // RocksDB 7.8 drops errors of table options, and continues without a filter.
        if (*guard == nullptr) {
          fprintf(stderr, "sidebloom: %s\n", error->c_str());
        }
#endif
        return guard->get();
      });
  return 1;
}

extern "C" const char* sidebloom_parity_register() {
  try {
    static const std::string error = sidebloom::Register();
    return error.empty() ? nullptr : error.c_str();
  } catch (const std::exception&) {
    return "sidebloom: not enough memory to register the filter policy";
  }
}
