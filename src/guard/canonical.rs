//! Which keys are equal.

#[cfg(feature = "unicode")]
use super::folding::fold;
use super::spelling::{self, Number};
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Which differences between keys to ignore. Declared when a guard is built and stored in it; opening the
/// guard with a different form fails.
///
/// It must be at least as coarse as the database's own equality: keys that the database treats as equal must
/// be equal here, or the guard would say no to a key that exists. A coarser form is safe, and says "maybe"
/// slightly more often. So a `NOCASE` column of SQLite or a `citext` column of PostgreSQL needs `fold_case`,
/// a `CHAR(n)` or `RTRIM` column [`trim_padding`](Self::trim_padding), a column of integers
/// [`integers`](Self::integers), and one of uuids [`uuids`](Self::uuids). Folding case needs the cargo
/// feature `unicode`; without it, guards that fold case cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Canonical {
    pub(super) fold: bool,
    pub(super) pad: bool,
    pub(super) any: bool,
    pub(super) values: Values,
}

/// What keys spell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Values {
    #[default]
    Texts,
    Integers,
    Uuids,
}

/// Stands for all keys that cannot be folded. No folded key equals it, since those are UTF-8.
const UNFOLDABLE: &[u8] = &[0xff];

impl Canonical {
    /// Every byte counts.
    pub const EXACT: Canonical = Canonical { fold: false, pad: false, any: false, values: Values::Texts };

    /// Ignores letter case and the different Unicode spellings of a letter: canonical caseless matching (The
    /// Unicode Standard, section 3.13, D145), stored in normal form C. Keys must be UTF-8 without NUL, where
    /// SQLite's `NOCASE` stops comparing. In addition, i with and without a dot are equal in both cases:
    /// which of them are each other's capitals depends on the database's locale.
    #[cfg(feature = "unicode")]
    pub const fn fold_case(self) -> Self {
        Canonical { fold: true, ..self }
    }

    /// Accepts keys whose case cannot be folded (not UTF-8, or with a NUL), and treats them as one key: while
    /// a row has any of them, each of them is "maybe". Otherwise they are refused, and a table that contains
    /// one cannot be guarded. Only useful with [`fold_case`](Self::fold_case).
    #[cfg(feature = "unicode")]
    pub const fn take_unfoldable(self) -> Self {
        Canonical { any: true, ..self }
    }

    /// Ignores trailing spaces (U+0020), as SQL does when it compares `CHAR(n)`.
    pub const fn trim_padding(self) -> Self {
        Canonical { pad: true, ..self }
    }

    /// Treats all spellings of an integer as one key, as a column of integers does: `5`, `05`, `+5`, ` 5 `,
    /// `5.0`, and PostgreSQL's `0x5` and `1_000`. A key that is not a number is left as it is.
    pub const fn integers(self) -> Self {
        Canonical { values: Values::Integers, ..self }
    }

    /// Treats all spellings of a uuid as one key: in upper or lower case, with or without braces and hyphens.
    /// A key that is not a uuid is left as it is.
    pub const fn uuids(self) -> Self {
        Canonical { values: Values::Uuids, ..self }
    }

    /// Whether this ignores every difference that `other` ignores.
    pub fn covers(&self, other: Canonical) -> bool {
        self.and(other) == *self
    }

    /// Ignores the differences that either one ignores. Integers and uuids exclude each other; `other` wins.
    pub fn and(self, other: Canonical) -> Self {
        let values = if other.values == Values::Texts { self.values } else { other.values };
        Canonical {
            fold: self.fold || other.fold,
            pad: self.pad || other.pad,
            any: self.any || other.any,
            values,
        }
    }

    /// The one spelling that stands for all equal keys.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that is not UTF-8 or has a NUL, when case is folded; for
    /// integers, also for a number not spelled as a 64-bit integer: `5.5`, `1e3`, or one that is too large.
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
                        "the key \"{}\" is a number, but not spelled as an integer of at most 64 bits, as this guard requires",
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
        match fold(key) {
            Ok(folded) => Ok(folded),
            Err(_) if self.any => Ok(Cow::Borrowed(UNFOLDABLE)),
            Err(why) => Err(Error::InvalidArgument(format!(
                "the key \"{}\" {why}, and this guard folds case: build it with keys \"{}\" to treat all such keys as one",
                key.escape_ascii(),
                Canonical { any: true, ..*self }
            ))),
        }
    }

    /// Whether this build can apply it.
    pub(super) fn check_features(&self) -> Result<()> {
        if self.fold && cfg!(not(feature = "unicode")) {
            Err(Error::FeatureMissing { what: format!("the canonical form \"{self}\""), feature: "unicode" })
        } else {
            Ok(())
        }
    }
}

