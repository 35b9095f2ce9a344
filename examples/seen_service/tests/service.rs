//! The real service, real clients, and a service that is killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use ureq::Agent;

const CLIENTS: usize = 6;
const KEYS: usize = 2000;

/// A running service. Killed when dropped.
struct Service {
    child: Child,
    /// Held open: it has printed to it.
    _stdout: BufReader<ChildStdout>,
    url: String,
}

impl Service {
    fn start(dir: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seen-service"));
        let mut child = command.arg(dir).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {line:?}"));
        Service { child, _stdout: stdout, url: format!("http://{address}/seen") }
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the service says that the key is new. Fails without an answer.
fn is_new(agent: &Agent, url: &str, key: usize) -> Result<bool, ureq::Error> {
    let answer =
        agent.post(url).send(format!("https://example.org/page/{key}"))?.body_mut().read_to_string()?;
    match &*answer {
        "new" => Ok(true),
        "seen" => Ok(false),
        other => panic!("it answered {other:?}"),
    }
}

/// What all clients were told.
#[derive(Default)]
struct Told {
    /// Keys that somebody was told are new.
    new: HashSet<usize>,
    /// Keys that somebody was told are not.
    seen: HashSet<usize>,
    /// Keys whose answer was lost at least once.
    lost: HashSet<usize>,
}

impl Told {
    fn answer(&mut self, key: usize, is_new: bool) {
        if is_new {
            assert!(self.new.insert(key), "key {key} was new twice");
        } else {
            self.seen.insert(key);
        }
    }

    /// A key that was seen was new for somebody, or the answer that it is new was lost.
    fn check(&self) {
        let unexplained: Vec<_> =
            self.seen.iter().filter(|key| !self.new.contains(key) && !self.lost.contains(key)).collect();
        assert!(unexplained.is_empty(), "seen, but new for nobody: {unexplained:?}");
    }
}

/// Asks for all keys, in a random order, until an answer is lost.
fn ask_for_all(url: &str, told: &Mutex<Told>) {
    let agent = Agent::new_with_defaults();
    let mut keys: Vec<usize> = (0..KEYS).collect();
    fastrand::shuffle(&mut keys);
    for key in keys {
        let answer = is_new(&agent, url, key);
        let mut told = told.lock().unwrap();
        match answer {
            Ok(is_new) => told.answer(key, is_new),
            Err(_) => {
                told.lost.insert(key);
                return;
            }
        }
    }
}

#[test]
fn each_key_is_new_for_one_of_six_clients() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start(&dir.path().join("seen.db"));
    let told = Mutex::default();
    thread::scope(|scope| {
        (0..CLIENTS).for_each(|_| drop(scope.spawn(|| ask_for_all(&service.url, &told))));
    });
    let told = told.into_inner().unwrap();
    assert_eq!((told.new.len(), told.lost.len()), (KEYS, 0));
    told.check();
    let long = "x".repeat(sidebloom::MAX_KEY_BYTES + 1);
    assert!(ureq::post(&service.url).send(long).is_err());
}

#[test]
fn no_key_is_new_again_after_the_service_was_killed() {
    const KILLS: usize = 5;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("seen.db");
    let told = Mutex::<Told>::default();
    for kill in 1..=KILLS {
        let mut service = Service::start(&dir);
        let url = service.url.clone();
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| ask_for_all(&url, &told))).collect();
            let enough = kill * KEYS / (2 * KILLS);
            while told.lock().unwrap().new.len() < enough
                && !clients.iter().all(|client| client.is_finished())
            {
                thread::sleep(Duration::from_millis(1));
            }
            service.kill();
        });
        let told = told.lock().unwrap();
        told.check();
        assert!(told.new.len() < KEYS && !told.lost.is_empty(), "killed in mid-work");
    }
    let service = Service::start(&dir);
    ask_for_all(&service.url, &told);
    let told = told.into_inner().unwrap();
    told.check();
    assert_eq!(told.new.union(&told.lost).count(), KEYS);
    let agent = Agent::new_with_defaults();
    assert!((0..KEYS).all(|key| !is_new(&agent, &service.url, key).unwrap()));
}

#[test]
fn metrics_are_there_for_prometheus() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start(&dir.path().join("seen.db"));
    let agent = Agent::new_with_defaults();
    assert!(is_new(&agent, &service.url, 1).unwrap());
    let url = service.url.replace("/seen", "/metrics");
    let text = agent.get(&url).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(text.contains("\nsidebloom_failed{store=\"seen\"} 0\n"), "{text}");
}
