//! Thousands of hostile, slow and broken clients of one server, and what honest ones notice of them.
//!
//! ```text
//! sidebloom serve /tmp/filters --listen 127.0.0.1:7000 &
//! cargo run --release -p sidebloom-server --example hostile_clients -- 127.0.0.1:7000 $! [CLIENTS [SECONDS]]
//! ```
//!
//! Prints the honest clients' latency and the server's greatest resident memory (of process `$!`, from
//! /proc). Ends with code 1 if an honest client got a wrong reply, the server used more than 512 MiB, or the
//! 99th percentile was above 5 ms.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a step that fails ends the measurement")]

use fastrand::Rng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

const HONEST: usize = 50;
const MEMORY_MAX: u64 = 512 << 20;
const P99_MAX: Duration = Duration::from_millis(5);

static LATENCIES: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static WRONG: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

fn request(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend_from_slice(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// What a hostile client does, over and over, until it is disconnected.
#[derive(Clone, Copy)]
enum Hostility {
    /// Connects and says nothing.
    Idle,
    /// Sends a request byte by byte.
    Slow,
    /// Sends the beginning of a large request, and waits.
    Hoard,
    /// Asks much and reads a byte now and then.
    Deaf,
    /// Sends random bytes.
    Garbage,
    /// Queues commands with large replies, and executes them.
    Amplify,
    /// Many large requests.
    Large,
    /// Creates and deletes filters.
    Churn,
}

const KINDS: [(Hostility, usize); 8] = [
    (Hostility::Idle, 40),
    (Hostility::Slow, 25),
    (Hostility::Hoard, 8),
    (Hostility::Deaf, 8),
    (Hostility::Garbage, 8),
    (Hostility::Amplify, 2),
    (Hostility::Large, 2),
    (Hostility::Churn, 7),
];

async fn be_hostile(address: &str, kind: Hostility, mut rng: Rng) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let pause = |rng: &mut Rng| sleep(Duration::from_millis(rng.u64(200..4000)));
    match kind {
        Hostility::Idle => {
            let mut byte = [0];
            stream.read_exact(&mut byte).await?;
        }
        Hostility::Slow => loop {
            for byte in request(&[b"BF.EXISTS", b"slow", b"item"]) {
                stream.write_all(&[byte]).await?;
                pause(&mut rng).await;
            }
        },
        Hostility::Hoard => {
            stream.write_all(b"*1000\r\n$7\r\nBF.MADD\r\n$5\r\nhoard\r\n").await?;
            let item = vec![b'x'; rng.usize(1..200_000)];
            loop {
                stream.write_all(&request(&[&item])[4..]).await?;
                pause(&mut rng).await;
            }
        }
        Hostility::Deaf => {
            let items: Vec<Vec<u8>> = (0..2000).map(|n: u32| n.to_le_bytes().to_vec()).collect();
            let mut args: Vec<&[u8]> = vec![b"BF.MEXISTS", b"deaf"];
            args.extend(items.iter().map(Vec::as_slice));
            let ask = request(&args);
            loop {
                timeout(Duration::from_secs(60), stream.write_all(&ask)).await??;
                let mut byte = [0];
                stream.read_exact(&mut byte).await?;
                pause(&mut rng).await;
            }
        }
        Hostility::Garbage => loop {
            let bytes: Vec<u8> = (0..rng.usize(1..500)).map(|_| rng.u8(..)).collect();
            stream.write_all(if rng.bool() { &bytes } else { b"*3\r\n$-5\r\n" }).await?;
            pause(&mut rng).await;
        },
        Hostility::Amplify => loop {
            stream.write_all(&request(&[b"MULTI"])).await?;
            stream.write_all(&request(&[b"COMMAND"]).repeat(500)).await?;
            stream.write_all(&request(&[b"EXEC"])).await?;
            let mut some = vec![0; 1 << 16];
            for _ in 0..20 {
                stream.read_exact(&mut some).await?;
                pause(&mut rng).await;
            }
        },
        Hostility::Large => loop {
            let items: Vec<[u8; 8]> = (0..100_000).map(|_| rng.u64(..).to_le_bytes()).collect();
            let mut args: Vec<&[u8]> = vec![b"BF.MEXISTS", b"large"];
            args.extend(items.iter().map(<[u8; 8]>::as_slice));
            stream.write_all(&request(&args)).await?;
            let mut replies = vec![0; "*100000\r\n".len() + 400_000];
            stream.read_exact(&mut replies).await?;
            pause(&mut rng).await;
            sleep(Duration::from_secs(10)).await;
        },
        Hostility::Churn => loop {
            let name = format!("churn{}", rng.u32(..100_000)).into_bytes();
            let mut commands = request(&[b"BF.RESERVE", &name, b"0.000001", b"1000000000"]);
            commands.extend(request(&[b"BF.ADD", &name, b"x"]));
            if rng.bool() {
                commands.extend(request(&[b"DEL", &name]));
            }
            stream.write_all(&commands).await?;
            let mut some = vec![0; 4096];
            if stream.read(&mut some).await? == 0 {
                break;
            }
            pause(&mut rng).await;
        },
    }
    Ok(())
}

/// Adds items and asks for them and for others, one at a time, and knows the answers.
async fn be_honest(address: &str, number: usize, until: Instant) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let filter = format!("honest{number}").into_bytes();
    let mut n = 0u64;
    while Instant::now() < until {
        let (added, other) = (n.to_le_bytes(), (n | 1 << 63).to_le_bytes());
        for (command, item, reply) in [
            ("BF.ADD", &added, b":1\r\n"),
            ("BF.EXISTS", &added, b":1\r\n"),
            ("BF.EXISTS", &other, b":0\r\n"),
        ] {
            let started = Instant::now();
            stream.write_all(&request(&[command.as_bytes(), &filter, item])).await?;
            let mut got = [0; 4];
            stream.read_exact(&mut got).await?;
            LATENCIES.lock().unwrap().push(started.elapsed().as_micros() as u32);
            WRONG.fetch_add(u64::from(&got != reply), Relaxed);
            sleep(Duration::from_millis(10)).await;
        }
        n += 1;
    }
    Ok(())
}