/// Without the feature, nothing can be folded, and no guard that folds is opened or built.
#[cfg(not(feature = "unicode"))]
fn fold(_: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    Err("cannot be folded without the cargo feature `unicode`")
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
        if words.is_empty() { f.write_str("exact") } else { f.write_str(&words.join(",")) }
    }
}

impl FromStr for Canonical {
    type Err = Error;

    /// `exact`, or one or more of `fold`, `pad`, `any` and either `integer` or `uuid`, separated by commas.
    fn from_str(text: &str) -> Result<Self> {
        let add = |canonical: Canonical, word: &str| match word {
            "exact" => Ok(canonical),
            "fold" => Ok(Canonical { fold: true, ..canonical }),
            "pad" => Ok(canonical.trim_padding()),
            "any" => Ok(Canonical { any: true, ..canonical }),
            "integer" if canonical.values != Values::Uuids => Ok(canonical.integers()),
            "uuid" if canonical.values != Values::Integers => Ok(canonical.uuids()),
            other => Err(Error::InvalidArgument(format!(
                "keys cannot be \"{other}\": give exact, fold, pad, any, integer or uuid, or several separated by commas, such as fold,pad"
            ))),
        };
        let canonical = text.split(',').try_fold(Canonical::EXACT, add)?;
        if canonical.any && !canonical.fold {
            return Err(Error::InvalidArgument("any is only allowed with fold, as in fold,any".into()));
        }
        canonical.check_features()?;
        Ok(canonical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(canonical: Canonical, a: &str, b: &str) -> bool {
        canonical.apply(a.as_bytes()).unwrap() == canonical.apply(b.as_bytes()).unwrap()
    }

    #[test]
    fn exact_keys_are_equal_only_byte_for_byte() {
        assert!(same(Canonical::EXACT, "Abba", "Abba"));
        assert!(!same(Canonical::EXACT, "Abba", "ABBA"));
        assert!(!same(Canonical::EXACT, "a", "a "));
        assert_eq!(*Canonical::EXACT.apply(b"\xff\xfe ").unwrap(), *b"\xff\xfe ");
    }

    #[test]
    fn padding_is_spaces_at_the_end_and_nothing_else() {
        let pad = Canonical::EXACT.trim_padding();
        assert!(same(pad, "Sinnerman", "Sinnerman   "));
        assert!(same(pad, "", "  "));
        for (a, b) in [("a", " a"), ("a", "a\t"), ("a b", "ab"), ("a", "A")] {
            assert!(!same(pad, a, b), "{a} and {b}");
        }
    }

    /// All spellings of an integer or a UUID are one key; other keys are left alone.
    #[test]
    fn spellings_of_an_integer_or_a_uuid_are_one_key() {
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

    const FOLD: Canonical = Canonical { fold: true, ..Canonical::EXACT };

    #[test]
    fn what_ignores_more_covers_what_ignores_less() {
        let all = [Canonical::EXACT, FOLD, Canonical::EXACT.trim_padding(), FOLD.trim_padding()];
        let covered = |of: &Canonical| all.iter().filter(|other| of.covers(**other)).count();
        assert_eq!(all.iter().map(covered).collect::<Vec<_>>(), [1, 2, 2, 4]);
        assert_eq!(all[1].and(all[2]), all[3]);
        let (integers, uuids) = (Canonical::EXACT.integers(), Canonical::EXACT.uuids());
        assert!(integers.covers(Canonical::EXACT) && FOLD.integers().covers(integers));
        assert!(!integers.covers(uuids) && !uuids.covers(integers) && !all[3].covers(integers));
        assert_eq!(all[1].and(uuids).to_string(), "fold,uuid");
    }

    #[test]
    fn names_round_trip() {
        for text in ["exact", "pad", "integer", "uuid", "pad,integer"] {
            assert_eq!(text.parse::<Canonical>().unwrap().to_string(), text);
        }
        for text in ["fold", "fold,pad", "fold,pad,uuid", "fold,any"] {
            match text.parse::<Canonical>() {
                Ok(canonical) => assert_eq!(canonical.to_string(), text),
                Err(error) => assert!(
                    cfg!(not(feature = "unicode")) && error.to_string().contains("feature `unicode`"),
                    "{error}"
                ),
            }
        }
        for wrong in ["integer,uuid", "", "any", "fold, pad"] {
            assert!(wrong.parse::<Canonical>().is_err(), "{wrong}");
        }
    }
}
