//! `sidebloom serve`: names, their life, and what the server says of itself.

use crate::server::{Server, asks, eventually, info};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn names_are_listed_renamed_and_deleted_as_in_redis() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    asks(
        &mut server.connect(),
        &[
            ("DBSIZE", ":0"),
            ("RANDOMKEY", "nil"),
            ("KEYS *", "[]"),
            ("SCAN 0", "[\"0\" []]"),
            ("TYPE a", "+none"),
            ("BF.ADD a x", ":1"),
            ("CF.ADD b x", ":1"),
            ("TYPE a", "+MBbloom--"),
            ("TYPE b", "+MBbloomCF"),
            ("EXISTS a b a c", ":3"),
            ("DBSIZE", ":2"),
            ("RENAME c d", "-ERR no such key"),
            ("RENAMENX a b", ":0"),
            ("RENAME a c", "+OK"),
            ("BF.EXISTS c x", ":1"),
            ("BF.EXISTS a x", ":0"),
            ("RENAME c b", "+OK"),
            ("TYPE b", "+MBbloom--"),
            ("KEYS *", "[\"b\"]"),
            ("KEYS [^b]", "[]"),
            ("UNLINK b nothing", ":1"),
            ("DBSIZE", ":0"),
            ("BF.ADD b y", ":1"),
            ("BF.EXISTS b x", ":0"),
            ("SELECT 15", "+OK"),
            ("BF.EXISTS b y", ":0"),
            ("BF.ADD b z", ":1"),
            ("SELECT 16", "-ERR DB index is out of range"),
            ("FLUSHDB ASYNC", "+OK"),
            ("DBSIZE", ":0"),
            ("SELECT 0", "+OK"),
            ("BF.EXISTS b y", ":1"),
            ("FLUSHALL NONSENSE", "-ERR syntax error"),
            ("FLUSHALL", "+OK"),
            ("DBSIZE", ":0"),
        ],
    );
}

#[test]
fn scan_finds_every_filter_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut client = server.connect();
    for n in 0..150 {
        let command = if n % 3 == 0 { "CF.ADD" } else { "BF.ADD" };
        assert_eq!(client.ask(&format!("{command} f{n} x")), ":1");
    }
    let mut scan = |options: &str| {
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        loop {
            let reply = client.ask(&format!("SCAN {cursor}{options}"));
            let (next, names) = reply[2..reply.len() - 1].split_once("\" ").unwrap();
            let names = names.trim_matches(['[', ']']).split(' ').filter(|name| !name.is_empty());
            found.extend(names.map(|name| name.trim_matches('"').to_owned()));
            cursor = next.to_owned();
            if cursor == "0" {
                return found;
            }
        }
    };
    let all = scan("");
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (150, 150));
    assert_eq!(scan(" COUNT 1000").len(), 150);
    assert_eq!(scan(" TYPE MBbloomCF").len(), 50);
    assert_eq!(scan(" MATCH f1? COUNT 7").len(), 10);
    asks(
        &mut client,
        &[
            ("SCAN x", "-ERR invalid cursor"),
            ("SCAN 0 COUNT 0", "-ERR syntax error"),
            ("SCAN 0 COUNT x", "-ERR value is not an integer or out of range"),
            ("SCAN 0 MATCH", "-ERR syntax error"),
        ],
    );
}

#[test]
fn filters_expire_as_keys_do() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let mut client = server.connect();
    asks(
        &mut client,
        &[
            ("TTL f", ":-2"),
            ("EXPIRE f 10", ":0"),
            ("BF.ADD f a", ":1"),
            ("TTL f", ":-1"),
            ("PERSIST f", ":0"),
            ("EXPIRE f 1000", ":1"),
            ("EXPIRE f 50 GT", ":0"),
            ("EXPIRE f 50 LT", ":1"),
            ("EXPIRE f 60 NX", ":0"),
            ("EXPIRE f 60 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"),
            ("EXPIRE f x", "-ERR value is not an integer or out of range"),
            ("EXPIRE f 9223372036854775807", "-ERR invalid expire time in 'expire' command"),
            ("PERSIST f", ":1"),
            ("TTL f", ":-1"),
            ("EXPIREAT f 4102444800", ":1"),
            ("EXPIRETIME f", ":4102444800"),
            ("PEXPIRETIME f", ":4102444800000"),
            ("RENAME f g", "+OK"),
            ("EXPIRETIME g", ":4102444800"),
            ("EXPIRE g -1", ":1"),
            ("EXISTS g", ":0"),
            ("CF.ADD h a", ":1"),
            ("PEXPIRE h 2000", ":1"),
            ("CF.EXISTS h a", ":1"),
        ],
    );
    assert_eq!(client.ask("CF.ADD long a"), ":1");
    assert_eq!(client.ask("EXPIRE long 1000"), ":1");
    let left: i64 = client.ask("TTL long")[1..].parse().unwrap();
    assert!((900..=1000).contains(&left), "{left}");
    assert_eq!(client.ask("DEL long"), ":1");
    let left: i64 = client.ask("PTTL h")[1..].parse().unwrap();
    assert!((0..=2000).contains(&left), "{left}");
    sleep(Duration::from_millis(2020));
    asks(&mut client, &[("EXISTS h", ":0"), ("CF.EXISTS h a", ":0"), ("TTL h", ":-2"), ("KEYS *", "[]")]);
    eventually("the name is free", || client.ask("DBSIZE") == ":0");
    assert_eq!(client.ask("CF.ADD h b"), ":1");
    asks(&mut client, &[("CF.EXISTS h a", ":0"), ("TTL h", ":-1")]);
}

