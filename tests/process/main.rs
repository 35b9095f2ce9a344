//! Tests that start this binary again as a process to be killed or limited.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod fork;
mod i4_sigkill;
mod out_of_descriptors;
#[cfg(target_os = "linux")]
mod out_of_threads;
#[cfg(target_os = "linux")]
mod sigbus;
mod working_directory;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hold this while starting a process, and while reopening a store on a real disk: a forked process holds its
/// parent's file locks until it executes its own program.
fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The arguments with which this binary runs a single test; `module` is the test's `module_path!()`.
fn arguments_for(module: &str, test: &str) -> [String; 3] {
    let (_, module) = module.split_once("::").unwrap();
    ["--exact".into(), format!("{module}::{test}"), "--nocapture".into()]
}

/// This binary again, for a single test.
fn command_for(module: &str, test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments_for(module, test));
    command
}

/// Fails if the child found no test with the given name: it would then succeed without testing anything.
#[track_caller]
fn assert_ran(stdout: &[u8]) {
    let stdout = String::from_utf8_lossy(stdout);
    assert!(stdout.contains("running 1 test"), "{stdout}");
}
