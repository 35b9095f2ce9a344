//! An S3 server for the tests: moto, in memory. `SIDEBLOOM_TEST_MOTO` gives the path of its program,
//! `moto_server` of the Python package `moto[server]`.
//!
//! Without the variable, the tests print a warning and do nothing. With `SIDEBLOOM_TEST_MOTO=required`, they
//! fail unless `moto_server` is in the path.

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// A request takes milliseconds, so after this long a client waits for an answer that does not come.
pub const TIMEOUT: Duration = Duration::from_millis(1500);
/// How often a client retries a request.
pub const RETRIES: usize = 3;
/// The key that every server of this kind accepts.
const KEY: &str = "test";
/// Starting Python takes seconds, more on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);

pub struct Moto {
    pub address: SocketAddr,
    child: Child,
}

/// The server shared by all tests, each with its own bucket. It ends with the tests.
pub fn moto() -> Option<&'static Moto> {
    static SHARED: OnceLock<Option<Moto>> = OnceLock::new();
    SHARED.get_or_init(Moto::start).as_ref()
}

impl Moto {
    /// Starts a server on a free port; prints a warning and returns `None` if no program is named.
    pub fn start() -> Option<Moto> {
        let Some(program) = std::env::var_os("SIDEBLOOM_TEST_MOTO") else {
            eprintln!(
                "NOT TESTED: SIDEBLOOM_TEST_MOTO does not name moto_server (pip install 'moto[server]')"
            );
            return None;
        };
        let program = if program == "required" { "moto_server".into() } else { program };
        let log = NamedTempFile::new().unwrap();
        let output = || Stdio::from(log.reopen().unwrap());
        // The shell stops the server when its input ends: when this is dropped, or the process ends.
        let script = "command -v \"$0\" || exit; \"$0\" -H 127.0.0.1 -p 0 < /dev/null & cat; kill $!; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(program).stdin(Stdio::piped()).stdout(output()).stderr(output());
        let child = command.spawn().unwrap();
        let mut moto = Moto { address: (Ipv4Addr::LOCALHOST, 0).into(), child };
        let port = moto.wait_for_port(&log);
        moto.address.set_port(port);
        Some(moto)
    }

    fn wait_for_port(&mut self, log: &NamedTempFile) -> u16 {
        let started = Instant::now();
        loop {
            let text = std::fs::read_to_string(log.path()).unwrap();
            let port = text
                .split_once("http://127.0.0.1:")
                .and_then(|(_, rest)| rest.lines().next()?.trim().parse().ok());
            if let Some(port) = port {
                return port;
            }
            let ended = self.child.try_wait().unwrap().is_some();
            assert!(!ended && started.elapsed() < START_MAX, "moto_server does not start: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Creates a bucket.
    pub fn create_bucket(&self, name: &str) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let head = format!("PUT /{name} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.split(' ').nth(1) == Some("200"), "{answer}");
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// A client of a bucket at an address: the server's, or a proxy's in front of it.
pub fn client(address: SocketAddr, bucket: &str) -> AmazonS3 {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(20),
        max_backoff: Duration::from_millis(200),
        base: 2.0,
    };
    AmazonS3Builder::new()
        .with_endpoint(format!("http://{address}"))
        .with_virtual_hosted_style_request(false)
        .with_client_options(ClientOptions::new().with_allow_http(true).with_timeout(TIMEOUT))
        .with_retry(RetryConfig { backoff, max_retries: RETRIES, retry_timeout: Duration::from_secs(30) })
        .with_region("us-east-1")
        .with_access_key_id(KEY)
        .with_secret_access_key(KEY)
        .with_bucket_name(bucket)
        .build()
        .unwrap()
}
