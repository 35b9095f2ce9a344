//! `sidebloom serve`: WATCH, MULTI and EXEC.

use crate::server::{Client, Server, asks, request};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

#[test]
fn a_transaction_depends_on_what_was_watched() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    let mut exec = |by_other: &str, reply: &str| {
        asks(&mut client, &[("WATCH f g", "+OK"), ("BF.EXISTS f a", ":0"), ("MULTI", "+OK")]);
        asks(&mut client, &[("BF.ADD mine x", "+QUEUED"), ("DEL mine", "+QUEUED")]);
        other.ask(by_other);
        assert_eq!(client.ask("EXEC"), reply, "{by_other}");
        assert_eq!(client.ask("EXEC"), "-ERR EXEC without MULTI");
    };
    exec("PING", "[:1 :1]");
    exec("BF.ADD other a", "[:1 :1]");
    exec("BF.ADD f b", "nil");
    exec("BF.ADD f b", "[:1 :1]"); // It was there: nothing changed.
    exec("EXPIRE f 1000", "nil");
    exec("RENAME f g", "nil");
    exec("DEL g", "nil");
    exec("CF.ADD g x", "nil");
    exec("FLUSHALL", "nil");
    asks(
        &mut client,
        &[
            ("WATCH f", "+OK"),
            ("UNWATCH", "+OK"),
            ("BF.ADD f z", ":1"),
            ("MULTI", "+OK"),
            ("PING", "+QUEUED"),
            ("WATCH f", "-ERR WATCH inside MULTI is not allowed"),
            ("EXEC", "[+PONG]"),
            ("WATCH f", "+OK"),
            ("BF.ADD f y", ":1"),
            ("MULTI", "+OK"),
            ("DISCARD", "+OK"),
            ("MULTI", "+OK"),
            ("EXEC", "[]"),
        ],
    );
    client.send(request(&["HELLO", "3"]));
    client.reply();
    asks(&mut client, &[("WATCH f", "+OK"), ("BF.ADD f w", "#t"), ("MULTI", "+OK"), ("EXEC", "nil")]);
}

/// Each counts what there is and adds one, which only works if nobody comes in between.
#[test]
fn watched_transactions_of_many_clients_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let add_one = |client: &mut Client| {
        loop {
            assert_eq!(client.ask("WATCH counter"), "+OK");
            let count = client.ask("BF.CARD counter")[1..].to_owned();
            asks(client, &[("MULTI", "+OK")]);
            client.ask(&format!("BF.ADD counter item{count}"));
            client.ask(&format!("BF.EXISTS counter item{count}"));
            match client.ask("EXEC").as_str() {
                "nil" => {}
                done => return assert_eq!(done, "[:1 :1]"),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.connect();
                (0..50).for_each(|_| add_one(&mut client));
            });
        }
    });
    assert_eq!(server.connect().ask("BF.CARD counter"), ":200");
}

/// Half of the additions failed with "not found".
#[test]
fn no_addition_fails_because_others_delete_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let is_over = AtomicBool::new(false);
    let many = "BF.MADD f ".to_owned() + &(0..9000).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    thread::scope(|scope| {
        for deletion in ["DEL f c", "FLUSHDB", "PEXPIRE f 1", "RENAME f g", "UNLINK c f"] {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut client = server.connect();
                while !is_over.load(Relaxed) {
                    let reply = client.ask(deletion);
                    assert!(!reply.starts_with('-') || reply == "-ERR no such key", "{deletion}: {reply}");
                }
            });
        }
        let over = SetOnDrop(&is_over); // Even if an assertion fails.
        let additions = [many.as_str(), "BF.ADD f a", "CF.ADD c a", "CF.ADDNX c b", "BF.INSERT f ITEMS a b"];
        let adding = additions.map(|addition| {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                for _ in 0..if addition.len() > 100 { 10 } else { 500 } {
                    let reply = client.ask(addition);
                    // One of many items may end in the middle, with the filter.
                    let reply = reply.strip_suffix(" -ERR not found]").unwrap_or(&reply);
                    assert!(!reply.contains('-'), "{addition:.20}: {reply:.200}");
                }
                // Several of them in one batch.
                client.send(request(&["CF.ADD", "c", "x"]).repeat(300));
                (0..300).for_each(|_| assert_eq!(client.reply(), ":1"));
            })
        });
        adding.into_iter().for_each(|adding| adding.join().unwrap());
        drop(over);
    });
}

/// Between the commands of a transaction that changes something, nobody else changes anything.
#[test]
fn nobody_changes_anything_during_a_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                let mut client = server.connect();
                for n in 0.. {
                    if is_over.load(Relaxed) {
                        break;
                    }
                    client.ask(&format!("CF.ADD f {writer}-{n}"));
                    client.ask("DEL f");
                }
            });
        }
        let _over = SetOnDrop(&is_over); // Even if an assertion fails.
        let mut client = server.connect();
        for _ in 0..200 {
            asks(&mut client, &[("MULTI", "+OK"), ("DEL f", "+QUEUED"), ("CF.ADD f mine", "+QUEUED")]);
            asks(&mut client, &[("PING", "+QUEUED"), ("CF.INFO f", "+QUEUED"), ("EXISTS f", "+QUEUED")]);
            let reply = client.ask("EXEC");
            assert!(reply.contains("+Number of items inserted :1 ") && reply.ends_with(" :1]"), "{reply}");
        }
    });
}

struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
