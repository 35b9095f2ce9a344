//! What `serve` and `guard serve` have in common: the address, passwords and limits.

use super::unix_socket::UnixSocket;
use super::{allocator, passed, scheduler};
use crate::context::{Context, Failure};
use clap::ValueEnum;
use serde::Serialize;
use sidebloom::Durability;
use sidebloom_server::server::{self, Endpoints, SaveTo, ServeError, Served, Settings, Users};
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;

/// How clients are served.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// Address and port; port 0 picks a free one. Any address except loopback requires a password
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6379")]
    listen: String,
    /// Do not listen on an address, only on the Unix socket
    #[arg(long, requires = "unix_socket")]
    no_listen: bool,
    /// Also listen on a Unix socket, for clients on this machine
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// Permissions of the Unix socket, in octal: who may write it may connect
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = octal, requires = "unix_socket")]
    unix_socket_mode: u32,
    /// Serve metrics for Prometheus on this address, at /metrics over HTTP; port 0 picks a free one. Needs no
    /// password and is not encrypted: choose an address that only scrapers reach
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// TLS for all clients over TCP: a file with the server's certificates, in PEM form, its own first
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the server's certificate, in PEM form. Others must not be able to read the file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Accept only clients whose certificates one of those in this file has signed
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// A file with passwords, one on a line, of which clients must give one; or set SIDEBLOOM_GUARD_PASSWORD
    /// to a single one. Others must not be able to read the file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A file with users, their passwords, commands and names, as in Redis' access control lists. Others must
    /// not be able to read the file
    #[arg(long, value_name = "FILE", conflicts_with = "password_file")]
    users: Option<PathBuf>,
    /// Maximum number of connected clients
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    max_clients: u32,
    /// Memory, in MiB: half of it for clients (8 KiB for each connection, 24 with TLS, and their requests and
    /// replies), the rest for names, recent changes and caches. When clients have used up theirs, the one
    /// that holds the most is disconnected. Mapped files come on top
    #[arg(long, value_name = "MIB", default_value = "512", value_parser = clap::value_parser!(u32).range(64..=1 << 20))]
    max_memory: u32,
    /// Disconnect a client that is idle for this many seconds; 0 means never
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    idle_timeout: u64,
    /// Disconnect a client whose request is incomplete for this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..))]
    request_timeout: u64,
    /// Disconnect a client that reads no replies for this many seconds, or fewer than 16 KiB a second
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u64).range(1..))]
    output_timeout: u64,
    /// Threads that serve clients [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// When it is on disk
    Sync,
    /// When the operating system has it; a power failure may lose the latest changes
    Os,
}

impl When {
    pub fn durability(self) -> Durability {
        match self {
            When::Sync => Durability::Sync,
            When::Os => Durability::Os,
        }
    }
}

const PASSWORD_VARIABLE: &str = "SIDEBLOOM_GUARD_PASSWORD";

#[derive(Serialize)]
struct Listening {
    listening: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Addresses that are taken, and users that were read. Nothing is served yet.
pub struct Ready {
    endpoints: Endpoints,
    settings: Settings,
    /// Where metrics are.
    metrics: Option<String>,
    /// Removed at the end.
    unix_socket: Option<UnixSocket>,
}

impl ServeArgs {
    /// The limit of memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        (self.max_memory as usize) << 20
    }

    /// Takes the address. Everything that can fail comes before anything is created.
    pub fn ready(&self, durability: When, save_to: Option<SaveTo>) -> Result<Ready, Failure> {
        let users = self.users()?;
        let mut endpoints = passed::endpoints()?;
        let is_passed = endpoints.tcp.is_some() || endpoints.unix.is_some();
        if let Some(listener) = &endpoints.tcp {
            let address =
                listener.local_addr().map_err(|e| Failure::message(format!("a passed socket: {e}")))?;
            check_address(address, users.need_password())?;
        }
        if !is_passed && !self.no_listen {
            let address = address("--listen", &self.listen)?;
            check_address(address, users.need_password())?;
            endpoints.bound = Some(server::bind(address).map_err(|e| {
                Failure::message(format!("cannot listen on {address}: {e}; choose another with --listen"))
            })?);
        }
        self.add_tls(&mut endpoints)?;
        let metrics = self.add_metrics(&mut endpoints)?;
        let mut unix_socket = None;
        if let Some(path) = &self.unix_socket {
            let (listener, socket) = UnixSocket::bind(path, self.unix_socket_mode)?;
            (endpoints.unix, unix_socket) = (Some(listener), Some(socket));
        }
        let settings = Settings {
            users,
            idle_timeout: (self.idle_timeout > 0).then(|| Duration::from_secs(self.idle_timeout)),
            request_timeout: Duration::from_secs(self.request_timeout),
            output_timeout: Duration::from_secs(self.output_timeout),
            max_clients: self.max_clients as usize,
            clients_bytes: self.memory_bytes() / 2,
            is_synced: durability == When::Sync,
            save_to,
            threads: self.threads.map_or_else(cores, usize::from),
        };
        Ok(Ready { endpoints, settings, metrics, unix_socket })
    }