fn resident(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the server is gone");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Keeps `clients` hostile connections until then. A process of its own: honest clients shall measure the
/// server, not how busy its attackers are.
async fn attack(address: &str, clients: usize, until: Instant) {
    let whole: usize = KINDS.iter().map(|(_, share)| share).sum();
    let mut id = 0;
    for (kind, share) in KINDS {
        for _ in 0..clients * share / whole {
            id += 1;
            let (address, seed) = (address.to_owned(), id as u64);
            tokio::spawn(async move {
                let mut rng = Rng::with_seed(seed);
                sleep(Duration::from_millis(rng.u64(..10_000))).await;
                // Whoever is disconnected comes back.
                while Instant::now() < until {
                    let _ = be_hostile(&address, kind, rng.fork()).await;
                    ENDED.fetch_add(1, Relaxed);
                    sleep(Duration::from_millis(rng.u64(500..3000))).await;
                }
            });
        }
    }
    tokio::time::sleep_until(until).await;
    println!("{} hostile connections ended", ENDED.load(Relaxed));
}

const USAGE: &str = "usage: hostile_clients ADDRESS PROCESS [CLIENTS [SECONDS]]";

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, process, rest @ ..] = args.as_slice() else { return eprintln!("{USAGE}") };
    let number = |n: usize, default| rest.get(n).map_or(default, |text: &String| text.parse().expect(USAGE));
    let (clients, seconds) = (number(0, 10_000), number(1, 600) as u64);
    let until = Instant::now() + Duration::from_secs(seconds);
    if process == "attack" {
        return attack(address, clients, until).await;
    }
    let mut attackers = std::process::Command::new(std::env::current_exe().unwrap())
        .args([address, "attack", &clients.to_string(), &seconds.to_string()])
        .spawn()
        .unwrap();
    let honest: Vec<_> = (0..HONEST)
        .map(|number| {
            let address = address.clone();
            tokio::spawn(async move { be_honest(&address, number, until).await })
        })
        .collect();
    let mut most = 0;
    while Instant::now() < until {
        sleep(Duration::from_millis(200)).await;
        most = most.max(resident(process));
    }
    let mut broken = 0;
    for client in honest {
        broken += u64::from(client.await.unwrap().is_err());
    }
    attackers.wait().unwrap();
    let mut latencies = std::mem::take(&mut *LATENCIES.lock().unwrap());
    latencies.sort_unstable();
    let at = |share: f64| Duration::from_micros(latencies[(latencies.len() as f64 * share) as usize].into());
    let (p50, p99, last) = (at(0.5), at(0.99), at(0.999_999));
    println!(
        "{clients} hostile clients, {seconds} s: {} honest requests, p50 {p50:?}, p99 {p99:?}, p99.9 {:?}, most {last:?}; \
         {} wrong, {broken} of {HONEST} honest clients disconnected; at most {} MiB",
        latencies.len(),
        at(0.999),
        WRONG.load(Relaxed),
        most >> 20
    );
    let is_fine = WRONG.load(Relaxed) == 0 && broken == 0 && most <= MEMORY_MAX && p99 <= P99_MAX;
    std::process::exit(i32::from(!is_fine));
}
