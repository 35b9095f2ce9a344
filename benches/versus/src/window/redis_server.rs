//! A Redis server of our own, in memory alone, over a Unix socket.

use crate::error::Result;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The server's program.
const PROGRAM: &str = "redis-server";
/// Its socket, in the directory that it runs in.
const SOCKET: &str = "redis.sock";
/// How long to wait for the server at most.
const START_MAX: Duration = Duration::from_secs(10);

/// A running server, which ends with this.
pub struct RedisServer {
    server: Child,
    connections: Vec<Mutex<BufReader<UnixStream>>>,
}

/// The version, in words.
pub fn version() -> String {
    let version = Command::new(PROGRAM).arg("--version").output();
    let Ok(version) = version else { return format!("({PROGRAM} is missing)") };
    let version = String::from_utf8_lossy(&version.stdout);
    version.split_ascii_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or("?").to_owned()
}

impl RedisServer {
    /// Starts a server in a directory, with a connection for each thread.
    pub fn start(dir: &Path, threads: usize, module: Option<&Path>) -> Result<Self> {
        let mut command = Command::new(PROGRAM);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        if let Some(module) = module {
            command.arg("--loadmodule").arg(module);
        }
        let server = command.args(["--unixsocket", SOCKET]).current_dir(dir).stdout(Stdio::null()).spawn();
        let server = server.map_err(|error| format!("{PROGRAM}: {error}; apt install redis-server"))?;
        let mut started = RedisServer { server, connections: Vec::new() };
        for _ in 0..threads {
            started.connections.push(Mutex::new(BufReader::new(connect(&dir.join(SOCKET))?)));
        }
        Ok(started)
    }

    /// How many connections there are.
    pub fn threads(&self) -> usize {
        self.connections.len()
    }

    /// The first line of the answer to an inline command.
    pub fn ask(&self, command: &str) -> Result<String> {
        let mut first = String::new();
        self.pipeline(0, format!("{command}\r\n").as_bytes(), 1, |line| first = line.to_owned())?;
        Ok(first)
    }

    /// Sends commands over a thread's connection, and shows each line of their answers, so many.
    pub fn pipeline(
        &self,
        thread: usize,
        commands: &[u8],
        lines: usize,
        mut show: impl FnMut(&str),
    ) -> Result<()> {
        let mut connection = self.connections[thread].lock().map_err(|_| "a thread panicked")?;
        connection.get_mut().write_all(commands)?;
        let mut line = String::new();
        for _ in 0..lines {
            line.clear();
            connection.read_line(&mut line)?;
            match line.trim_end() {
                "" => return Err("Redis closed the connection".into()),
                error if error.starts_with('-') => return Err(format!("Redis: {error}").into()),
                line => show(line),
            }
        }
        Ok(())
    }

    /// Memory in use, in bytes.
    pub fn used_memory(&self) -> Result<u64> {
        let bytes: usize = self.ask("INFO memory")?.trim_start_matches('$').parse()?;
        let mut text = vec![0; bytes + 2];
        self.connections[0].lock().map_err(|_| "a thread panicked")?.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
        Ok(used.ok_or("INFO without used_memory")?.trim().parse()?)
    }
}

fn connect(socket: &Path) -> Result<UnixStream> {
    let begin = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if begin.elapsed() > START_MAX => {
                return Err(format!("{PROGRAM}, at {}: {error}", socket.display()).into());
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Adds a command of so many words.
pub fn begin_command(commands: &mut Vec<u8>, words: usize) {
    commands.extend_from_slice(format!("*{words}\r\n").as_bytes());
}

/// Adds a word of a command.
pub fn push_word(commands: &mut Vec<u8>, word: &[u8]) {
    commands.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
    commands.extend_from_slice(word);
    commands.extend_from_slice(b"\r\n");
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}
