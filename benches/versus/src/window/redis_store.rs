//! Redis: `SET id value NX PX life`, in memory alone, over a Unix socket.
//!
//! Its clock is the system's, so a life is measured first: as long as the server takes for a window of ids.

use super::store::{Held, OpenSpec, WindowStore};
use super::stream::{CHUNK, Event, Stream};
use crate::error::Result;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The server's program.
const PROGRAM: &str = "redis-server";
/// Its socket, in the directory that it runs in.
const SOCKET: &str = "redis.sock";
/// Ids that are set to measure the speed, before the stream begins.
const TRIAL: u64 = 500_000;
/// How long to wait for the server at most.
const START_MAX: Duration = Duration::from_secs(10);

/// A running server, which ends with this.
pub struct RedisStore {
    server: Child,
    connections: Vec<Mutex<BufReader<UnixStream>>>,
    life_ms: AtomicU64,
}

/// The configuration, in words.
pub fn describe() -> String {
    let version = Command::new(PROGRAM).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_else(|_| format!("{PROGRAM} is missing"));
    let version = version.split_ascii_whitespace().find_map(|word| word.strip_prefix("v="));
    format!(
        "Redis {}: SET id value NX PX life, in pipelines, over a Unix socket; no snapshots and no log, so nothing survives the server; a \
         life is as long as it takes for a window of ids",
        version.unwrap_or("?")
    )
}

impl RedisStore {
    /// Starts a server, with a connection for each thread.
    pub fn start(how: &OpenSpec<'_>, threads: usize) -> Result<Self> {
        let mut command = Command::new(PROGRAM);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
        let server = command.args(["--unixsocket", SOCKET]).current_dir(how.dir).stdout(Stdio::null()).spawn();
        let server = server.map_err(|error| format!("{PROGRAM}: {error}; apt install redis-server"))?;
        let mut store = RedisStore { server, connections: Vec::new(), life_ms: AtomicU64::new(0) };
        for _ in 0..threads {
            store.connections.push(Mutex::new(BufReader::new(connect(&how.dir.join(SOCKET))?)));
        }
        store.measure_life(how.window)?;
        Ok(store)
    }

    /// Sets other ids, as the stream will, and forgets them.
    fn measure_life(&self, window: u64) -> Result<()> {
        self.life_ms.store(1 << 40, Relaxed);
        let trial = Stream { window: u64::MAX >> 24, total: TRIAL };
        let (begin, threads) = (Instant::now(), self.connections.len() as u64);
        std::thread::scope(|scope| {
            let set = |thread: u64| -> Result<()> {
                let numbers: Vec<u64> = (thread..TRIAL).step_by(threads as usize).collect();
                for chunk in numbers.chunks(CHUNK as usize) {
                    let events: Vec<Event> = chunk.iter().map(|number| trial.event(*number)).collect();
                    self.first_seen_all(thread as usize, &events, &mut Vec::new(), &mut Vec::new())?;
                }
                Ok(())
            };
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || set(thread))).collect();
            running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })?;
        let life = begin.elapsed().as_millis() as u64 * window / TRIAL;
        self.life_ms.store(life.max(1), Relaxed);
        self.ask("FLUSHALL SYNC\r\n").map(drop)
    }

    /// The first line of the answer to an inline command.
    fn ask(&self, command: &str) -> Result<String> {
        let mut connection = self.connections[0].lock().map_err(|_| "a thread panicked")?;
        connection.get_mut().write_all(command.as_bytes())?;
        line(&mut connection)
    }

    /// The value of a field of `INFO memory`.
    fn used_memory(&self) -> Result<u64> {
        let bytes: usize = self.ask("INFO memory\r\n")?.trim_start_matches('$').parse()?;
        let mut connection = self.connections[0].lock().map_err(|_| "a thread panicked")?;
        let mut text = vec![0; bytes + 2];
        std::io::Read::read_exact(&mut *connection, &mut text)?;
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

/// A line of an answer, without its end.
fn line(connection: &mut BufReader<UnixStream>) -> Result<String> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    match line.trim_end() {
        "" => Err("Redis closed the connection".into()),
        error if error.starts_with('-') => Err(format!("Redis: {error}").into()),
        line => Ok(line.to_owned()),
    }
}

impl WindowStore for RedisStore {
    fn first_seen(&self, event: &Event) -> Result<bool> {
        let mut answers = Vec::new();
        self.first_seen_all(0, std::slice::from_ref(event), &mut answers, &mut Vec::new())?;
        Ok(answers == [true])
    }

    /// In one pipeline.
    fn first_seen_all(
        &self,
        thread: usize,
        events: &[Event],
        answers: &mut Vec<bool>,
        _nanos: &mut Vec<u64>,
    ) -> Result<()> {
        let life = self.life_ms.load(Relaxed).to_string();
        let mut commands = Vec::with_capacity(events.len() * 100);
        for Event { id, value, .. } in events {
            commands.extend_from_slice(b"*6\r\n$3\r\nSET\r\n$24\r\n");
            commands.extend_from_slice(id);
            commands.extend_from_slice(b"\r\n$8\r\n");
            commands.extend_from_slice(value);
            write!(commands, "\r\n$2\r\nNX\r\n$2\r\nPX\r\n${}\r\n{life}\r\n", life.len())?;
        }
        let mut connection = self.connections[thread].lock().map_err(|_| "a thread panicked")?;
        connection.get_mut().write_all(&commands)?;
        for _ in events {
            answers.push(line(&mut connection)? == "+OK");
        }
        Ok(())
    }

    fn held(&self) -> Result<Held> {
        let rows = self.ask("DBSIZE\r\n")?.trim_start_matches(':').parse()?;
        Ok(Held { rows: Some(rows), server_bytes: Some(self.used_memory()?), ..Held::default() })
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}
