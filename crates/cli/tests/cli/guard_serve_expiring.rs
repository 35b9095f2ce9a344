//! `guard serve`: items that expire.

use crate::server::{Server, request};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than the shortest items of the tests live.
const LATER: Duration = Duration::from_millis(1100);

#[test]
fn an_item_is_absent_for_every_command_once_it_has_expired() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let begun = Instant::now();
    for (ask, reply) in [
        ("BF.ADD songs stays EX 1000", ":1"),
        ("BF.ADD songs stays PX 1", ":0"),
        ("BF.ADD songs permanent", ":1"),
        ("BF.ADD songs permanent EX 1", ":0"),
        ("bf.add songs a ex 1", ":1"),
        ("BF.ADD songs b px 1000", ":1"),
        (&format!("BF.ADD songs c EXAT {}", now.as_secs() + 1000), ":1"),
        (&format!("BF.ADD songs d PXAT {}", now.as_millis() + 1000), ":1"),
        ("BF.ADD songs passed EXAT 1", ":1"),
        ("BF.MEXISTS songs passed x stays permanent c", "[:0 :0 :1 :1 :1]"),
        ("CF.ADD songs a", ":1"),
        ("CF.DEL songs a", ":1"),
        ("BF.CARD songs", ":1"),
    ] {
        assert_eq!(client.ask(ask), reply, "{ask}");
    }
    let early = client.ask("BF.MEXISTS songs a b d");
    // Unless the machine was too slow.
    assert!(begun.elapsed() > Duration::from_millis(900) || early == "[:1 :1 :1]", "{early}");
    sleep(LATER);
    for _ in 0..2 {
        for (ask, reply) in [
            ("BF.MEXISTS songs a b c d stays permanent", "[:0 :0 :1 :0 :1 :1]"),
            ("CF.EXISTS songs a", ":0"),
            ("CF.COUNT songs a", ":0"),
            ("CF.DEL songs a", ":0"),
            ("CF.COUNT songs stays", ":1"),
        ] {
            assert_eq!(client.ask(ask), reply, "{ask}");
        }
        server.kill();
        server = Server::start(dir.path(), &[]);
        client = server.connect();
    }
    assert_eq!(client.ask("BF.ADD songs a EX 100"), ":1");
    assert_eq!(client.ask("CF.DEL songs stays"), ":1");
    assert_eq!(client.ask("BF.EXISTS songs stays"), ":0");
}

#[test]
fn expiries_are_refused_in_the_words_of_redis() {
    const NUMBER: &str = "-ERR value is not an integer or out of range";
    const TIME: &str = "-ERR invalid expire time in 'bf.add' command";
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    for (options, reply) in [
        ("EX", "-ERR syntax error"),
        ("10", "-ERR syntax error"),
        ("NX 10", "-ERR syntax error"),
        ("EX 10 PX 10", "-ERR syntax error"),
        ("EX 10 NX", "-ERR syntax error"),
        ("EX x", NUMBER),
        ("EX 1.5", NUMBER),
        ("EX +5", NUMBER),
        ("EX 05", NUMBER),
        ("EX -0", NUMBER),
        ("EX 9223372036854775808", NUMBER),
        ("EX 99999999999999999999999", NUMBER),
        ("EX 0", TIME),
        ("EX -1", TIME),
        ("PX 0", TIME),
        ("EXAT 0", TIME),
        ("PXAT -5", TIME),
        ("EX 9223372036854775807", TIME),
        ("PX 9223372036854775807", TIME),
        ("EXAT 9223372036854775807", TIME),
        ("EXAT 253402300800", TIME),
        ("PXAT 253402300800000", TIME),
        ("EX 253402300799", TIME),
    ] {
        assert_eq!(client.ask(&format!("BF.ADD songs a {options}")), reply, "{options}");
    }
    client.send(request(&["BF.ADD", "songs", "a", "EX", ""]));
    assert_eq!(client.reply(), NUMBER);
    assert_eq!(client.ask("BF.ADD other a EX 10"), "-ERR not found");
    assert_eq!(client.ask("BF.MADD songs EX 10"), "[:1 :1]", "items, as in Redis");
    assert_eq!(client.ask("BF.EXISTS songs a"), ":0");
    assert_eq!(client.ask("BF.ADD songs a EXAT 253402300798"), ":1");
}

#[test]
fn items_that_expire_are_part_of_batches_and_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &[]);
    let mut client = server.connect();
    let commands = [
        "BF.ADD songs a EX 100",
        "BF.ADD songs a",
        "BF.ADD songs b PX 100000",
        "BF.ADD songs c EX 0",
        "CF.DEL songs b",
        "BF.ADD songs b EX 100",
        "CF.COUNT songs a",
        "BF.MEXISTS songs a b c",
    ];
    let all: Vec<u8> = commands.iter().flat_map(|c| request(&c.split(' ').collect::<Vec<_>>())).collect();
    client.send(all);
    let replies: Vec<String> = commands.iter().map(|_| client.reply()).collect();
    let refused = "-ERR invalid expire time in 'bf.add' command";
    assert_eq!(replies, [":1", ":0", ":1", refused, ":1", ":1", ":2", "[:1 :1 :0]"]);
    for (ask, reply) in [
        ("MULTI", "+OK"),
        ("BF.ADD songs d EX 100", "+QUEUED"),
        ("BF.ADD songs e EX x", "+QUEUED"),
        ("BF.ADD songs d EX 100", "+QUEUED"),
        ("EXEC", "[:1 -ERR value is not an integer or out of range :0]"),
        ("BF.MEXISTS songs d e", "[:1 :0]"),
    ] {
        assert_eq!(client.ask(ask), reply, "{ask}");
    }
}
