// Registers the policy in RocksDB.
#pragma once

#include <string>

namespace ROCKSDB_NAMESPACE {
class ObjectLibrary;
}

extern "C" {

// Called by RocksDB builds for a plug-in (sidebloom.mk). Returns the number of factories added.
int sidebloom_register(ROCKSDB_NAMESPACE::ObjectLibrary& library, const std::string& arg);

// Checks this program's RocksDB and registers the policy in it, once. Returns null, or why that is impossible, as text that is never freed.
const char* sidebloom_parity_register();
}
