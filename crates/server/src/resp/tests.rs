use super::*;
use proptest::prelude::*;

type Requests = Vec<Vec<Vec<u8>>>;

/// How a connection handles `stream` when it arrives in pieces that end at `cuts`.
fn parse(stream: &[u8], cuts: &[usize], limits: Limits) -> (Requests, Option<ProtocolError>) {
    let (mut parser, mut buffer, mut found) = (Parser::default(), Vec::new(), Vec::new());
    let mut ends: Vec<usize> =
        cuts.iter().map(|cut| cut % (stream.len() + 1)).chain([stream.len()]).collect();
    ends.sort_unstable();
    let mut sent = 0;
    for end in ends {
        buffer.extend_from_slice(&stream[sent..end]);
        sent = end;
        loop {
            match parser.next(&mut buffer, limits) {
                Ok(true) => {
                    found.push(parser.lend().iter().map(|arg| buffer[arg.clone()].to_vec()).collect())
                }
                Ok(false) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        buffer.drain(..parser.take_consumed());
    }
    (found, None)
}

fn encode(requests: &Requests) -> Vec<u8> {
    let mut bytes = Vec::new();
    for request in requests {
        bytes.extend(format!("*{}\r\n", request.len()).bytes());
        for arg in request {
            bytes.extend(format!("${}\r\n", arg.len()).bytes());
            bytes.extend(arg);
            bytes.extend(b"\r\n");
        }
    }
    bytes
}

fn error(stream: &[u8]) -> String {
    let (_, error) = parse(stream, &[], Limits::FULL);
    error.unwrap_or_else(|| panic!("{} is fine", stream.escape_ascii())).0
}

fn words(line: &str) -> Vec<String> {
    let (found, error) = parse(format!("{line}\r\n").as_bytes(), &[], Limits::FULL);
    assert_eq!(error, None);
    found.concat().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

proptest! {
    #[test]
    fn requests_come_back_however_the_stream_is_cut(
        requests in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let stream = encode(&requests);
        prop_assert_eq!(parse(&stream, &cuts, Limits::FULL), (requests.clone(), None));
        let every_byte: Vec<usize> = (0..stream.len()).collect();
        prop_assert_eq!(parse(&stream, &every_byte, Limits::FULL), (requests, None));
    }

    #[test]
    fn any_bytes_give_the_same_however_they_are_cut_and_never_panic(
        stream in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'"'), Just(b'\\'), Just(b' '),
        ], 0..80),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        prop_assert_eq!(parse(&stream, &cuts, Limits::FULL), parse(&stream, &[], Limits::FULL));
        prop_assert_eq!(parse(&stream, &cuts, Limits::UNAUTHENTICATED), parse(&stream, &[], Limits::UNAUTHENTICATED));
    }
}

#[test]
fn a_line_is_split_into_words_as_redis_does() {
    assert_eq!(words("  PING  "), ["PING"]);
    assert_eq!(words(r#"ECHO "a b\n\x41\"\\" 'it\'s' x"y z""#), ["ECHO", "a b\nA\"\\", "it's", "xy z"]);
    assert_eq!(words(r#"ECHO "" '' "\q\x4""#), ["ECHO", "", "", "qx4"]);
    assert_eq!(words(""), [""; 0]);
    assert_eq!(
        parse(b"PING\n\r\n*0\r\n*-1\r\nPING a\n", &[], Limits::FULL).0.concat(),
        [&b"PING"[..], b"PING", b"a"]
    );
}

#[test]
fn every_fault_has_redis_words() {
    assert_eq!(error(b"*1048577\r\n"), "invalid multibulk length");
    assert_eq!(error(b"*x\r\n"), "invalid multibulk length");
    assert_eq!(error(b"*\r\n"), "invalid multibulk length");
    assert_eq!(error(b"*+1\r\n"), "invalid multibulk length");
    assert_eq!(error(b"*9999999999999999999\r\n"), "invalid multibulk length");
    assert_eq!(error(&[&b"*"[..], &[b'1'; 40]].concat()), "too big mbulk count string");
    assert_eq!(error(b"*1\r\n:1\r\n"), "expected '$', got ':'");
    assert_eq!(error(b"*1\r\n*1\r\n"), "expected '$', got '*'");
    assert_eq!(error(b"*1\r\n$-1\r\n"), "invalid bulk length");
    assert_eq!(error(b"*1\r\n$67108865\r\n"), "invalid bulk length: at most 67108864 bytes");
    assert_eq!(error(&[&b"*1\r\n$"[..], &[b'1'; 40]].concat()), "too big bulk count string");
    assert_eq!(error(b"*1\r\n$1\r\nabc"), "expected CRLF after a bulk string");
    assert_eq!(error(b"ECHO \"a\r\n"), "unbalanced quotes in request");
    assert_eq!(error(b"ECHO \"a\"b\r\n"), "unbalanced quotes in request");
    assert_eq!(error(&vec![b'a'; LINE_MAX]), "too big inline request");
    let many: Vec<u8> =
        [&b"*100\r\n"[..], &[&b"$1048576\r\n"[..], &vec![b'a'; 1 << 20], b"\r\n"].concat().repeat(64)]
            .concat();
    assert_eq!(error(&many), "a request of more than 67108864 bytes");
    let unauthenticated = |stream: &[u8]| parse(stream, &[], Limits::UNAUTHENTICATED).1.map(|error| error.0);
    assert_eq!(unauthenticated(b"*11\r\n").as_deref(), Some("unauthenticated multibulk length"));
    assert_eq!(
        unauthenticated(b"*1\r\n$16385\r\n").as_deref(),
        Some("unauthenticated bulk length: at most 16384 bytes")
    );
}

#[test]
fn a_claimed_count_allocates_nothing() {
    let mut parser = Parser::default();
    assert_eq!(parser.next(&mut b"*1048576\r\n$1048576\r\n".to_vec(), Limits::FULL), Ok(false));
    assert_eq!(parser.args.capacity(), 0);
}
