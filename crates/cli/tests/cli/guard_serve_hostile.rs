//! `sidebloom guard serve`: clients that are slow, broken or hostile do not stop the others.

use crate::server::{Client, OWN_BYTES, Server, eventually, info, request};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Others get an answer within a second, during `what`.
fn others_are_served(server: &Server, what: &str) {
    let started = Instant::now();
    let mut client = server.connect();
    assert_eq!(client.ask("BF.EXISTS songs nobody"), ":0", "{what}");
    assert!(started.elapsed() < Duration::from_secs(1), "{what}: {:?}", started.elapsed());
}

#[test]
fn a_faulty_frame_is_named_and_ends_its_connection_only() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut good = server.connect();
    let endless = vec![b'a'; 1 << 20];
    let nested = b"*1\r\n".repeat(100_000);
    for (frame, error) in [
        (&b"*2147483647\r\n"[..], "-ERR Protocol error: invalid multibulk length"),
        (b"*-9999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*2\r\n$999999999999\r\n", "-ERR Protocol error: invalid bulk length: at most 67108864 bytes"),
        (b"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\n+OK\r\n", "-ERR Protocol error: expected '$', got '+'"),
        (b"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: expected CRLF after a bulk string"),
        (b"ECHO \"a\r\n", "-ERR Protocol error: unbalanced quotes in request"),
        (&endless, "-ERR Protocol error: too big inline request"),
        (&nested, "-ERR Protocol error: expected '$', got '*'"),
    ] {
        let mut client = server.connect();
        client.send(b"PING\r\n");
        let _ = client.stream.get_mut().write_all(frame); // It may be disconnected before all is sent.
        assert_eq!(client.reply(), "+PONG");
        assert_eq!(client.reply(), error);
        assert!(client.is_closed());
        assert_eq!(good.ask("PING"), "+PONG");
    }
    eventually("they are gone", || info(&mut good, "connected_clients") == 1);
}

#[test]
fn a_web_page_cannot_make_a_browser_change_the_guard() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    for first in ["POST / HTTP/1.1", "Host: 127.0.0.1"] {
        let mut client = server.connect();
        client.send(format!("{first}\r\nBF.ADD songs evil\r\n"));
        assert!(client.reply().starts_with("-ERR unknown command"));
        assert!(client.is_closed());
    }
    assert_eq!(server.connect().ask("BF.EXISTS songs evil"), ":0");
}

#[test]
fn an_unfinished_request_costs_what_was_sent_and_not_what_was_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    others_are_served(&server, "at first");
    let before = server.memory();
    let hold: Vec<Client> = (0..200)
        .map(|_| {
            let mut client = server.connect();
            client.send("*1048576\r\n$7\r\nBF.MADD\r\n$5\r\nsongs\r\n$1048576\r\nabc");
            client
        })
        .collect();
    let mut client = server.connect();
    eventually("they are there", || info(&mut client, "connected_clients") == 201);
    others_are_served(&server, "200 unfinished requests of a terabyte each");
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for 200 unfinished requests");
    drop(hold);
    eventually("they are gone", || info(&mut client, "connected_clients") == 1);
}

#[test]
fn memory_for_large_requests_has_an_end_for_all_clients_together() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--max-clients", "100"]);
    let part = [&b"$1000000\r\n"[..], &vec![b'a'; 1_000_000], b"\r\n"].concat();
    let mut refused = 0;
    let mut hold = Vec::new();
    for _ in 0..40 {
        let mut client = server.connect();
        let mut bytes = b"*100\r\n".to_vec();
        (0..15).for_each(|_| bytes.extend_from_slice(&part));
        let _ = client.stream.get_mut().write_all(&bytes);
        hold.push(client);
    }
    for client in &mut hold {
        client.stream.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut said = [0; 64];
        match client.stream.read(&mut said) {
            Ok(len) if len > 0 => {
                assert!(
                    said.starts_with(b"-ERR too many large requests at once"),
                    "{}",
                    said[..len].escape_ascii()
                );
                refused += 1;
            }
            Ok(_) => refused += 1,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => refused += 1,
            Err(_) => {} // The server waits for the rest.
        }
    }
    assert!((10..40).contains(&refused), "{refused} of 40 were refused");
    assert!(server.memory() < 600 << 20, "{} bytes", server.memory());
    others_are_served(&server, "40 large requests");
    drop(hold);
    let mut client = server.connect();
    eventually("the memory is given back", || info(&mut client, "client_bytes") < OWN_BYTES);
}