#[test]
fn the_server_tells_what_redis_tells() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::of_filters(dir.path(), &[]);
    let (mut client, mut other) = (server.connect(), server.connect());
    asks(
        &mut client,
        &[
            ("ROLE", "[\"master\" :0 []]"),
            (
                "CONFIG GET bf-*",
                "[\"bf-error-rate\" \"0.01\" \"bf-initial-size\" \"100\" \"bf-expansion-factor\" \"2\"]",
            ),
            ("CONFIG SET bf-initial-size 200 bf-expansion-factor 0", "+OK"),
            ("BF.ADD fixed a", ":1"),
            ("BF.INFO fixed CAPACITY", "[:200]"),
            ("BF.INFO fixed EXPANSION", "[nil]"),
            (
                "CONFIG SET cf-initial-size 8 cf-bucket-size 4 cf-expansion-factor 2 cf-max-iterations 7",
                "+OK",
            ),
            ("CF.ADD c a", ":1"),
            (
                "CF.INFO c",
                "[+Size :64 +Number of buckets :2 +Number of filters :1 +Number of items inserted :1 \
                 +Number of items deleted :0 +Bucket size :4 +Expansion rate :2 +Max iterations :7]",
            ),
            (
                "CONFIG SET bf-error-rate 2",
                "-ERR CONFIG SET failed (possibly related to argument 'bf-error-rate') - the value is not one that it can have",
            ),
            (
                "CONFIG SET nonsense 2",
                "-ERR Unknown option or number of arguments for CONFIG SET - 'nonsense'",
            ),
            // All of the settings, or none.
            (
                "CONFIG SET bf-initial-size 300 nonsense 2",
                "-ERR Unknown option or number of arguments for CONFIG SET - 'nonsense'",
            ),
            ("CONFIG GET bf-initial-size", "[\"bf-initial-size\" \"200\"]"),
            ("EXPIRE fixed 10 FOO", "-ERR Unsupported option FOO"),
            ("EXPIRE fixed 10 GT LT", "-ERR GT and LT options at the same time are not compatible"),
            ("CLIENT LIST ID 1 x", "-ERR Invalid client ID"),
            ("COMMAND GETKEYS MEMORY USAGE a", "[\"a\"]"),
            ("COMMAND GETKEYS RENAME a b", "[\"a\" \"b\"]"),
            ("COMMAND GETKEYS DEL a b c", "[\"a\" \"b\" \"c\"]"),
            ("COMMAND GETKEYS PING", "-ERR The command has no key arguments"),
            ("COMMAND INFO del", "[[\"del\" :-2 [+write] :1 :-1 :1 [] [] [] []]]"),
            ("SLOWLOG LEN", ":0"),
            ("CONFIG SET slowlog-log-slower-than 0", "+OK"),
            ("PING", "+PONG"),
            ("CONFIG SET slowlog-log-slower-than -1", "+OK"),
            ("LATENCY LATEST", "[]"),
            ("MEMORY USAGE nothing", "nil"),
        ],
    );
    let slow = client.ask("SLOWLOG GET 10");
    assert!(slow.contains("\"PING\""), "{slow}");
    assert_eq!(client.ask("SLOWLOG RESET"), "+OK");
    let usage: u64 = client.ask("MEMORY USAGE fixed")[1..].parse().unwrap();
    assert!((200..2000).contains(&usage), "{usage}");
    let stats = client.ask("INFO commandstats");
    assert!(stats.contains("cmdstat_bf.add:calls=1,") && !stats.contains("# Server"), "{stats}");
    assert_eq!(client.ask("CONFIG RESETSTAT"), "+OK");
    assert!(!client.ask("INFO commandstats").contains("cmdstat_bf.add"));
    assert!(client.ask("INFO keyspace").contains("db0:keys=2,expires=0,avg_ttl=0"));
    assert!(info(&mut client, "used_memory_rss") > 1 << 20);
    assert!(info(&mut client, "request_argument_bytes_max") >= 1 << 20);
    assert!(client.ask("MODULE LIST").starts_with("[[\"name\" \"bf\" \"ver\" :"));
    let time = client.ask("TIME");
    assert!(time.starts_with("[\"") && time.split(' ').count() == 2, "{time}");

    asks(
        &mut other,
        &[("CLIENT SETNAME other", "+OK"), ("CLIENT SETINFO LIB-NAME tester", "+OK"), ("SELECT 3", "+OK")],
    );
    let id = other.ask("CLIENT ID")[1..].to_owned();
    let list = client.ask("CLIENT LIST");
    assert_eq!(
        list.lines().filter(|line| line.contains("name=other") && line.contains("db=3")).count(),
        1,
        "{list}"
    );
    assert!(client.ask(&format!("CLIENT LIST ID {id}")).contains("lib-name=tester"));
    assert!(!client.ask(&format!("CLIENT LIST ID {id}0")).contains("lib-name=tester"));
    assert_eq!(client.ask(&format!("CLIENT KILL ID {id}")), ":1");
    assert_eq!(client.ask(&format!("CLIENT KILL ID {id}")), ":0");
    assert!(other.is_closed());
    assert_eq!(client.ask("CLIENT KILL 1.2.3.4:5"), "-ERR No such client");
    eventually("it is gone", || !client.ask("CLIENT LIST").contains("name=other"));
}
