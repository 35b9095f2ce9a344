//! `sidebloom serve`: clients that hoard memory, read slowly or guess passwords do not disturb the others.

use crate::server::{Client, OWN_BYTES, Server, eventually, info, queue, request};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// The longest time for which a PING waited while `attack` ran.
fn slowest_ping(server: &Server, attack: impl FnOnce() + Send) -> Duration {
    std::thread::scope(|scope| {
        let attack = scope.spawn(attack);
        let (mut client, mut slowest) = (server.connect(), Duration::ZERO);
        while !attack.is_finished() {
            let started = Instant::now();
            assert_eq!(client.ask("PING"), "+PONG");
            slowest = slowest.max(started.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
        attack.join().unwrap();
        slowest
    })
}

/// Replies of a transaction are sent as they grow: 65,000 times the list of all commands is over a gigabyte.
#[test]
fn a_transaction_with_huge_replies_takes_no_memory_and_no_time_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let before = server.memory();
    let mut client = server.connect();
    queue(&mut client, &request(&["COMMAND"]).repeat(65_000), 65_000);
    let slowest = slowest_ping(&server, || {
        client.send(request(&["EXEC"]));
        let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
        while read < 256 << 20 {
            read += client.stream.read(&mut buffer).unwrap();
        }
        drop(client);
    });
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

/// One that changes something keeps its replies: too many end the connection, after everything was executed.
#[test]
fn a_changing_transaction_with_huge_replies_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let before = server.memory();
    let mut client = server.connect();
    queue(&mut client, &request(&["COMMAND"]).repeat(20_000), 20_000);
    asks_queued(&mut client, "BF.ADD f last");
    client.send(request(&["EXEC"]));
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{} bytes", rest.len());
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 96 << 20, "{grown} bytes");
    let mut other = server.connect();
    assert_eq!(other.ask("BF.EXISTS f last"), ":1");
    assert_eq!(info(&mut other, "disconnected_clients"), 1);
}

fn asks_queued(client: &mut Client, command: &str) {
    assert_eq!(client.ask(command), "+QUEUED");
}

#[test]
fn an_idle_connection_gives_the_memory_of_large_requests_back() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut items = request(&["BF.MEXISTS", "f"]);
    items.splice(..4, *b"*1000002\r\n");
    items.extend(b"$0\r\n\r\n".repeat(1_000_000));
    let before = server.memory();
    let mut idle: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = server.connect();
            let mut sending = client.stream.get_ref().try_clone().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| sending.write_all(&items).unwrap());
                let mut replies = vec![0; "*1000000\r\n".len() + 4_000_000];
                client.stream.read_exact(&mut replies).unwrap();
            });
            client
        })
        .collect();
    eventually("nothing else is held", || info(&mut idle[0], "client_bytes") < 8 * OWN_BYTES);
    // Connections that do nothing are counted, too.
    assert!(info(&mut idle[0], "client_bytes") >= 8 * (8 << 10));
    // What the allocator keeps is another matter, but that is bounded too.
    eventually("the memory is given back", || server.memory().saturating_sub(before) < 128 << 20);
}

/// What a client does not read is its memory, and it can be disconnected all the same.
#[test]
fn replies_that_nobody_reads_are_counted_until_the_client_is_killed() {
    const BYTES: usize = 20_000_000;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let (mut deaf, mut other) = (server.connect(), server.connect());
    let id = deaf.ask("CLIENT ID");
    deaf.send(request(&[&b"ECHO"[..], &vec![b'x'; BYTES]]));
    eventually("request and reply are counted", || info(&mut other, "client_bytes") > 2 * BYTES as u64);
    assert_eq!(other.ask(&format!("CLIENT KILL ID {}", id.trim_start_matches(':'))), ":1");
    eventually("it is gone", || info(&mut other, "connected_clients") == 1);
    assert!(info(&mut other, "client_bytes") < OWN_BYTES);
    assert!(other.ask("CLIENT KILL").starts_with("-ERR wrong number of arguments"));
}

/// Twenty thousand guesses took a tenth of a second inside a transaction.
#[test]
fn nobody_logs_in_inside_a_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut client = server.connect();
    for login in ["AUTH default guess", "HELLO 3 AUTH default guess"] {
        assert_eq!(client.ask("MULTI"), "+OK");
        assert_eq!(client.ask(login), "-ERR Command not allowed inside a transaction");
        assert!(client.ask("EXEC").starts_with("-EXECABORT"));
    }
}

