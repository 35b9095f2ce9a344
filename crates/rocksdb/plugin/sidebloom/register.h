// Makes RocksDB know the policy.
#pragma once

#include <string>

namespace ROCKSDB_NAMESPACE {
class ObjectLibrary;
}

extern "C" {

// What builds of RocksDB call for a plug-in (sidebloom.mk). Returns the number of factories added.
int sidebloom_register(ROCKSDB_NAMESPACE::ObjectLibrary& library, const std::string& arg);

// Checks the RocksDB of this program and makes it know the policy, once. Returns null, or why that is impossible, as text that is never freed.
const char* sidebloom_parity_register();
}
