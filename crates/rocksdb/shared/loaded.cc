// Whether the program has a RocksDB. The library is built with all references to RocksDB weak, so that it can be preloaded into programs
// without one: the shell that starts the right program, for instance.
#include "rocksdb/version.h"

#include "register.h"

namespace ROCKSDB_NAMESPACE {
std::string GetRocksVersionAsString(bool with_patch) __attribute__((weak));
}

// Like sidebloom_parity_register, and sets `found` to whether there is a RocksDB.
extern "C" const char* sidebloom_register_if_loaded(bool* found) {
  *found = &ROCKSDB_NAMESPACE::GetRocksVersionAsString != nullptr;
  return *found ? sidebloom_parity_register() : "sidebloom: this program does not link RocksDB dynamically";
}