#[test]
fn a_client_that_reads_no_replies_is_not_buffered_for_and_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--output-timeout", "2"]);
    let mut items = vec!["BF.MEXISTS".to_owned(), "songs".to_owned()];
    items.extend((0..20_000).map(|n| n.to_string()));
    let ask = request(&items);
    let before = server.memory();
    let client = server.connect();
    client.stream.get_ref().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    let stuck = loop {
        match client.stream.get_ref().write(&ask[sent % ask.len()..]) {
            Ok(len) => sent += len,
            Err(error) => break error,
        }
        assert!(sent < 1 << 30, "it is read from without end");
    };
    assert_eq!(stuck.kind(), ErrorKind::WouldBlock, "the server does not read on");
    others_are_served(&server, "a client that does not read");
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for one client");
    let mut other = server.connect();
    eventually("it is let go", || info(&mut other, "connected_clients") == 1);
}

#[test]
fn a_client_that_says_nothing_is_let_go_when_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--idle-timeout", "1"]);
    let (mut silent, mut halfway, mut busy) = (server.connect(), server.connect(), server.connect());
    halfway.send("*2\r\n$4\r\nEC");
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(2500) {
        assert_eq!(busy.ask("PING"), "+PONG");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(silent.is_closed() && halfway.is_closed());
    assert_eq!(busy.ask("PING"), "+PONG");
}

#[test]
fn a_client_that_vanished_is_looked_for_by_the_system() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    assert_eq!(client.ask("PING"), "+PONG");
    // /proc/net/tcp: 2 is the local address, 4 the state (01: established), 6 the timer (02: keepalive).
    let local = format!("0100007F:{:04X}", server.address.port());
    let has_timer = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1) == Some(&local.as_str())
                && fields.get(3) == Some(&"01")
                && fields[5].starts_with("02")
        })
    };
    eventually("the connection has a keepalive timer", has_timer);
}

#[test]
fn a_client_that_has_closed_its_side_still_gets_its_replies() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let adds: Vec<u8> = (0..100).flat_map(|n| request(&["BF.ADD", "songs", &format!("key{n}")])).collect();
    client.send(adds);
    client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    (0..100).for_each(|_| assert_eq!(client.reply(), ":1"));
    assert!(client.is_closed());
}

#[test]
fn one_client_too_many_is_told_so_and_a_seat_is_free_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--max-clients", "3"]);
    let mut seated: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    seated.iter_mut().for_each(|client| assert_eq!(client.ask("PING"), "+PONG"));
    let mut beyond = server.connect();
    assert_eq!(beyond.reply(), "-ERR max number of clients reached");
    assert!(beyond.is_closed());
    assert_eq!(info(&mut seated[0], "rejected_connections"), 1);
    seated.pop();
    eventually("a seat is free", || {
        let mut client = server.connect();
        client.send(request(&["PING"]));
        client.try_reply().as_deref() == Some("+PONG")
    });
}

#[test]
fn more_than_a_thousand_connections_are_served_while_one_floods() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut clients: Vec<Client> = (0..1200).map(|_| server.connect()).collect();
    let flood = server.connect();
    let mut half = Client { stream: std::io::BufReader::new(flood.stream.get_ref().try_clone().unwrap()) };
    let sending = std::thread::spawn(move || {
        let asks = request(&["BF.EXISTS", "songs", "flood"]).repeat(10_000);
        (0..30).for_each(|_| half.send(&asks));
    });
    let reading = std::thread::spawn(move || {
        let mut flood = flood;
        let mut replies = vec![0; 30 * 10_000 * 4];
        flood.stream.read_exact(&mut replies).unwrap();
        assert!(replies.chunks(4).all(|reply| reply == b":0\r\n"));
    });
    for (n, client) in clients.iter_mut().enumerate() {
        client.send(request(&["BF.ADD", "songs", &format!("key{n}")]));
    }
    clients.iter_mut().for_each(|client| assert_eq!(client.reply(), ":1"));
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&format!("BF.EXISTS songs key{n}")), ":1");
    }
    sending.join().unwrap();
    reading.join().unwrap();
    assert_eq!(info(&mut clients[0], "guard_keys"), 1200);
}
