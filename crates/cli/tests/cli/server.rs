//! Starts the real server and talks to it over a socket, with a client that needs only the standard library.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running `sidebloom guard serve` or `sidebloom serve`. Killed when dropped.
pub struct Server {
    child: Child,
    /// Held open: a server that prints to a closed pipe would end.
    _stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

pub fn command(dir: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
    command.args(["guard", "serve"]).arg(dir).args(options).env_remove("SIDEBLOOM_GUARD_PASSWORD");
    command
}

impl Server {
    /// On the guard `songs.guard` in `dir`, created if missing.
    pub fn start(dir: &Path, options: &[&str]) -> Self {
        let options = [&["--create", "--listen", "127.0.0.1:0"], options].concat();
        Self::spawn(command(&dir.join("songs.guard"), &options))
    }

    /// `sidebloom serve` of the filters in `filters` in `dir`, created if missing.
    pub fn of_filters(dir: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sidebloom"));
        command.arg("serve").arg(dir.join("filters")).args(options);
        if !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.env_remove("SIDEBLOOM_GUARD_PASSWORD");
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {line:?}"));
        Server { address: address.parse().unwrap(), child, _stdout: stdout }
    }

    pub fn connect(&self) -> Client {
        Client::new(self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM. Returns the outcome.
    pub fn stop(mut self) -> ExitStatus {
        self.signal();
        self.child.wait().unwrap()
    }

    pub fn signal(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Resident memory in bytes.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection.
pub struct Client {
    pub stream: BufReader<TcpStream>,
}

/// A request as client libraries send it.
pub fn request<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.as_ref().len()).bytes());
        bytes.extend(arg.as_ref());
        bytes.extend(b"\r\n");
    }
    bytes
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// The reply to a command whose words have no spaces; see [`reply`](Self::reply).
    pub fn ask(&mut self, command: &str) -> String {
        self.send(request(&command.split(' ').collect::<Vec<_>>()));
        self.reply()
    }

    /// The next reply in a line: raw status or error, `"text"`, `:1`, `#t`, `nil`, `[array]`, `{map}`,
    /// `<set>`.
    pub fn reply(&mut self) -> String {
        self.try_reply().unwrap_or_else(|| panic!("the connection is closed"))
    }

    /// `None` at the end of the connection.
    pub fn try_reply(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => return None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            other => other.unwrap(),
        };
        let line = line.strip_suffix("\r\n").unwrap_or_else(|| panic!("no line end: {line:?}"));
        let (mark, rest) = line.split_at(1);
        let mut many = |n: usize, open, close| {
            let all: Vec<String> = (0..n).map(|_| self.reply()).collect();
            Some(format!("{open}{}{close}", all.join(" ")))
        };
        match mark {
            "+" | "-" | ":" | "#" => Some(line.to_owned()),
            "_" => Some("nil".into()),
            "$" | "=" | "*" if rest == "-1" => Some("nil".into()),
            "$" | "=" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                assert!(bytes.ends_with(b"\r\n"));
                let text = String::from_utf8(bytes[..bytes.len() - 2].to_vec()).unwrap();
                Some(if mark == "=" { format!("={text}") } else { format!("\"{text}\"") })
            }
            "*" => many(rest.parse().unwrap(), '[', ']'),
            "~" => many(rest.parse().unwrap(), '<', '>'),
            "%" => many(rest.parse::<usize>().unwrap() * 2, '{', '}'),
            other => panic!("a reply of an unknown kind: {other}{rest}"),
        }
    }

    /// Whether the server ends the connection, within a minute.
    pub fn is_closed(&mut self) -> bool {
        self.try_reply().is_none()
    }
}

/// Sends commands one after another, and compares the replies.
pub fn asks(client: &mut Client, exchanges: &[(&str, &str)]) {
    for (ask, reply) in exchanges {
        assert_eq!(client.ask(ask), *reply, "{ask}");
    }
}

/// Begins a transaction, and queues so many commands.
pub fn queue(client: &mut Client, commands: &[u8], count: usize) {
    asks(client, &[("MULTI", "+OK")]);
    let mut sending = client.stream.get_ref().try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || sending.write_all(commands).unwrap());
        (0..count).for_each(|_| assert_eq!(client.reply(), "+QUEUED"));
    });
}

/// What a connection holds that waits for its client, at most.
pub const OWN_BYTES: u64 = 12 << 10;

/// Waits for a condition.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A field of the server's INFO.
pub fn info(client: &mut Client, field: &str) -> u64 {
    let text = client.ask("INFO");
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {field} in {text}")).parse().unwrap()
}
