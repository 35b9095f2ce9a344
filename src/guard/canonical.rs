//! When two keys count as one.

use super::spelling::{self, Number};
use crate::error::{Error, Result};
use caseless::Caseless;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Which differences between keys do not count. Declared when a guard is built, stored in it, and refused when it differs later.
///
/// It must be at least as coarse as the database's own notion of equality: what the database takes for one key must be one key here, or
/// the guard would say no to a key that exists. Coarser is safe, and says "maybe" a little more often. So a `NOCASE` column of SQLite
/// or a `citext` column of PostgreSQL needs [`fold_case`](Self::fold_case), a `CHAR(n)` or `RTRIM` column
/// [`trim_padding`](Self::trim_padding), a column of integers [`integers`](Self::integers), and one of uuids [`uuids`](Self::uuids).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Canonical {
    fold: bool,
    pad: bool,
    any: bool,
    values: Values,
}

/// What keys are spellings of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Values {
    #[default]
    Texts,
    Integers,
    Uuids,
}

const FOLD: u8 = 1;
const PAD: u8 = 2;
const INTEGERS: u8 = 4;
const UUIDS: u8 = 8;
const ANY: u8 = 16;

/// Stands for all keys that cannot be folded; no key that can be is the same, since those are UTF-8.
const UNFOLDABLE: &[u8] = &[0xff];

impl Canonical {
    /// Every byte counts.
    pub const EXACT: Canonical = Canonical { fold: false, pad: false, any: false, values: Values::Texts };

    /// Letters in upper and lower case are the same, and so are the ways in which Unicode can spell a letter: canonical caseless matching
    /// (The Unicode Standard, section 3.13, D145), stored in normal form C. Keys must be UTF-8, without NUL, behind which SQLite's `NOCASE` does not compare. Beyond that all letters i are one, with a dot
    /// or without: which of them are each other's capitals depends on the database's locale.
    pub const fn fold_case(self) -> Self {
        Canonical { fold: true, ..self }
    }

    /// Also takes keys that case cannot be folded in (not UTF-8, or with a NUL), as one key: as long as a row has any of them, each of them is
    /// "maybe". Without this they are refused, and a table that has one cannot be guarded. Of use with [`fold_case`](Self::fold_case) only.
    pub const fn take_unfoldable(self) -> Self {
        Canonical { any: true, ..self }
    }

    /// Spaces (U+0020) at the end do not count, as SQL compares `CHAR(n)`.
    pub const fn trim_padding(self) -> Self {
        Canonical { pad: true, ..self }
    }

    /// All spellings of an integer are one key, as a column of integers takes them: `5`, `05`, `+5`, ` 5 `, `5.0`, and PostgreSQL's `0x5`
    /// and `1_000`. A key that is no number stays as it is.
    pub const fn integers(self) -> Self {
        Canonical { values: Values::Integers, ..self }
    }

    /// All spellings of a uuid are one key: in upper or lower case, with braces, with and without hyphens. A key that is no uuid stays as it is.
    pub const fn uuids(self) -> Self {
        Canonical { values: Values::Uuids, ..self }
    }

    /// Whether all keys that are the same by `other` are the same by this one.
    pub fn covers(&self, other: Canonical) -> bool {
        self.and(other) == *self
    }

    /// What ignores the differences that either of both ignores. Integers and uuids do not go together: then it is those of `other`.
    pub fn and(self, other: Canonical) -> Self {
        let values = if other.values == Values::Texts { self.values } else { other.values };
        Canonical {
            fold: self.fold || other.fold,
            pad: self.pad || other.pad,
            any: self.any || other.any,
            values,
        }
    }

