//! Extracts libpq's TLS parameters from a connection string: `postgres` knows only some `sslmode` values.

use percent_encoding::percent_decode_str;

/// The parameters as given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsParameters {
    pub sslmode: Option<String>,
    pub sslrootcert: Option<String>,
    pub sslcert: Option<String>,
    pub sslkey: Option<String>,
}

impl TlsParameters {
    /// Stores a parameter; `false` if it is not one of these.
    fn take(&mut self, name: &str, value: String) -> bool {
        let of = match name {
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "sslcert" => &mut self.sslcert,
            "sslkey" => &mut self.sslkey,
            _ => return false,
        };
        // Empty is the default, as in libpq.
        *of = Some(value).filter(|value| !value.is_empty());
        true
    }
}

/// The TLS parameters of a connection string, and the rest. A malformed string is left whole, for the parser
/// of the rest to refuse.
pub fn split(url: &str) -> (String, TlsParameters) {
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let found = if is_url { split_url(url) } else { split_words(url) };
    found.unwrap_or_else(|| (url.to_owned(), TlsParameters::default()))
}

fn split_url(url: &str) -> Option<(String, TlsParameters)> {
    // A password may contain a question mark.
    let (credentials, rest) = url.split_at(url.find('@').map_or(0, |at| at + 1));
    let (place, query) = rest.split_once('?')?;
    let mut taken = TlsParameters::default();
    let mut kept = Vec::new();
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8().ok()?;
        if !taken.take(&percent_decode_str(name).decode_utf8().ok()?, value.into_owned()) {
            kept.push(parameter);
        }
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    Some((format!("{credentials}{place}{mark}{}", kept.join("&")), taken))
}

/// Splits `name=value name='a value'`.
fn split_words(text: &str) -> Option<(String, TlsParameters)> {
    let mut taken = TlsParameters::default();
    let mut kept = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (value, next) = value(after.trim_start())?;
        if !taken.take(name.trim_end(), value) {
            kept.push(rest.strip_suffix(next)?);
        }
        rest = next.trim_start();
    }
    Some((kept.join(" "), taken))
}

/// A value, quoted or up to the next space, and the text after it. A backslash escapes the next character.
fn value(text: &str) -> Option<(String, &str)> {
    let quoted = text.strip_prefix('\'');
    let mut chars = quoted.unwrap_or(text).chars();
    let mut value = String::new();
    loop {
        let before = chars.as_str();
        match chars.next() {
            Some('\\') => value.extend(chars.next()),
            Some('\'') if quoted.is_some() => return Some((value, chars.as_str())),
            Some(c) if quoted.is_none() && c.is_whitespace() => return Some((value, before)),
            Some(c) => value.push(c),
            None => return quoted.is_none().then_some((value, "")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, rest: &str, mode: &str, root: &str) {
        let given = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
        let expected =
            TlsParameters { sslmode: given(mode), sslrootcert: given(root), ..TlsParameters::default() };
        assert_eq!(split(url), (rest.to_owned(), expected), "{url}");
    }

    #[test]
    fn the_parameters_are_taken_out_of_a_url() {
        check("postgres://host/db", "postgres://host/db", "", "");
        check("postgres://host/db?sslmode=verify-full", "postgres://host/db", "verify-full", "");
        check(
            "postgresql://me:why?@host/db?connect_timeout=3&sslmode=verify%2Dca&sslrootcert=%2Fa%20b%3D&user=me",
            "postgresql://me:why?@host/db?connect_timeout=3&user=me",
            "verify-ca",
            "/a b=",
        );
        check("postgres://host?sslmode=require&sslmode=disable", "postgres://host", "disable", "");
        check("postgres://host?sslmode=%ff", "postgres://host?sslmode=%ff", "", "");
    }

    #[test]
    fn the_parameters_are_taken_out_of_words() {
        check("host=a dbname='my db'", "host=a dbname='my db'", "", "");
        check(
            r"  host = a sslmode=require  password='it\'s sslmode=x' sslrootcert = '/a \\b\'' user=me ",
            r"host = a password='it\'s sslmode=x' user=me",
            "require",
            r"/a \b'",
        );
        check(r"sslrootcert=/a\ b sslmode=prefer host=c", "host=c", "prefer", "/a b");
        check("sslmode='' host=c", "host=c", "", "");
        for malformed in ["host=a sslmode='require", "host", "sslmode=require host"] {
            check(malformed, malformed, "", "");
        }
    }
}
