//! The option `--prefixes`: which prefixes of keys filters learn.

use sidebloom::PrefixExtractor;

/// `fixed:BYTES`, or `delimited:BYTE:COUNT` with a literal byte or `0xHH`.
pub fn parse(text: &str) -> Result<PrefixExtractor, String> {
    let number = |digits: &str| digits.parse::<usize>().map_err(|e| format!("`{digits}`: {e}"));
    let extractor = match text.split_once(':') {
        Some(("fixed", bytes)) => PrefixExtractor::fixed(number(bytes)?),
        Some(("delimited", rest)) => {
            let (byte, count) = rest.rsplit_once(':').ok_or("use delimited:BYTE:COUNT")?;
            PrefixExtractor::delimited(delimiter(byte)?, number(count)?)
        }
        _ => return Err("use fixed:BYTES or delimited:BYTE:COUNT".to_owned()),
    };
    extractor.check().map(|()| extractor).map_err(|e| e.to_string())
}

fn delimiter(text: &str) -> Result<u8, String> {
    let hex = text.strip_prefix("0x").filter(|digits| digits.len() == 2);
    match (hex, text.as_bytes()) {
        (Some(digits), _) => u8::from_str_radix(digits, 16).map_err(|e| format!("`{text}`: {e}")),
        (None, &[byte]) => Ok(byte),
        _ => Err(format!("`{text}` is not one byte; use a character or 0xHH")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_nonsense_is_refused() {
        assert_eq!(parse("fixed:8"), Ok(PrefixExtractor::fixed(8)));
        assert_eq!(parse("delimited:/:2"), Ok(PrefixExtractor::delimited(b'/', 2)));
        assert_eq!(parse("delimited:::1"), Ok(PrefixExtractor::delimited(b':', 1)));
        assert_eq!(parse("delimited:0xfF:1"), Ok(PrefixExtractor::delimited(0xff, 1)));
        for wrong in [
            "",
            "fixed",
            "fixed:",
            "fixed:0",
            "fixed:65537",
            "fixed:-1",
            "delimited:/",
            "delimited:é:1",
            "delimited:0xzz:1",
            "delimited:/:0",
            "other:1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