/// Seventeen idle clients with unfinished requests took all memory for ever.
#[test]
fn hoarders_of_memory_give_way_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &["--max-memory", "128"]);
    let part = [&b"$4000000\r\n"[..], &vec![b'a'; 4_000_000], b"\r\n"].concat();
    let hoard: Vec<Client> = (0..17)
        .map(|_| {
            let mut client = server.connect();
            let _ = client.stream.get_mut().write_all(b"*100\r\n");
            (0..2).for_each(|_| drop(client.stream.get_mut().write_all(&part)));
            client
        })
        .collect();
    let mut honest = server.connect();
    let large = vec![b'x'; 1_000_000];
    for n in 0..20 {
        let item = [format!("{n}").as_bytes(), &large].concat();
        honest.send(request(&[&b"BF.ADD"[..], b"f", &item]));
        assert_eq!(honest.reply(), ":1");
    }
    assert!(server.memory() < 300 << 20, "{}", server.memory());
    drop(hoard);
    eventually("all is given back", || info(&mut honest, "client_bytes") < OWN_BYTES);
}

#[test]
fn an_unfinished_request_has_a_time_limit() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &["--request-timeout", "1"]);
    let (mut unfinished, mut idle) = (server.connect(), server.connect());
    assert_eq!(idle.ask("PING"), "+PONG");
    let started = Instant::now();
    // A byte now and then does not prolong it.
    for byte in b"*2\r\n$4\r\nECHO\r\n$1000\r\n".iter().chain(std::iter::repeat(&b'x')).take(60) {
        if unfinished.stream.get_mut().write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(unfinished.is_closed());
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(idle.ask("PING"), "+PONG");
}

/// Its reads end within requests, but each request is complete soon.
#[test]
fn a_busy_client_is_not_taken_for_one_that_does_not_finish() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &["--request-timeout", "2"]);
    let mut client = server.connect();
    let ask = request(&["BF.EXISTS", "f", "item"]);
    let (start, end) = ask.split_at(10);
    client.send(start);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(5) {
        client.send([end, start].concat());
        assert_eq!(client.reply(), ":0");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_reader_of_a_few_bytes_now_and_then_is_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &["--output-timeout", "1"]);
    let mut items = vec!["BF.MEXISTS".to_owned(), "f".to_owned()];
    items.extend((0..20_000).map(|n| n.to_string()));
    let ask = request(&items).repeat(200);
    let client = server.connect();
    let mut stream = client.stream.get_ref().try_clone().unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let _ = stream.write_all(&ask);
    let mut other = server.connect();
    let started = Instant::now();
    let is_gone = |other: &mut Client| info(other, "connected_clients") == 1;
    while !is_gone(&mut other) {
        let mut byte = [0];
        let _ = stream.read(&mut byte);
        assert!(started.elapsed() < Duration::from_secs(60), "it stays");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(info(&mut other, "disconnected_clients"), 1);
}

/// The time for a large reply was given in advance, also to those who read nothing of it.
#[test]
fn who_reads_nothing_of_a_large_reply_is_let_go_as_of_a_small_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &["--output-timeout", "1"]);
    let (mut deaf, mut other) = (server.connect(), server.connect());
    deaf.send(request(&[&b"ECHO"[..], &vec![b'x'; 30_000_000]]));
    eventually("it is let go", || info(&mut other, "connected_clients") == 1);
    assert_eq!(info(&mut other, "disconnected_clients"), 1);
}

#[test]
fn guessing_passwords_is_slow_counted_and_ends_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let password = dir.path().join("password");
    std::fs::write(&password, "open sesame\n").unwrap();
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::of_filters(dir.path(), &["--password-file", password.to_str().unwrap()]);
    let mut right = server.connect();
    assert_eq!(
        right.ask("AUTH default open"),
        "-WRONGPASS invalid username-password pair or user is disabled."
    );
    right.send(request(&["AUTH", "open sesame"]));
    assert_eq!(right.reply(), "+OK");
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut guesser = server.connect();
                let guesses = request(&["AUTH", "guess"]).repeat(1000);
                let _ = guesser.stream.get_mut().write_all(&guesses);
                let mut replies = 0;
                while guesser.try_reply().is_some() {
                    replies += 1;
                }
                assert!(replies <= 10, "{replies} guesses");
            });
        }
        let asked = Instant::now();
        assert_eq!(right.ask("PING"), "+PONG");
        assert!(asked.elapsed() < Duration::from_secs(1));
    });
    let refused = info(&mut right, "refused_logins");
    assert!((20..=201).contains(&refused), "{refused}");
    let rate = refused as f64 / started.elapsed().as_secs_f64();
    assert!(rate < 101.0, "{rate} guesses a second");
}
