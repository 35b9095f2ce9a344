//! `--wait`, between real processes.

use crate::sandbox::{Sandbox, field};
use crate::server::Server;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn spawn(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    command.env("SIDEBLOOM_DB", sandbox.store()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A process that has the store open until its standard input ends.
fn holder(sandbox: &Sandbox) -> Child {
    sandbox.ok(&["put", "first", "1"]); // A missing store is not waited for.
    let mut holder = spawn(sandbox, &["load", "--wait", "-"]);
    while sandbox.run(&["put", "first", "2"]).code == 0 {
        assert!(holder.try_wait().unwrap().is_none(), "it has the store");
    }
    holder
}

fn ends_well(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_second_writer_waits_until_the_first_has_closed_the_store_and_says_so() {
    let sandbox = Sandbox::new();
    let mut holder = holder(&sandbox);
    let mut waiting = spawn(&sandbox, &["put", "--wait", "song", "Zombie"]);
    let mut reading = spawn(&sandbox, &["rebuild-filters", "--wait=60"]);
    sleep(Duration::from_millis(1300));
    assert!(waiting.try_wait().unwrap().is_none() && reading.try_wait().unwrap().is_none());
    drop(holder.stdin.take());
    ends_well(holder);
    let notice = format!("waiting for {}, which another process has open", sandbox.store().display());
    for child in [waiting, reading] {
        let said = ends_well(child);
        assert_eq!(said.matches(&notice).count(), 1, "{said}");
    }
    assert_eq!(sandbox.ok(&["get", "song"]), "Zombie");
    assert_eq!(ends_well(spawn(&sandbox, &["put", "--wait", "free", "1"])), "");
}

#[test]
fn a_wait_ends_at_its_limit_with_the_error_that_there_is_without_it() {
    let sandbox = Sandbox::new();
    let mut holder = holder(&sandbox);
    let error = sandbox.fails(&["put", "song", "Zombie"]);
    let started = Instant::now();
    assert_eq!(sandbox.fails(&["put", "--wait=0.4", "song", "Zombie"]), error);
    assert!(error.contains("is locked") && started.elapsed() >= Duration::from_millis(400), "{error}");
    assert!(sandbox.fails(&["put", "--wait=soon", "song", "Zombie"]).contains("number of seconds"));
    drop(holder.stdin.take());
    ends_well(holder);
}

#[test]
fn a_wait_for_a_guard_can_be_interrupted_or_lasts_until_its_server_stops() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox.path(""), &[]);
    let guard = sandbox.path("songs.guard").to_str().unwrap().to_owned();
    let mut interrupted = spawn(&sandbox, &["guard", "insert", &guard, "One", "--wait"]);
    let mut waiting = spawn(&sandbox, &["guard", "insert", &guard, "Zombie", "--wait"]);
    let mut reading = spawn(&sandbox, &["guard", "stats", &guard, "--json", "--wait"]);
    sleep(Duration::from_millis(300));
    let pid = rustix::process::Pid::from_child(&interrupted);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(interrupted.wait().unwrap().signal(), Some(15));
    assert!(waiting.try_wait().unwrap().is_none() && reading.try_wait().unwrap().is_none());
    assert!(server.stop().success());
    ends_well(waiting);
    let read = reading.wait_with_output().unwrap();
    assert!(
        read.status.success()
            && field(&String::from_utf8(read.stdout).unwrap(), "rows").parse::<u8>().is_ok()
    );
    let keys = sandbox.ok(&["guard", "stats", &guard, "--json"]);
    assert_eq!(field(&keys, "rows"), "1", "what was interrupted has changed nothing");
}
