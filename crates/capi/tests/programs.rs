//! The C programs of `tests/c` and `examples`, compiled as C99 and as C++11, against the static and the
//! shared library.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::{Path, PathBuf};
use std::process::Command;

const FLAGS: [&str; 7] =
    ["-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-D_DEFAULT_SOURCE", "-D_POSIX_C_SOURCE=200809L"];

#[derive(Clone, Copy)]
enum Language {
    C,
    Cxx,
}

#[derive(Clone, Copy)]
enum Library {
    Static,
    Shared,
}

fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Where cargo puts the libraries: next to the tests.
fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout
}

/// Compiles a program and runs it in a new directory. Returns what it prints.
fn compile_and_run(source: &str, language: Language, library: Library) -> String {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("program");
    let mut compiler = match language {
        Language::C => Command::new("cc"),
        Language::Cxx => Command::new("c++"),
    };
    match language {
        Language::C => compiler.arg("-std=c99"),
        Language::Cxx => compiler.args(["-std=c++11", "-x", "c++"]),
    };
    compiler.args(FLAGS).arg("-I").arg(package("include")).arg(package(source)).args(["-x", "none", "-o"]);
    compiler.arg(&program);
    match library {
        Library::Static => compiler.arg(libraries().join("libsidebloom_capi.a")),
        Library::Shared => compiler.arg(libraries().join("libsidebloom_capi.so")),
    };
    run(compiler.args(["-lpthread", "-ldl", "-lm"]));
    run(Command::new(program).arg(dir.path()).env("LD_LIBRARY_PATH", libraries()))
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(mod $name {
            use super::{Language, Library, compile_and_run};

            const SOURCE: &str = concat!("tests/c/", stringify!($name), ".c");

            #[test]
            fn passes_in_c_with_the_static_library() {
                compile_and_run(SOURCE, Language::C, Library::Static);
            }

            #[test]
            fn passes_in_cxx_with_the_shared_library() {
                compile_and_run(SOURCE, Language::Cxx, Library::Shared);
            }
        })*

        #[test]
        fn every_program_is_tested() {
            let tested = [$(concat!(stringify!($name), ".c")),*];
            for file in std::fs::read_dir(package("tests/c")).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                assert!(name == "check.h" || tested.contains(&&*name), "{name}");
            }
        }
    };
}

programs!(bad_input filters fork guards iterator model store threads truncated);

/// The same lines in C and in C++, with either library.
#[test]
fn the_example_runs_in_c_and_in_cxx() {
    let prints = compile_and_run("examples/songs.c", Language::C, Library::Shared);
    for line in [
        "Nina Simone - Sinnerman: 1965",
        "Nina Simone - Freebird: not in the catalogue, and the database was not asked",
        "  Nina Simone - Feeling Good (1965)",
        "\"seen\" is new: yes",
        "a parity filter of 4 titles, in 64 bytes",
    ] {
        assert!(prints.lines().any(|printed| printed == line), "{line} is not in:\n{prints}");
    }
    assert_eq!(prints, compile_and_run("examples/songs.c", Language::Cxx, Library::Static));
}

/// Needs Go. With SIDEBLOOM_TEST_GO=required, it fails without.
#[test]
fn the_example_runs_in_go() {
    let is_required = std::env::var_os("SIDEBLOOM_TEST_GO").is_some_and(|value| value == "required");
    if !is_required && Command::new("go").arg("version").output().is_err() {
        eprintln!("SKIPPED: no Go");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("seen");
    let mut go = Command::new("go");
    go.args(["build", "-tags", "sidebloom_flags", "-o"]).arg(&program).arg(".");
    go.current_dir(package("examples/go"))
        .env("GOCACHE", dir.path().join("cache"))
        .env("GOFLAGS", "-mod=mod");
    go.env("CGO_CFLAGS", format!("-I{}", package("include").display()));
    run(go.env("CGO_LDFLAGS", format!("-L{} -lsidebloom_capi", libraries().display())));
    let prints = run(Command::new(program).arg(dir.path().join("db")).env("LD_LIBRARY_PATH", libraries()));
    for line in
        ["https://a.example/ is new: false", "- https://c.example/ \"robots: none\"", "seen: [true false]"]
    {
        assert!(prints.lines().any(|printed| printed == line), "{line} is not in:\n{prints}");
    }
}
