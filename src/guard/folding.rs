//! Folding case: canonical caseless matching (The Unicode Standard, section 3.13, D145), in normal form C.

use caseless::Caseless;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// The folded key, or why it cannot be folded.
pub(super) fn fold(key: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let text = match std::str::from_utf8(key) {
        Ok(text) if !key.contains(&0) => text,
        Ok(_) => return Err("has a NUL byte, where NOCASE stops comparing".to_owned()),
        Err(error) => return Err(format!("is not UTF-8 (byte {})", error.valid_up_to())),
    };
    if key.is_ascii() {
        return Ok(Cow::Owned(key.to_ascii_lowercase()));
    }
    let folded: String = one_i(text.chars().nfd().default_case_fold()).nfc().collect();
    Ok(Cow::Owned(folded.into_bytes()))
}

/// Removes the dots above every i, and turns the dotless i into an i. Unicode folds \u{130} to an i with a
/// dot, but the C library's `lower()` folds it to a plain one, and in Turkish, I is the capital of \u{131}.
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

#[cfg(test)]
mod tests {
    use crate::guard::canonical::Canonical;

    fn same(canonical: Canonical, a: &str, b: &str) -> bool {
        canonical.apply(a.as_bytes()).unwrap() == canonical.apply(b.as_bytes()).unwrap()
    }

    #[test]
    fn case_and_spelling_are_folded_as_unicode_says() {
        let fold = Canonical::EXACT.fold_case();
        // The Unicode Standard, 3.13 and SpecialCasing: sharp s, final sigma, ligatures, composed and
        // decomposed letters.
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
    fn folding_goes_with_padding_and_integers() {
        let both = Canonical::EXACT.fold_case().trim_padding();
        assert!(same(both, "ABBA  ", "abba"));
        assert!(same(both.integers(), "abba", "ABBA "));
        assert!(both.integers().covers(Canonical::EXACT.integers()));
    }

    #[test]
    fn a_key_that_is_not_utf8_cannot_be_folded() {
        let error = Canonical::EXACT.fold_case().apply(b"caf\xe9").unwrap_err().to_string();
        assert!(error.contains("caf\\xe9") && error.contains("byte 3"), "{error}");
    }
}
