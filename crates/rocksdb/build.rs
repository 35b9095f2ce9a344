//! Compiles the plug-in against the RocksDB of the `rocksdb` crate.

use std::env::var;
use std::path::Path;

fn main() {
    // Variables that librocksdb-sys reads, when RocksDB is a system library.
    println!("cargo::rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    let plugin = var("DEP_SIDEBLOOM_ROCKSDB_PLUGIN_SOURCES").unwrap_or_default();
    let mut build = cc::Build::new();
    build.cpp(true).std("c++20").flag_if_supported("-fno-rtti").define("NDEBUG", None);
    match var("ROCKSDB_INCLUDE_DIR") {
        Ok(include) => _ = build.include(include),
        Err(_) => {
            let sources =
                Path::new(&var("DEP_ROCKSDB_CARGO_MANIFEST_DIR").unwrap_or_default()).join("rocksdb");
            // The sources too, for RocksDB's own declarations of its internal interface.
            build.define("OS_LINUX", None).define("ROCKSDB_PLATFORM_POSIX", None);
            build.flag("-isystem").flag(&sources).flag("-isystem").flag(sources.join("include"));
        }
    }
    for source in ["builder.cc", "policy.cc", "reader.cc", "register.cc"] {
        build.file(Path::new(&plugin).join(source));
    }
    println!("cargo::rerun-if-changed={plugin}");
    build.compile("sidebloom_rocksdb_policy");
}
