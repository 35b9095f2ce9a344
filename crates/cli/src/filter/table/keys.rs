//! Keys to measure with. Each number has its own key.

/// The form of the keys. With a good hash it makes no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Look {
    /// Eight bytes, little-endian
    Integers,
    /// Eight bytes, big-endian
    BigEndian,
    /// As few bytes as the number needs
    Short,
    /// About sixty bytes, most of them a common prefix
    Urls,
}

/// Calls `each` for every key of a range of numbers, without an allocation per key.
pub fn for_each(look: Look, numbers: std::ops::Range<u64>, mut each: impl FnMut(&[u8])) {
    let mut text = Vec::new();
    for i in numbers {
        match look {
            Look::Integers => each(&i.to_le_bytes()),
            Look::BigEndian => each(&i.to_be_bytes()),
            Look::Short => {
                let bytes = i.to_le_bytes();
                let len = (u64::BITS - i.leading_zeros()).div_ceil(8) as usize;
                each(bytes.get(..len).unwrap_or(&bytes));
            }
            Look::Urls => {
                text.clear();
                text.extend_from_slice(b"https://www.example.com/catalogue/articles/index.html?id=");
                digits(i, &mut text);
                each(&text);
            }
        }
    }
}

/// The decimal digits of a number, the last one first.
fn digits(mut i: u64, text: &mut Vec<u8>) {
    loop {
        text.push(b'0' + (i % 10) as u8);
        i /= 10;
        if i == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::collections::HashSet;

    #[test]
    fn no_two_numbers_have_the_same_key() {
        for look in Look::value_variants() {
            let mut seen = HashSet::new();
            let numbers = [0..70_000, 1 << 40..(1 << 40) + 1000];
            numbers.into_iter().for_each(|some| {
                for_each(*look, some, |key| assert!(seen.insert(key.to_vec()), "{look:?}: {key:?}"));
            });
            assert_eq!(seen.len(), 71_000);
        }
    }
}
