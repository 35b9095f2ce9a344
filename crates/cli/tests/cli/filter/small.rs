//! Small filters on the command line.

use super::*;

#[test]
fn a_small_filter_takes_few_bytes_and_says_what_it_is() {
    let case = Case::new();
    case.lines("in", numbered(0..10));
    for (args, rate_bits, bytes) in [
        ("--fpp 0.4%", 8, 30..36),
        ("--bits-per-key 10", 8, 30..36),
        ("--bits-per-key 3.7", 1, 24..30),
        ("--bits-per-key 35", 32, 60..70),
        ("", 7, 29..35),
    ] {
        let json = case.ok(&format!("build --kind small {args} --seed 3 in -o f --json"));
        let info = case.ok("info f --json");
        assert_eq!(info, json);
        for field in [
            r#""kind":"small","keys":10,"capacity":10,"#,
            r#""seed":3,"hash":"xxh3-64""#,
            &format!(r#""rate_bits":{rate_bits}"#),
        ] {
            assert!(info.contains(field), "{args}: {info}");
        }
        let len = std::fs::metadata(case.path("f")).unwrap().len();
        assert!(bytes.contains(&len) && info.contains(&format!(r#""file_bytes":{len}"#)), "{args}: {info}");
        case.ok("send f -o wire");
        assert!(std::fs::read(case.path("f")).unwrap() == std::fs::read(case.path("wire")).unwrap());
    }
    assert!(case.ok("info f").starts_with("f: small, b 7\nkeys   10 of at most 10\n"));
}

#[test]
fn what_a_small_filter_cannot_do_is_refused_with_the_reason() {
    let case = Case::new();
    case.lines("in", numbered(0..10));
    case.ok("build --kind small in -o f");
    let too_many = (0..65_537).map(|i| i.to_string());
    case.lines("many", too_many);
    case.refused(
        "build --kind small many -o g",
        "more than 65536 keys, too many for a small filter; build a parity",
    );
    for rate in ["--fpp 1e-10", "--bits-per-key 2.9"] {
        case.refused(
            &format!("build --kind small {rate} in -o g"),
            "no such small filter: they have 3.00 to 33.54",
        );
    }
    case.refused("build --kind small --hash siphash in -o g", "do not apply");
    case.refused("build --kind bloom --same-hash-as f in -o g", "a small filter does not share");
    case.refused("add f in", "a small filter takes no new keys; build it again");
    case.refused("remove f in", "a small filter cannot remove keys");
    case.refused("union f f -o g", "only bloom and counting filters");
    case.refused("fold f --fpp 1% -o g", "only bloom and counting filters");
    assert!(!case.path("g").exists());
    let mut bytes = std::fs::read(case.path("f")).unwrap();
    bytes[20] ^= 1;
    std::fs::write(case.path("f"), bytes).unwrap();
    case.refused("check f in", "build the filter again from its keys");
}