    /// The one spelling that stands for all that are the same.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that is not UTF-8 or has a NUL where case is folded, and for one that is a number, but no integer that it can
    /// tell from all others, where integers are expected: `5.5`, `1e3`, or beyond 64 bits.
    pub fn apply<'k>(&self, key: &'k [u8]) -> Result<Cow<'k, [u8]>> {
        match self.values {
            Values::Texts => {}
            Values::Integers => match spelling::integer(key) {
                Number::Integer(number) if number.to_string().as_bytes() == key => {
                    return Ok(Cow::Borrowed(key));
                }
                Number::Integer(number) => return Ok(Cow::Owned(number.to_string().into_bytes())),
                Number::Other => {
                    return Err(Error::InvalidArgument(format!(
                        "the key \"{}\" is a number, but not spelled as an integer of 64 bits, which this guard needs",
                        key.escape_ascii()
                    )));
                }
                Number::None => {}
            },
            Values::Uuids => {
                if let Some(uuid) = spelling::uuid(key) {
                    return Ok(Cow::Owned(uuid.into()));
                }
            }
        }
        let key = if self.pad { key.trim_suffix_spaces() } else { key };
        if !self.fold || key.iter().all(|byte| matches!(byte, 1..=b'@' | b'['..=0x7f)) {
            return Ok(Cow::Borrowed(key));
        }
        let text = match std::str::from_utf8(key) {
            Ok(text) if !key.contains(&0) => text,
            _ if self.any => return Ok(Cow::Borrowed(UNFOLDABLE)),
            unfit => {
                let why = unfit.map_or_else(
                    |e| format!("is not UTF-8 (byte {})", e.valid_up_to()),
                    |_| "has a NUL byte, behind which NOCASE does not compare".to_owned(),
                );
                return Err(Error::InvalidArgument(format!(
                    "the key \"{}\" {why}, and this guard folds case: build it with keys \"{}\" to take all such keys for one",
                    key.escape_ascii(),
                    self.take_unfoldable()
                )));
            }
        };
        if key.is_ascii() {
            return Ok(Cow::Owned(key.to_ascii_lowercase()));
        }
        let folded: String = one_i(text.chars().nfd().default_case_fold()).nfc().collect();
        Ok(Cow::Owned(folded.into_bytes()))
    }

    pub(super) fn to_bits(self) -> u8 {
        let values = match self.values {
            Values::Texts => 0,
            Values::Integers => INTEGERS,
            Values::Uuids => UUIDS,
        };
        u8::from(self.fold) * FOLD + u8::from(self.pad) * PAD + u8::from(self.any) * ANY + values
    }

    /// `None` for bits of a later version.
    pub(super) fn from_bits(bits: u8) -> Option<Self> {
        let values = match bits & !(FOLD | PAD | ANY) {
            0 => Values::Texts,
            INTEGERS => Values::Integers,
            UUIDS => Values::Uuids,
            _ => return None,
        };
        Some(Canonical { fold: bits & FOLD != 0, pad: bits & PAD != 0, any: bits & ANY != 0, values })
    }
}

/// Takes the dots above off every i, and makes the dotless one an i. Unicode folds \u{130} to an i with a dot, but the `lower()` of the C
/// library to a plain one, and in Turkish locales I is the capital of \u{131}.
fn one_i(folded: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let mut on_i = false;
    folded.filter_map(move |c| match c {
        '\u{131}' => {
            on_i = true;
            Some('i')
        }
        '\u{307}' if on_i => None,
        _ => {
            on_i = c == 'i' || on_i && canonical_combining_class(c) != 0;
            Some(c)
        }
    })
}

trait TrimSpaces {
    fn trim_suffix_spaces(&self) -> &Self;
}

impl TrimSpaces for [u8] {
    fn trim_suffix_spaces(&self) -> &Self {
        let end = self.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
        self.get(..end).unwrap_or_default()
    }
}

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = match self.values {
            Values::Texts => None,
            Values::Integers => Some("integer"),
            Values::Uuids => Some("uuid"),
        };
        let words =
            [self.fold.then_some("fold"), self.pad.then_some("pad"), self.any.then_some("any"), values];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        match words.is_empty() {
            true => f.write_str("exact"),
            false => f.write_str(&words.join(",")),
        }
    }
}

impl FromStr for Canonical {
    type Err = Error;

