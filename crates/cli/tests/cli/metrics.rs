//! Metrics for Prometheus: `stats --prometheus`, and `/metrics` of the server.

use crate::sandbox::Sandbox;
use crate::server::command;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server with metrics. Killed when dropped.
struct Measured {
    child: Child,
    clients: SocketAddr,
    metrics: SocketAddr,
}

impl Measured {
    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
        let clients = lines.next().unwrap();
        let url = lines.next().unwrap();
        let address = url.strip_prefix("metrics on http://").unwrap().strip_suffix("/metrics").unwrap();
        Measured {
            child,
            clients: clients.strip_prefix("listening on ").unwrap().parse().unwrap(),
            metrics: address.parse().unwrap(),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.metrics).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The whole response to a request.
    fn response(&self, head: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(format!("{head}\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn scrape(&self) -> String {
        let response = self.response("GET /metrics HTTP/1.1");
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
        body.to_owned()
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OPTIONS: [&str; 4] = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];

#[test]
fn stats_prints_the_metrics_of_all_keyspaces() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["put", "key", "value"]);
    sandbox.ok(&["keyspaces", "create", "users\"\n"]);
    let text = sandbox.ok(&["stats", "--prometheus"]);
    assert!(text.contains("# TYPE sidebloom_memtable_bytes gauge\nsidebloom_memtable_bytes "), "{text}");
    assert!(text.contains("\nsidebloom_keyspace_keys{keyspace=\"users\\\"\\n\"} 0\n"), "{text}");
    assert!(text.ends_with('\n') && !text.contains("store="), "{text}");
    let refused = sandbox.run(&["--json", "stats", "--prometheus"]);
    assert!(refused.code == 2 && refused.err.contains("has no JSON output"), "{}", refused.err);
    assert_eq!(sandbox.run(&["stats", "--prometheus", "--keyspace", "users\"\n"]).code, 2);
}

#[test]
fn the_server_serves_metrics_of_filters_and_guards() {
    let dir = tempfile::tempdir().unwrap();
    sidebloom::guard::Guard::build(dir.path().join("songs"), ["a", "b"]).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    serve.arg("serve").arg(dir.path().join("filters")).args(OPTIONS);
    serve.arg("--guard").arg(format!("songs={}", dir.path().join("songs").display()));
    let server = Measured::spawn(serve.env_remove("SIDEBLOOM_GUARD_PASSWORD"));
    let text = server.scrape();
    for store in ["filters", "songs"] {
        assert!(text.contains(&format!("sidebloom_failed{{store=\"{store}\"}} 0\n")), "{text}");
    }
    assert_eq!(text.matches("# TYPE sidebloom_failed gauge\n").count(), 1);
    let mut client = TcpStream::connect(server.clients).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    client.read_exact(&mut [0; 7]).unwrap();
    let text = server.scrape();
    for count in ["clients 1", "connections_total 1", "commands_total 1", "connections_rejected_total 0"] {
        assert!(text.contains(&format!("\nsidebloom_server_{count}\n")), "{count}: {text}");
    }
    let page = include_str!("../../../../docs/metrics.md");
    for kind in text.lines().filter_map(|line| line.strip_prefix("# TYPE sidebloom_server_")) {
        let (name, kind) = kind.split_once(' ').unwrap();
        assert!(
            page.contains(&format!("| `sidebloom_server_{name}` | {kind} |")),
            "{name} is not in the page"
        );
    }
    assert!(server.response("GET /other HTTP/1.1").starts_with("HTTP/1.1 404"));
    assert!(server.response("POST /metrics HTTP/1.1").starts_with("HTTP/1.1 405"));
    assert!(server.response("HEAD /metrics HTTP/1.1").ends_with("\r\n\r\n"));
    assert!(!server.response("nonsense").starts_with("HTTP/1.1 200"));
}

/// Connections that say nothing give way to others, and end after a few seconds in any case.
#[test]
fn silent_scrapers_of_a_guard_end_and_others_get_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let options = [&["--create"][..], &OPTIONS].concat();
    let server = Measured::spawn(&mut command(&dir.path().join("songs.guard"), &options));
    assert!(server.scrape().contains("sidebloom_failed{store=\"songs\"} 0\n"));
    let began = Instant::now();
    // 16 are served at once, and a silent one ends by itself after 2 s: waiting for that, it would take 8 s.
    let silent: Vec<_> = (0..64).map(|_| server.connect()).collect();
    assert!(server.scrape().contains("sidebloom_failed"));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    let mut first = silent.into_iter().next().unwrap();
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest); // The server has closed it.
    let huge = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(1 << 20));
    let mut stream = server.connect();
    let _ = stream.write_all(huge.as_bytes());
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    assert!(server.scrape().contains("sidebloom_failed"));
}

#[test]
fn an_address_for_metrics_that_cannot_be_had_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (wanted, says) in [(address.as_str(), "cannot listen"), ("nowhere", "expected ADDRESS:PORT")] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
        serve.arg("serve").arg(dir.path().join("filters")).args([
            "--listen",
            "127.0.0.1:0",
            "--metrics",
            wanted,
        ]);
        let output = serve.env_remove("SIDEBLOOM_GUARD_PASSWORD").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("--metrics") && error.contains(says), "{error}");
        assert_eq!(output.status.code(), Some(2));
        assert!(!dir.path().join("filters").exists(), "nothing is created");
    }
}
