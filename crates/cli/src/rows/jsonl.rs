//! `--format jsonl`: one JSON object per line.
//!
//! Without `--key`, as in `scan --json`: `key` or `key_hex`, and `value`, `value_hex` or neither.

use super::columns::{ColumnChoice, check_key};
use super::source::{LineReader, Row, RowError, Rows};
use crate::hex;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

/// A reader of this format.
pub struct Jsonl<R> {
    lines: LineReader<R>,
    key: Vec<String>,
    value: Vec<String>,
}

/// Fields keep their text: a number stays as it was written.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// [`Fields`] with distinct names.
struct Distinct<'a>(Fields<'a>);

impl<'a> Deserialize<'a> for Distinct<'a> {
    fn deserialize<D: Deserializer<'a>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(DistinctVisitor)
    }
}

struct DistinctVisitor;

impl<'a> Visitor<'a> for DistinctVisitor {
    type Value = Distinct<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut input: M) -> Result<Self::Value, M::Error> {
        let mut fields = Fields::new();
        while let Some((name, value)) = input.next_entry::<String, &RawValue>()? {
            if fields.contains_key(&name) {
                return Err(M::Error::custom(format!("the field {name:?} occurs twice")));
            }
            fields.insert(name, value);
        }
        Ok(Distinct(fields))
    }
}

impl<R: BufRead> Jsonl<R> {
    /// Reads `input`.
    pub fn new(input: R, chosen: ColumnChoice) -> Self {
        let names = |columns: &[super::Column]| columns.iter().map(super::Column::name).collect();
        Jsonl { lines: LineReader::text(input), key: names(&chosen.key), value: names(&chosen.value) }
    }
}

impl<R: BufRead> Rows for Jsonl<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, RowError> {
        let Some((number, line)) = self.lines.next_text()? else { return Ok(false) };
        let taken = parse(line).and_then(|fields| match (&self.key[..], &self.value[..]) {
            ([], _) => scanned_row(&fields),
            (key, []) => Ok((join_key(&fields, key)?, line.trim_ascii().to_vec())),
            (key, value) => Ok((join_key(&fields, key)?, join(&fields, value, true)?)),
        });
        let (key, value) = taken.map_err(|why| RowError::Bad { line: number, why })?;
        *row = Row { line: number, key, value };
        Ok(true)
    }
}

fn parse(line: &[u8]) -> Result<Fields<'_>, String> {
    serde_json::from_slice::<Distinct<'_>>(line).map(|distinct| distinct.0).map_err(|error| {
        // The error's own line number is always 1; the caller adds the file's.
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        format!("not a JSON object: {what} at column {}", error.column())
    })
}

/// A row in the form of `scan --json`.
fn scanned_row(fields: &Fields<'_>) -> Result<(Vec<u8>, Vec<u8>), String> {
    if let Some(other) =
        fields.keys().find(|name| !matches!(&***name, "key" | "key_hex" | "value" | "value_hex"))
    {
        return Err(format!("unexpected field {other:?}: choose the key's field with --key"));
    }
    let bytes = |name: &str, name_hex: &str| match (fields.get(name), fields.get(name_hex)) {
        (Some(_), Some(_)) => Err(format!("both {name} and {name_hex}")),
        (Some(text), None) => scalar(name, text).map(Some),
        (None, Some(digits)) => {
            hex::decode(&scalar(name_hex, digits)?).map(Some).map_err(|why| format!("{name_hex}: {why}"))
        }
        (None, None) => Ok(None),
    };
    let key = bytes("key", "key_hex")?.ok_or("no field \"key\": choose the key's field with --key")?;
    Ok((key, bytes("value", "value_hex")?.unwrap_or_default()))
}

fn join_key(fields: &Fields<'_>, names: &[String]) -> Result<Vec<u8>, String> {
    let key = join(fields, names, false)?;
    check_key(&key, names.len())?;
    Ok(key)
}

/// Fields joined by TABs; `nested` allows objects, arrays and null, as their JSON text.
fn join(fields: &Fields<'_>, names: &[String], nested: bool) -> Result<Vec<u8>, String> {
    let mut parts = Vec::with_capacity(names.len());
    for name in names {
        let field = fields.get(name).ok_or_else(|| format!("no field {name:?}"))?;
        match scalar(name, field) {
            Err(_) if nested => parts.push(field.get().as_bytes().to_vec()),
            bytes => parts.push(bytes?),
        }
    }
    Ok(parts.join(&b'\t'))
}

/// The text of a string, the digits of a number, `true` or `false`.
fn scalar(name: &str, field: &RawValue) -> Result<Vec<u8>, String> {
    let text = field.get();
    match text.as_bytes().first() {
        Some(b'"') => {
            serde_json::from_str::<String>(text).map(String::into_bytes).map_err(|e| format!("{name}: {e}"))
        }
        Some(b'{' | b'[' | b'n') | None => Err(format!("field {name:?} is not a string, number or boolean")),
        Some(_) => Ok(text.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::source::read_all;

    fn rows(text: &str, key: &[&str], value: &[&str]) -> (Vec<(String, String)>, Vec<RowError>) {
        let columns = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let chosen = ColumnChoice { key: columns(key), value: columns(value), header: true };
        read_all(&mut Jsonl::new(text.as_bytes(), chosen))
    }

    #[test]
    fn fields_are_taken_by_name_and_numbers_stay_as_written() {
        let text = r#"{"id": 12345678901234567890123, "t": "a\"b", "n": {"x": [1]}}"#;
        assert_eq!(
            rows(text, &["id"], &["t"]).0,
            [("12345678901234567890123".to_owned(), "a\\\"b".to_owned())]
        );
        assert_eq!(rows(text, &["t", "id"], &["n"]).0.first().map(|r| r.1.as_str()), Some(r#"{\"x\": [1]}"#));
        let whole = &rows(text, &["t"], &[]).0;
        assert_eq!(whole.first().map(|r| r.1.len()), Some(text.escape_default().to_string().len()));
    }

    #[test]
    fn what_scan_prints_is_read_without_options() {
        let text = "{\"key\":\"a\",\"value_hex\":\"ff00\"}\n{\"key_hex\":\"fe\"}\n";
        assert_eq!(
            rows(text, &[], &[]).0,
            [("a", "\\xff\\x00"), ("\\xfe", "")].map(|(k, v)| (k.into(), v.into()))
        );
    }

    #[test]
    fn each_malformed_line_says_what_is_wrong() {
        let text = "{\"a\":1\n[1]\n{\"a\":null}\n{\"b\":1}\n{\"a\":2}\n";
        let (good, errors) = rows(text, &["a"], &[]);
        assert_eq!(good.len(), 1);
        let said: Vec<String> = errors.iter().map(|e| format!("{e:?}")).collect();
        for (line, (said, expected)) in
            said.iter().zip(["EOF", "JSON object", "not a string", "no field"]).enumerate()
        {
            assert!(said.contains(expected) && said.contains(&format!("line: {}", line + 1)), "{said}");
        }
        assert_eq!(said.len(), 4);
        assert!(format!("{:?}", rows("{\"id\":1}", &[], &[]).1).contains("--key"));
    }
}
