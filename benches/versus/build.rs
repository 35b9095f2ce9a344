//! Finds the versions to compare, and whether RocksDB's Bloom probe was compiled to AVX2.

#[cfg(feature = "rocksdb")]
use std::{fs, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or("rustc".to_owned());
    let rustc = std::process::Command::new(rustc).arg("--version").output();
    let rustc = rustc
        .map_or("rustc ?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo:rustc-env=RUSTC_VERSION={rustc}");
    #[cfg(feature = "rocksdb")]
    rocksdb();
}

#[cfg(feature = "rocksdb")]
fn rocksdb() {
    use std::env::var;
    let built = var("DEP_ROCKSDB_OUT_DIR").unwrap_or_default();
    let sources = var("DEP_ROCKSDB_CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-env=ROCKSDB_VERSION={}", version(Path::new(&sources)));
    let code = bloom_code(Path::new(&built));
    if code.contains("WITHOUT") || code.contains("not inspected") {
        println!(
            "cargo:warning=RocksDB's Bloom probe: {code}. Build inside this repository, whose .cargo/config.toml sets CXXFLAGS."
        );
    }
    println!("cargo:rustc-env=ROCKSDB_BLOOM_CODE={code}");

    println!("cargo:rerun-if-changed=src/filters/rocksdb.cc");
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .warnings(false)
        .file("src/filters/rocksdb.cc")
        .include(Path::new(&sources).join("rocksdb"))
        .include(Path::new(&sources).join("rocksdb/include"))
        .define("NDEBUG", None)
        .define("ROCKSDB_PLATFORM_POSIX", None)
        .define("OS_LINUX", None)
        .compile("versus_rocksdb_filters");
}

/// RocksDB's version, from the sources that were built.
#[cfg(feature = "rocksdb")]
fn version(sources: &Path) -> String {
    let header = fs::read_to_string(sources.join("rocksdb/include/rocksdb/version.h")).unwrap_or_default();
    let part = |name: &str| {
        header
            .lines()
            .find_map(|line| line.strip_prefix(&format!("#define ROCKSDB_{name} ")))
            .unwrap_or("?")
            .to_owned()
    };
    format!("{}.{}.{}", part("MAJOR"), part("MINOR"), part("PATCH"))
}

/// Disassembles the linked object file. The AVX2 probe selects eight words of a cache line at once (vpermd)
/// and shifts a bit into place in each (vpsllvd); see RocksDB's util/bloom_impl.h.
#[cfg(feature = "rocksdb")]
fn bloom_code(built: &Path) -> String {
    use std::process::Command;
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return "Bloom probe without AVX2 (another architecture)".to_owned();
    }
    let Ok(entries) = fs::read_dir(built) else {
        return "Bloom probe not inspected (RocksDB is a system library)".to_owned();
    };
    let objects = entries.flatten().map(|entry| entry.path());
    let Some(object) = objects.into_iter().find(|path| path.to_string_lossy().ends_with("-filter_policy.o"))
    else {
        return "Bloom probe not inspected (RocksDB is a system library)".to_owned();
    };
    match Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(object).output() {
        Ok(output) if has_avx2_probe(&String::from_utf8_lossy(&output.stdout)) => {
            "Bloom probe with AVX2 (verified in the object code)".to_owned()
        }
        Ok(_) => "Bloom probe WITHOUT AVX2".to_owned(),
        Err(error) => format!("Bloom probe not inspected (objdump: {error}; install binutils)"),
    }
}

#[cfg(feature = "rocksdb")]
fn has_avx2_probe(code: &str) -> bool {
    ["vpermd", "vpsllvd"].iter().all(|instruction| code.contains(instruction))
}
