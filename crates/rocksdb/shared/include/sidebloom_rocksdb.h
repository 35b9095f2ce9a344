/* libsidebloom_rocksdb: parity filters as RocksDB's filter policies "sidebloom.parity:…", for programs that link RocksDB dynamically. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Makes RocksDB know the policies. Loading the library has already done so; this tells whether it worked. Returns NULL, or why it did not:
   text that is never freed. May be called at any time, from any thread. */
const char* sidebloom_rocksdb_register(void);

#ifdef __cplusplus
}
#endif
