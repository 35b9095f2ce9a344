//! A strict reader of Prometheus' text format. It refuses what a scraper would refuse or misread.

use std::collections::{BTreeMap, BTreeSet};

/// Names and values, in order.
type Labels = Vec<(String, String)>;

/// A sample: its name, its labels in order, and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: Labels,
    pub value: f64,
}

impl Sample {
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// A family: its type and its samples.
#[derive(Debug, Default)]
pub struct Family {
    pub kind: String,
    pub samples: Vec<Sample>,
}

fn is_name(name: &str) -> bool {
    let is_start = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    name.bytes().next().is_some_and(is_start) && name.bytes().all(|b| is_start(b) || b.is_ascii_digit())
}

/// The family of a sample's name.
fn family_of<'a>(name: &'a str, families: &BTreeMap<String, Family>) -> &'a str {
    let is_histogram = |base: &str| families.get(base).is_some_and(|family| family.kind == "histogram");
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
    base.filter(|base| is_histogram(base)).unwrap_or(name)
}

/// Reads labels after `{`. Returns them with the rest after `}`.
fn labels(text: &str) -> Result<(Labels, &str), String> {
    let (mut rest, mut labels) = (text, Labels::new());
    loop {
        let (name, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        if !is_name(name) || name.starts_with("__") {
            return Err(format!("label name {name:?}"));
        }
        let (mut value, mut chars) = (String::new(), after.chars());
        loop {
            match chars.next().ok_or("an open quote")? {
                '"' => break,
                '\n' => return Err("a raw newline in a label".into()),
                '\\' => value.push(match chars.next() {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    other => return Err(format!("escape {other:?}")),
                }),
                c => value.push(c),
            }
        }
        if labels.iter().any(|(other, _)| other == name) {
            return Err(format!("label {name} twice"));
        }
        labels.push((name.to_owned(), value));
        match (chars.next(), chars.as_str()) {
            (Some(','), after) => rest = after,
            (Some('}'), after) => return Ok((labels, after)),
            other => return Err(format!("{other:?} after a label")),
        }
    }
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        _ if value.contains(['i', 'n', ' ', '_']) => return Err(format!("value {value:?}")),
        _ => value.parse().map_err(|e| format!("value {value:?}: {e}"))?,
    };
    if !is_name(name) {
        Err(format!("name {name:?}"))
    } else {
        Ok(Sample { name: name.into(), labels, value })
    }
}

/// Reads a whole text. Each family must be in one piece: HELP, TYPE, then its samples, each with other
/// labels.
pub fn read(text: &str) -> Result<BTreeMap<String, Family>, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    let (mut families, mut current, mut seen) =
        (BTreeMap::<String, Family>::new(), String::new(), BTreeSet::new());
    let mut helped = None;
    for line in text.split_terminator('\n') {
        let wrong = |why: String| format!("{why}, in {line:?}");
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').ok_or_else(|| wrong("no help".into()))?;
            if families.contains_key(name) || helped.replace(name.to_owned()).is_some() {
                return Err(wrong("HELP of a family that has begun".into()));
            }
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').ok_or_else(|| wrong("no type".into()))?;
            if helped.take().as_deref() != Some(name) || !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(wrong("TYPE without HELP before it, or an unknown one".into()));
            }
            current = name.to_owned();
            families.insert(name.to_owned(), Family { kind: kind.into(), samples: Vec::new() });
        } else {
            let sample = sample(line).map_err(wrong)?;
            if family_of(&sample.name, &families) != current || helped.is_some() {
                return Err(wrong(format!("a sample in the family {current:?}")));
            }
            let mut key = sample.labels.clone();
            key.sort();
            if !seen.insert((sample.name.clone(), key)) {
                return Err(wrong("a sample twice".into()));
            }
            let family = families.entry(current.clone()).or_default();
            if family.kind == "counter"
                && (!current.ends_with("_total") || sample.value.is_nan() || sample.value < 0.0)
            {
                return Err(wrong("a counter's name or value".into()));
            }
            family.samples.push(sample);
        }
    }
    match families.iter().find(|(_, family)| family.samples.is_empty()) {
        Some((name, _)) => Err(format!("{name} has no samples")),
        None => Ok(families),
    }
}

#[test]
fn what_a_scraper_would_refuse_is_refused() {
    let head = "# HELP a_total x\n# TYPE a_total counter\n";
    assert_eq!(read(&format!("{head}a_total{{b=\"\\\\\\\"\\n\"}} 1\n")).unwrap()["a_total"].samples.len(), 1);
    let samples = [
        "a_total 1", // without an end
        "a_total{b=\"x\"} 1\na_total{b=\"x\"} 1\n",
        "a_total{b=\"x\"y\"} 1\n",
        "a_total{b=\"x\ny\"} 1\n",
        "a_total{b=\"\\x\"} 1\n",
        "a_total{b-c=\"x\"} 1\n",
        "a_total{b=\"x\",b=\"y\"} 1\n",
        "a_total NaN\n",
        "a_total inf\n",
        "a_total -1\n",
        "b_total 1\n",
        "a_total 1\n# HELP b_total x\n# TYPE b_total counter\nb_total 1\na_total{b=\"c\"} 1\n",
        "a_total 1\n# HELP a_total x\n# TYPE a_total counter\na_total{b=\"c\"} 1\n",
        "# TYPE b_total counter\nb_total 1\n",
        "",
    ];
    for text in samples {
        assert!(read(&format!("{head}{text}")).is_err(), "{text}");
    }
}
