//! Compiles the plug-in against the installed RocksDB, or the one whose headers are in `ROCKSDB_INCLUDE_DIR`.

use std::env::var;
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), String> {
    let plugin = var("DEP_SIDEBLOOM_ROCKSDB_PLUGIN_SOURCES").unwrap_or_default();
    println!("cargo::rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    println!("cargo::rerun-if-changed={plugin}");
    println!("cargo::rerun-if-changed=loaded.cc");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++20").flag_if_supported("-fno-rtti").define("NDEBUG", None).include(&plugin);
    if let Ok(include) = var("ROCKSDB_INCLUDE_DIR") {
        build.include(include);
    }
    build.file("loaded.cc");
    for source in ["builder.cc", "policy.cc", "reader.cc", "register.cc"] {
        build.file(Path::new(&plugin).join(source));
    }
    let objects = build.try_compile_intermediates().map_err(|error| {
        format!("{error}\nThis needs RocksDB's headers: install librocksdb-dev, or set ROCKSDB_INCLUDE_DIR")
    })?;
    // Rust links libraries so that the loader resolves all references at once. Weak ones may stay unresolved.
    let weaken =
        ["_ZN7rocksdb*", "_ZNK7rocksdb*", "_ZTVN7rocksdb*"].map(|name| format!("--weaken-symbol={name}"));
    for object in &objects {
        let status = Command::new("objcopy").arg("--wildcard").args(&weaken).arg(object).status();
        if !status.map_err(|error| format!("objcopy: {error}; install binutils"))?.success() {
            return Err(format!("objcopy failed for {}", object.display()));
        }
    }
    // RocksDB keeps the factory, so the code must stay loaded after dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    cc::Build::new().cpp(true).objects(objects).compile("sidebloom_rocksdb_policy");
    Ok(())
}
