//! Requests of the Redis protocol. However the bytes of a connection are split, the parser finds the same
//! requests and the same error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom_server::resp::{Limits, Parser, ProtocolError};

type Requests = Vec<Vec<Vec<u8>>>;

/// The requests and the error of a connection that receives `pieces`.
fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>, limits: Limits) -> (Requests, Option<ProtocolError>) {
    let (mut parser, mut buffer, mut found) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match parser.next(&mut buffer, limits) {
                Ok(true) => {
                    let request: Vec<_> =
                        parser.lend().iter().map(|arg| buffer[arg.clone()].to_vec()).collect();
                    assert!(!request.is_empty(), "a request of nothing");
                    found.push(request);
                }
                Ok(false) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        buffer.drain(..parser.take_consumed());
    }
    (found, None)
}

fuzz_target!(|input: (bool, Vec<u8>, &[u8])| {
    let (known, lengths, stream) = input;
    let limits = if known { Limits::FULL } else { Limits::UNAUTHENTICATED };
    let mut rest = stream;
    let pieces = lengths.iter().map_while(|&len| rest.split_off(..usize::from(len)));
    let mut pieces: Vec<&[u8]> = pieces.collect();
    pieces.push(rest);
    let whole = parse([stream].into_iter(), limits);
    assert_eq!(parse(pieces.into_iter(), limits), whole);
    let (requests, _) = whole;
    let bytes = requests.iter().flatten().map(Vec::len).sum::<usize>();
    assert!(bytes <= stream.len(), "more than was sent");
});
