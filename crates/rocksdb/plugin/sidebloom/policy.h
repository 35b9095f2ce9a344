// The filter policy "sidebloom.parity:…".
#pragma once

#include <string>

#include "rocksdb/filter_policy.h"

namespace sidebloom {

// The name before the colon, and what filter blocks are found by.
inline constexpr const char kPolicyName[] = "sidebloom.parity";

// The policy that a string names; otherwise null, and the reason in `error`.
const ROCKSDB_NAMESPACE::FilterPolicy* NewParityPolicy(const std::string& string, std::string* error);

}  // namespace sidebloom
