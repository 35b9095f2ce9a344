// The border between C++ and Rust, for a build with AddressSanitizer: every slice that crosses it is an allocation of its exact size.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bits.h"
#include "policy.h"
#include "register.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/object_registry.h"

using namespace ROCKSDB_NAMESPACE;

// As RocksDB's build declares it (util/build_version.cc.in); with another linkage, this does not compile.
extern "C" {
int sidebloom_register(ROCKSDB_NAMESPACE::ObjectLibrary&, const std::string&);
}

static int passed = 0;

#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

// A copy with nothing after it. An empty one may be null.
struct Exact {
  explicit Exact(const std::string& text) : bytes(text.empty() ? nullptr : static_cast<char*>(malloc(text.size()))), size(text.size()) {
    if (size > 0) memcpy(bytes, text.data(), size);
  }
  Exact(const Exact&) = delete;
  ~Exact() { free(bytes); }
  Slice slice() const { return Slice(bytes == nullptr ? "" : bytes, size); }
  char* bytes;
  size_t size;
};

static std::string KeyOf(uint32_t number) {
  std::string key(number % 97, 'x');
  return key + std::to_string(number);
}

static std::unique_ptr<const FilterPolicy> PolicyOf(const char* string) {
  std::string error;
  std::unique_ptr<const FilterPolicy> policy(sidebloom::NewParityPolicy(string, &error));
  CHECK(policy);
  return policy;
}

static std::string Build(FilterBitsBuilder& builder, uint32_t keys) {
  for (uint32_t number = 0; number < keys; number++) {
    builder.AddKey(Exact(KeyOf(number)).slice());
  }
  CHECK(builder.EstimateEntriesAdded() == keys);
  std::unique_ptr<const char[]> memory;
  Status status;
  Slice block = builder.Finish(&memory, &status);
  CHECK(status.ok() && builder.EstimateEntriesAdded() == 0);
  std::string copy = block.ToString();
  CHECK(builder.MaybePostVerify(block).ok());
  return copy;
}

static void HasAll(const FilterPolicy& policy, const Slice& block, uint32_t keys) {
  const std::unique_ptr<FilterBitsReader> reader(policy.GetFilterBitsReader(block));
  std::vector<std::unique_ptr<Exact>> exact;
  for (uint32_t number = 0; number < keys; number++) {
    exact.push_back(std::make_unique<Exact>(KeyOf(number)));
    CHECK(reader->MayMatch(exact.back()->slice()));
  }
  for (int batch : {0, 1, 31, 32, 33, 70}) {
    for (size_t from = 0; from + batch <= exact.size(); from += 500) {
      std::vector<Slice> slices;
      std::vector<Slice*> pointers;
      const std::unique_ptr<bool[]> may_match(new bool[batch]());
      for (int i = 0; i < batch; i++) slices.push_back(exact[from + i]->slice());
      for (Slice& slice : slices) pointers.push_back(&slice);
      reader->MayMatch(batch, pointers.data(), may_match.get());
      for (int i = 0; i < batch; i++) CHECK(may_match[i]);
    }
  }
}

static void BlocksOfEverySize() {
  for (bool everything : {false, true}) {
    for (const char* string : {"sidebloom.parity:7", "sidebloom.parity:16", "sidebloom.parity:auto:9.5"}) {
      const auto policy = PolicyOf(string);
      BlockBasedTableOptions table;
      table.detect_filter_construct_corruption = everything;
      table.optimize_filters_for_memory = everything;
      FilterBuildingContext context(table);
      const std::unique_ptr<FilterBitsBuilder> builder(policy->GetBuilderWithContext(context));
      // One builder for all, as for partitions.
      for (uint32_t keys : {0, 1, 2, 63, 64, 1000, 0, 5000}) {
        const Exact block(Build(*builder, keys));
        HasAll(*policy, block.slice(), keys);
        CHECK(keys == 0 || block.size < 300 + keys * 4);
      }
      builder->AddKey("never finished");
    }
  }
}

static void DamagedBlocks() {
  const auto policy = PolicyOf("sidebloom.parity:9");
  const BlockBasedTableOptions table;
  const std::unique_ptr<FilterBitsBuilder> builder(policy->GetBuilderWithContext(FilterBuildingContext(table)));
  const std::string block = Build(*builder, 300);
  std::mt19937 random(7);
  for (size_t length = 0; length < block.size(); length++) {
    HasAll(*policy, Exact(block.substr(0, length)).slice(), 40);
    HasAll(*policy, Exact(block.substr(length)).slice(), 40);
    std::string damaged = block;
    damaged[length] = static_cast<char>(random());
    HasAll(*policy, Exact(damaged).slice(), 40);
    // Every offset within a cache line.
    const std::string shifted = std::string(length % 64, 'x') + block;
    const Exact exact(shifted);
    HasAll(*policy, Slice(exact.bytes + length % 64, block.size()), 40);
  }
}

static void WrongStrings() {
  for (const std::string& junk : {std::string(), std::string("sidebloom.parity:13"), std::string(5000, '\xff'), std::string(2000, 'a') + "ü"}) {
    std::string error;
    CHECK(sidebloom::NewParityPolicy(junk, &error) == nullptr && !error.empty());
  }
}

static void Database() {
  CHECK(sidebloom_parity_register() == nullptr);
  ObjectLibrary library("as in RocksDB's build");
  CHECK(sidebloom_register(library, "") == 1);
  char dir[] = "/tmp/sidebloom-boundary-XXXXXX";
  CHECK(mkdtemp(dir) != nullptr);
  for (bool partitions : {false, true}) {
    Options options;
    options.create_if_missing = true;
    BlockBasedTableOptions table;
    table.partition_filters = partitions;
    table.index_type = partitions ? BlockBasedTableOptions::kTwoLevelIndexSearch : BlockBasedTableOptions::kBinarySearch;
    table.metadata_block_size = 500;
    table.cache_index_and_filter_blocks = true;
    CHECK(FilterPolicy::CreateFromString({}, "sidebloom.parity:8", &table.filter_policy).ok());
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    DB* raw = nullptr;
    CHECK(DB::Open(options, dir, &raw).ok());
    const std::unique_ptr<DB> db(raw);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++) {
      threads.emplace_back([&db, thread] {
        for (uint32_t number = thread; number < 4000; number += 4) {
          CHECK(db->Put({}, KeyOf(number), "value").ok());
          if (number % 1000 < 4) CHECK(db->Flush({}).ok());
          std::string value;
          CHECK(db->Get({}, KeyOf(number), &value).ok() && value == "value");
          CHECK(db->Get({}, KeyOf(number) + "absent", &value).IsNotFound());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(db->CompactRange({}, nullptr, nullptr).ok());
    std::vector<std::string> keys, values;
    for (uint32_t number = 0; number < 4000; number++) keys.push_back(KeyOf(number));
    const std::vector<Slice> slices(keys.begin(), keys.end());
    for (const Status& status : db->MultiGet({}, slices, &values)) CHECK(status.ok());
  }
  CHECK(DestroyDB(dir, {}).ok());
}

int main() {
  for (const auto& test : {BlocksOfEverySize, DamagedBlocks, WrongStrings, Database}) {
    test();
    passed++;
  }
  printf("%d passed, 0 failed\n", passed);
}
