# For RocksDB's Makefile, with this directory as plugin/sidebloom: ROCKSDB_PLUGINS=sidebloom make. SIDEBLOOM_LIBRARY is the static library of
# the filters: cargo build --release -p sidebloom-rocksdb-plugin
SIDEBLOOM_LIBRARY ?= plugin/sidebloom/libsidebloom_rocksdb_plugin.a
sidebloom_SOURCES = builder.cc policy.cc reader.cc register.cc
sidebloom_HEADERS = register.h
sidebloom_LDFLAGS = $(SIDEBLOOM_LIBRARY) -lpthread -ldl -lm
sidebloom_FUNC = sidebloom_register
