//! Runs the real binary on a store of its own.

use assert_cmd::Command;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory for one test, with the store that the commands use.
pub struct Sandbox {
    dir: TempDir,
}

/// What a command did.
pub struct Outcome {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Sandbox { dir: tempfile::tempdir().unwrap() }
    }

    /// The path of a file or directory in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// Writes a file for a command to read.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The binary, on this store; temporary files go into the sandbox.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
        let temporary = self.path("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        command.env("SIDEBLOOM_DB", self.store()).env("TMPDIR", temporary);
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Outcome {
        self.run_with(args, b"")
    }

    pub fn run_with<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Outcome {
        let output = self.command().args(args).write_stdin(stdin).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!err.contains("panicked"), "{err}");
        Outcome { code: output.status.code().unwrap(), out: output.stdout, err }
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub fn ok<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, 0, "{}", outcome.err);
        outcome.text()
    }

    /// Runs a command that must fail. Returns its message.
    pub fn fails<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, 2, "{}", outcome.text());
        assert!(!outcome.err.is_empty());
        outcome.err
    }

    /// The files that commands have left in the directory for temporary files.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        files(&self.path("tmp"))
    }
}

impl Outcome {
    pub fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }
}

/// A JSON object's field as text, found without a JSON library: enough for flat values.
pub fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let start =
        json.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {json}")) + name.len() + 3;
    let rest = &json[start..];
    let end = match rest.strip_prefix('"') {
        Some(text) => text.find('"').unwrap() + 2,
        None => rest.find([',', '}']).unwrap(),
    };
    rest[..end].trim_matches('"')
}

/// The text from an object's field on, to find fields within it.
pub fn part<'a>(json: &'a str, name: &str) -> &'a str {
    &json[json.find(&format!("\"{name}\":{{")).unwrap_or_else(|| panic!("no {name} in {json}"))..]
}

/// A JSON object's field as a number.
pub fn number(json: &str, name: &str) -> f64 {
    field(json, name).parse().unwrap()
}

pub fn files(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}
