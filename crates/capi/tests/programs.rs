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
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
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

programs!(bad_input filters fork guards iterator model store threads);
