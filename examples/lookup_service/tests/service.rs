//! The real service and real clients.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use ureq::Agent;

const WAYS: [&str; 3] = ["blocking", "inline", "batched"];
const CLIENTS: usize = 6;
const KEYS: usize = 200;

/// A running service. Killed when dropped.
struct Service {
    child: Child,
    /// Held open: it has printed to it.
    _stdout: BufReader<ChildStdout>,
    url: String,
}

impl Service {
    fn start(dir: &Path, way: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookup-service"));
        command.arg("serve").arg(dir).args(["127.0.0.1:0", "--reads", way]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {line:?}"));
        Service { child, _stdout: stdout, url: format!("http://{address}") }
    }

    /// SIGTERM, and the end of the process.
    fn stop(mut self) -> ExitStatus {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).build().into()
}

/// The value of a key, `None` if the service says 404.
fn look_up(agent: &Agent, url: &str, key: &str) -> Option<String> {
    let mut answer = agent.get(format!("{url}/keys/{key}")).call().unwrap();
    let body = answer.body_mut().read_to_string().unwrap();
    match answer.status().as_u16() {
        200 => Some(body),
        404 => None,
        other => panic!("status {other}: {body}"),
    }
}

fn put(agent: &Agent, url: &str, key: &str, value: &str) -> u16 {
    agent.put(format!("{url}/keys/{key}")).send(value).unwrap().status().as_u16()
}

/// What was put is there for all clients, and after a stop, whichever way keys are read.
#[test]
fn rows_are_found_in_each_way_of_reading_and_after_a_stop() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("lookups.db");
    let agent = agent();
    for way in WAYS {
        let service = Service::start(&dir, way);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (agent, url) = (&agent, &service.url);
                scope.spawn(move || {
                    for key in (client..KEYS).step_by(CLIENTS) {
                        let (key, value) = (format!("{way}{key}"), format!("value {key}"));
                        assert_eq!(look_up(agent, url, &key), None);
                        assert_eq!(put(agent, url, &key, &value), 204);
                        assert_eq!(look_up(agent, url, &key), Some(value));
                    }
                });
            }
        });
        assert!(service.stop().success());
    }
    for way in WAYS {
        let service = Service::start(&dir, way);
        for (written, key) in WAYS.iter().flat_map(|written| (0..KEYS).map(move |key| (written, key))) {
            let value = look_up(&agent, &service.url, &format!("{written}{key}"));
            assert_eq!(value, Some(format!("value {key}")));
        }
    }
}

#[test]
fn a_stop_leaves_a_store_that_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("lookups.db");
    let service = Service::start(&dir, "blocking");
    let agent = agent(); // Its connection stays open, and must not keep the service from stopping.
    assert_eq!(put(&agent, &service.url, "a%2Fb", "1"), 204);
    assert_eq!(put(&agent, &service.url, "empty", ""), 204);
    assert!(service.stop().success());
    let db = sidebloom::Options::new().read_only(true).open(&dir).unwrap();
    assert!(db.get("a/b").unwrap().is_some_and(|value| value == b"1"));
    assert!(db.get("empty").unwrap().is_some_and(|value| value.is_empty()));
    let logged: u64 = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "wal"))
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(logged < 100, "closing moves rows to a segment, but {logged} bytes are in logs");
}

#[test]
fn pings_and_wrong_requests_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start(&dir.path().join("lookups.db"), "blocking");
    let agent = agent();
    let status = |request: &str| agent.get(format!("{}{request}", service.url)).call().unwrap().status();
    assert_eq!(status("/ping"), 200);
    assert_eq!(status("/nothing"), 404);
    assert_eq!(put(&agent, &service.url, "large", &"x".repeat(3 << 20)), 413); // axum takes up to 2 MiB.
    assert_eq!(look_up(&agent, &service.url, "large"), None);
}

/// The load test checks each answer.
#[test]
fn a_small_load_gets_right_answers_in_each_way_of_reading() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("load.db");
    for (way, rate) in WAYS.iter().flat_map(|way| [(way, "0"), (way, "2000")]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lookup-service"));
        command.arg("load").arg(&dir).args(["--keys", "5000", "--connections", "50", "--seconds", "1"]);
        let output =
            command.args(["--found", "40", "--puts", "10", "--rate", rate, "--reads", way]).output().unwrap();
        assert!(output.status.success(), "{way} {rate}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
