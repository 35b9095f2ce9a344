//! The load test. It fills a store, serves it in a process of its own, and asks for keys over connections
//! that stay open.
//!
//! With `--rate`, the load is open: requests begin at random times that do not depend on the answers, and one
//! that has to wait for a free connection waits on the clock. Without, it is closed: each connection asks as
//! soon as it has its answer, which shows the most that the service can do.

mod connection;
mod figures;
mod schedule;
mod store;

use self::connection::ask;
use self::figures::Figures;
use self::schedule::Schedule;
use crate::error::Result;
use crate::reads::Way;
use clap::ValueEnum;
use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::LocalSet;

#[derive(clap::Args)]
pub struct Load {
    /// The store; filled if it is missing
    dir: PathBuf,
    /// Keys in the store
    #[arg(long, default_value_t = 10_000_000)]
    keys: u64,
    #[arg(long, default_value_t = 300)]
    connections: usize,
    /// Requests a second; 0: as many as there are answers
    #[arg(long, default_value_t = 10_000)]
    rate: u64,
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Percentage of requests for keys that are there. The rest is missing keys and /ping, half each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(..=100))]
    found: u8,
    /// Percentage of puts, each with an fsync
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    puts: u8,
    /// How a key is read that may be there
    #[arg(long, value_enum, default_value_t)]
    reads: Way,
    /// Threads that read
    #[arg(long, default_value_t = crate::reads::THREADS)]
    threads: u32,
}

impl Load {
    pub fn run(&self) -> Result<()> {
        store::fill(&self.dir, self.keys)?;
        let service = Service::start(&self.dir, self.reads, self.threads)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let measured = |seconds| LocalSet::new().block_on(&runtime, self.measure(&service.address, seconds));
        measured(self.seconds.min(3))?; // To warm up.
        let before = service.cpu_time();
        let figures = measured(self.seconds)?;
        print!("{figures}");
        if let (Some(before), Some(after)) = (before, service.cpu_time()) {
            let micros = (after - before).as_secs_f64() * 1e6 / figures.requests() as f64;
            println!("{micros:.1} µs of the service's CPU time per request");
        }
        service.stop()
    }

    async fn measure(&self, address: &str, seconds: u64) -> Result<Figures> {
        let duration = Duration::from_secs(seconds);
        let mix = store::Mix { keys: self.keys, found: self.found, puts: self.puts };
        let (schedule, queues) = Schedule::new(self.rate, self.connections, mix);
        let figures = Rc::new(RefCell::new(Figures::new(duration)?));
        let mut connections = Vec::new();
        for queue in queues {
            let stream = tokio::net::TcpStream::connect(address).await?;
            connections.push(tokio::task::spawn_local(ask(stream, queue, figures.clone())));
        }
        let timer = std::thread::spawn(move || schedule.run(duration));
        for connection in connections {
            connection.await??;
        }
        timer.join().map_err(|_| "the schedule panicked")?;
        Ok(Rc::try_unwrap(figures).map_err(|_| "a connection is left")?.into_inner())
    }
}

/// A running service. Killed when dropped.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(dir: &Path, way: Way, threads: u32) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(dir).args(["127.0.0.1:0", "--reads"]);
        let way = way.to_possible_value().ok_or("this way of reading has no name")?;
        command.arg(way.get_name()).arg("--threads").arg(threads.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let mut service = Service { child, address: String::new() };
        let mut line = String::new();
        BufReader::new(stdout.ok_or("the service has no output")?).read_line(&mut line)?;
        service.address =
            line.trim().strip_prefix("listening on ").ok_or("the service did not start")?.into();
        Ok(service)
    }

    /// The CPU time that it has taken, on Linux. It hardly depends on what else the machine does.
    fn cpu_time(&self) -> Option<Duration> {
        const TICK: Duration = Duration::from_millis(10);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // Fields 14 and 15: in the program, and in the kernel. The second ends with a parenthesis.
        let mut ticks = stat.rsplit(") ").next()?.split(' ').skip(11);
        let (user, kernel): (u32, u32) = (ticks.next()?.parse().ok()?, ticks.next()?.parse().ok()?);
        Some(TICK * (user + kernel))
    }

    /// Stops it as an administrator would, and waits until the store is closed.
    fn stop(mut self) -> Result<()> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the service ended with {status}").into()) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