    /// `exact`, or of `fold`, `pad`, `any`, and `integer` or `uuid`, some with commas between them.
    fn from_str(text: &str) -> Result<Self> {
        let add = |canonical: Canonical, word: &str| match word {
            "exact" => Ok(canonical),
            "fold" => Ok(canonical.fold_case()),
            "pad" => Ok(canonical.trim_padding()),
            "any" => Ok(canonical.take_unfoldable()),
            "integer" if canonical.values != Values::Uuids => Ok(canonical.integers()),
            "uuid" if canonical.values != Values::Integers => Ok(canonical.uuids()),
            other => Err(Error::InvalidArgument(format!(
                "\"{other}\" for keys: exact, fold, pad, any, integer or uuid, or several with commas between them, as fold,pad"
            ))),
        };
        let canonical = text.split(',').try_fold(Canonical::EXACT, add)?;
        match canonical.any && !canonical.fold {
            true => Err(Error::InvalidArgument("any has a meaning only with fold, as in fold,any".into())),
            false => Ok(canonical),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(canonical: Canonical, a: &str, b: &str) -> bool {
        canonical.apply(a.as_bytes()).unwrap() == canonical.apply(b.as_bytes()).unwrap()
    }

    #[test]
    fn exact_keys_are_the_same_only_byte_for_byte() {
        assert!(same(Canonical::EXACT, "Abba", "Abba"));
        assert!(!same(Canonical::EXACT, "Abba", "ABBA"));
        assert!(!same(Canonical::EXACT, "a", "a "));
        assert_eq!(*Canonical::EXACT.apply(b"\xff\xfe ").unwrap(), *b"\xff\xfe ");
    }

    #[test]
    fn case_and_spelling_are_folded_as_unicode_says() {
        let fold = Canonical::EXACT.fold_case();
        // The Unicode Standard, 3.13 and SpecialCasing: sharp s, final sigma, ligatures, composed and decomposed letters.
        for (a, b) in [
            ("ABBA", "abba"),
            ("Straße", "STRASSE"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("ﬁn", "FIN"),
            ("Beyonc\u{e9}", "BEYONCE\u{301}"),
            ("\u{212b}ngstr\u{f6}m", "a\u{30a}ngstro\u{308}m"),
            ("\u{345}", "\u{3b9}"),
            ("\u{130}stanbul", "istanbul"),
            ("DIYARBAKIR", "diyarbak\u{131}r"),
            ("I\u{323}\u{307}", "\u{1ecb}"),
        ] {
            assert!(same(fold, a, b), "{a} and {b}");
        }
        for (a, b) in [("resume", "résumé"), ("a", "a "), ("i", "í"), ("z", "ż")] {
            assert!(!same(fold, a, b), "{a} and {b}");
        }
    }

    #[test]
    fn padding_is_spaces_at_the_end_and_nothing_else() {
        let pad = Canonical::EXACT.trim_padding();
        assert!(same(pad, "Sinnerman", "Sinnerman   "));
        assert!(same(pad, "", "  "));
        for (a, b) in [("a", " a"), ("a", "a\t"), ("a b", "ab"), ("a", "A")] {
            assert!(!same(pad, a, b), "{a} and {b}");
        }
        assert!(same(pad.fold_case(), "ABBA  ", "abba"));
    }

    #[test]
    fn spellings_of_an_integer_and_of_a_uuid_are_one_key_and_other_keys_stay_what_they_are() {
        let integers = Canonical::EXACT.integers();
        for spelling in ["5", "05", "+5", " 5", "5\n", "5.0", "5.", "0x5", "0b101", "0_5"] {
            assert!(same(integers, "5", spelling), "{spelling}");
        }
        assert!(same(integers, "-9223372036854775808", "-09223372036854775808"));
        assert!(same(integers, "0", "-0"));
        for (a, b) in [("5", "-5"), ("5", "50"), ("abba", "ABBA"), ("a", "a "), ("12AB", "12ab"), ("", "0")] {
            assert!(!same(integers, a, b), "{a} and {b}");
        }
        for doubtful in ["5.5", "5e0", "1E3", ".5", "9223372036854775808", "9007199254740993.0"] {
            let error = integers.apply(doubtful.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(doubtful) && error.contains("64 bits"), "{error}");
        }
        assert!(same(integers.fold_case().trim_padding(), "abba", "ABBA "));
        let uuids = Canonical::EXACT.uuids();
        let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for spelling in [
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
            "urn:uuid:a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ] {
            assert!(same(uuids, uuid, spelling), "{spelling}");
        }
        assert_eq!(*uuids.apply(b"{A0EEBC999C0B4EF8BB6D6BB9BD380A11}").unwrap(), *uuid.as_bytes());
        for (a, b) in [(uuid, "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), (uuid, &uuid[1..]), ("x", "X")] {
            assert!(!same(uuids, a, b), "{a} and {b}");
        }
    }

    #[test]
    fn a_key_that_is_not_utf8_cannot_be_folded() {
        let error = Canonical::EXACT.fold_case().apply(b"caf\xe9").unwrap_err().to_string();
        assert!(error.contains("caf\\xe9") && error.contains("byte 3"), "{error}");
    }

    #[test]
    fn what_ignores_more_covers_what_ignores_less() {
        let all: Vec<Canonical> =
            ["exact", "fold", "pad", "fold,pad"].map(|text| text.parse().unwrap()).to_vec();
        let covered = |of: &Canonical| all.iter().filter(|other| of.covers(**other)).count();
        assert_eq!(all.iter().map(covered).collect::<Vec<_>>(), [1, 2, 2, 4]);
        assert_eq!(all[1].and(all[2]), all[3]);
        let (integers, uuids) = (Canonical::EXACT.integers(), Canonical::EXACT.uuids());
        assert!(integers.covers(Canonical::EXACT) && integers.fold_case().covers(integers));
        assert!(!integers.covers(uuids) && !uuids.covers(integers) && !all[3].covers(integers));
        assert_eq!(all[1].and(uuids).to_string(), "fold,uuid");
    }

    #[test]
    fn names_and_bits_come_back() {
        for text in [
            "exact",
            "fold",
            "pad",
            "fold,pad",
            "integer",
            "uuid",
            "pad,integer",
            "fold,pad,uuid",
            "fold,any",
        ] {
            let canonical: Canonical = text.parse().unwrap();
            assert_eq!(canonical.to_string(), text);
            assert_eq!(Canonical::from_bits(canonical.to_bits()), Some(canonical));
        }
        assert!([12, 32].iter().all(|&bits| Canonical::from_bits(bits).is_none()));
        assert!("integer,uuid".parse::<Canonical>().is_err());
        assert!("".parse::<Canonical>().is_err());
        assert!("any".parse::<Canonical>().is_err());
        assert!("fold, pad".parse::<Canonical>().is_err());
    }
}