    fn users(&self) -> Result<Users, Failure> {
        if let Some(file) = &self.users {
            let text = secret(file)?;
            return server::users_of(&text)
                .map_err(|(line, why)| Failure::message(format!("{}, line {line}: {why}", file.display())));
        }
        let (from, passwords): (_, Vec<Vec<u8>>) = match &self.password_file {
            Some(file) => {
                let text = secret(file)?;
                let lines = text.lines().map(|line| line.as_bytes().to_vec());
                (file.display().to_string(), lines.filter(|line| !line.is_empty()).collect())
            }
            None => match std::env::var_os(PASSWORD_VARIABLE) {
                Some(value) => (PASSWORD_VARIABLE.to_owned(), vec![value.into_vec()]),
                None => return Ok(server::one_user(&[])),
            },
        };
        if passwords.iter().all(Vec::is_empty) {
            return Err(Failure::message(format!("{from}: the password is empty")));
        }
        Ok(server::one_user(&passwords))
    }

    /// Takes the address for metrics. Returns the URL of the metrics.
    fn add_metrics(&self, endpoints: &mut Endpoints) -> Result<Option<String>, Failure> {
        let Some(wanted) = &self.metrics else { return Ok(None) };
        let wanted = address("--metrics", wanted)?;
        let cannot = |e| Failure::message(format!("--metrics {wanted}: cannot listen: {e}"));
        let socket = server::bind(wanted).map_err(cannot)?;
        let bound = socket.local_addr().map_err(cannot)?;
        endpoints.metrics = Some(socket);
        Ok(Some(format!("http://{bound}/metrics")))
    }

    #[cfg(not(feature = "tls"))]
    fn add_tls(&self, _: &mut Endpoints) -> Result<(), Failure> {
        match self.tls_cert {
            Some(_) => Err(Failure::not_built_in("TLS", "tls")),
            None => Ok(()),
        }
    }

    #[cfg(feature = "tls")]
    fn add_tls(&self, endpoints: &mut Endpoints) -> Result<(), Failure> {
        if let Some((certificates, key)) = self.tls_cert.as_ref().zip(self.tls_key.as_ref()) {
            secret(key)?;
            let tls = server::Tls::new(certificates, key, self.tls_client_ca.as_deref());
            endpoints.tls = Some(tls.map_err(Failure::message)?);
        }
        Ok(())
    }
}

/// The address that an option names.
fn address(option: &str, text: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: String| Failure::message(format!("{option} {text}: {why}"));
    let found = text.to_socket_addrs().map_err(|e| wrong(format!("{e}; expected ADDRESS:PORT")))?;
    found.into_iter().next().ok_or_else(|| wrong("no such address".into()))
}

/// Without passwords, only this machine is served.
fn check_address(address: SocketAddr, need_password: bool) -> Result<(), Failure> {
    if address.ip().is_loopback() || need_password {
        return Ok(());
    }
    Err(Failure::message(format!(
        "--listen {address}: {} is reachable from other machines: set a password with --password-file, --users or \
         {PASSWORD_VARIABLE}",
        address.ip()
    )))
}

impl Ready {
    /// Serves until a signal, or until `dependency` has something.
    pub fn serve(
        self,
        cx: &Context,
        served: Served,
        dependency: Option<oneshot::Receiver<Failure>>,
        name: Option<String>,
    ) -> Result<(), Failure> {
        let Ready { endpoints, settings, metrics, unix_socket } = self;
        allocator::give_back_large_buffers();
        scheduler::take_short_turns();
        let announce = |address: Option<SocketAddr>| {
            let tcp = address.map(|address| address.to_string());
            let unix = unix_socket.as_ref().map(|socket| format!("unix:{}", socket.path.display()));
            announce(cx, &[tcp, unix].into_iter().flatten().collect::<Vec<_>>(), metrics, name)
        };
        server::run(endpoints, served, dependency, settings, announce).map_err(|error| match error {
            ServeError::Store(error) => Failure::Store(error),
            ServeError::Dependency(failure) => failure,
            other => Failure::message(other.to_string()),
        })
    }
}

fn announce(
    cx: &Context,
    places: &[String],
    metrics: Option<String>,
    name: Option<String>,
) -> Result<(), Failure> {
    let listening =
        if places.is_empty() { "the sockets that were passed".to_owned() } else { places.join(" and ") };
    let report = Listening { listening, metrics, name };
    cx.report(&report, |out| {
        writeln!(out, "listening on {}", report.listening)?;
        let mut metrics = report.metrics.iter();
        Ok(metrics.try_for_each(|url| writeln!(out, "metrics on {url}"))?)
    })?;
    cx.flush()?;
    passed::tell_ready();
    Ok(())
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "expected 000 to 777".into())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What is in a file that only its owner, and its group, may read.
fn secret(file: &Path) -> Result<String, Failure> {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    let fails = |e| Failure::file("read", file, e);
    let mut opened = std::fs::File::open(file).map_err(fails)?;
    if opened.metadata().map_err(fails)?.mode() & 0o004 != 0 {
        let file = file.display();
        return Err(Failure::message(format!("{file}: everybody can read it: chmod o-r {file}")));
    }
    let mut text = String::new();
    opened.read_to_string(&mut text).map_err(fails)?;
    Ok(text)
}
