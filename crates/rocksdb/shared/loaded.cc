// Whether the program has a RocksDB. The library is built with all references to RocksDB weak, so that it can be preloaded into programs
// without one: the shell that starts the right program, for instance.
#include <dlfcn.h>

#include "rocksdb/version.h"

#include "register.h"

namespace ROCKSDB_NAMESPACE {
std::string GetRocksVersionAsString(bool with_patch) __attribute__((weak));
}

// Like sidebloom_parity_register, and sets `found` to whether there is a RocksDB.
extern "C" const char* sidebloom_register_if_loaded(bool* found) {
  *found = &ROCKSDB_NAMESPACE::GetRocksVersionAsString != nullptr;
  if (!*found) {
    return "sidebloom: this program does not link RocksDB dynamically";
  }
  // A program with RocksDB inside may export a part of it.
  for (const char* name : {"_ZN7rocksdb20NewBloomFilterPolicyEdb", "_ZN7rocksdb13ObjectLibrary7DefaultEv",
                           "_ZTVN7rocksdb13ObjectLibrary12PatternEntryE", "_ZN7rocksdb4WarnEPNS_6LoggerEPKcz"}) {
    if (dlsym(RTLD_DEFAULT, name) == nullptr) {
      return "sidebloom: this program exports only a part of RocksDB; compile the plug-in into it";
    }
  }
  return sidebloom_parity_register();
}
