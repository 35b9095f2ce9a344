//! The options of `BF.INSERT` and `CF.INSERT`, which describe a filter to be created.

use super::numbers::{integer, rate};
use crate::filters::{Bloom, Cuckoo, Parameters};

/// What an insertion does if there is no such filter, and where its items begin.
#[derive(Clone, Copy)]
pub struct InsertOptions {
    pub creates: bool,
    pub parameters: Parameters,
    /// The argument that is the first item; number 0 is the command's name.
    pub items_at: usize,
}

impl InsertOptions {
    /// Parses `NAME [CAPACITY n] [ERROR rate] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item …` (a cuckoo
    /// filter has CAPACITY and NOCREATE only), starting from defaults. Returns RedisBloom's error. `word`
    /// gives the arguments.
    pub fn parse<'a>(
        defaults: InsertOptions,
        word: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Result<InsertOptions, &'static str> {
        const NO_ITEMS: &str = "ERR wrong number of arguments: ITEMS and at least one item are missing";
        let mut options = Options::of(&defaults.parameters);
        let (mut at, mut creates) = (2, defaults.creates);
        loop {
            let option = word(at).ok_or(NO_ITEMS)?.to_ascii_uppercase();
            let value = word(at + 1);
            at += match (option.as_slice(), options.is_bloom) {
                (b"ITEMS", _) => break,
                (b"NOCREATE", _) => {
                    creates = false;
                    1
                }
                (b"NONSCALING", true) => {
                    options.is_fixed = true;
                    1
                }
                (b"CAPACITY", _) => {
                    options.capacity = value.and_then(integer).ok_or("ERR Bad capacity")?;
                    2
                }
                (b"EXPANSION", true) => {
                    options.expansion = Some(value.and_then(integer).ok_or("ERR Bad expansion")?);
                    2
                }
                (b"ERROR", true) => {
                    options.error_rate = value.and_then(rate).ok_or("ERR Bad error rate")?;
                    2
                }
                _ => return Err("ERR Unknown argument received"),
            };
        }
        word(at + 1).ok_or(NO_ITEMS)?;
        Ok(InsertOptions { creates, parameters: options.parameters(&defaults.parameters)?, items_at: at + 1 })
    }
}

/// The options as given.
struct Options {
    is_bloom: bool,
    error_rate: f64,
    capacity: i64,
    expansion: Option<i64>,
    is_fixed: bool,
}

impl Options {
    fn of(defaults: &Parameters) -> Self {
        let (is_bloom, error_rate, capacity) = match defaults {
            Parameters::Bloom(bloom) => (true, bloom.error_rate(), bloom.first_capacity()),
            Parameters::Cuckoo(cuckoo) => (false, 0.5, cuckoo.capacity()),
        };
        Options { is_bloom, error_rate, capacity: capacity as i64, expansion: None, is_fixed: false }
    }

    fn parameters(&self, defaults: &Parameters) -> Result<Parameters, &'static str> {
        let capacity = u64::try_from(self.capacity).map_err(|_| "ERR Bad capacity")?;
        match defaults {
            Parameters::Bloom(bloom) => {
                let expansion = match self.expansion {
                    _ if self.is_fixed => None,
                    None => bloom.expansion(),
                    Some(0) => None,
                    Some(expansion) => Some(u32::try_from(expansion).map_err(|_| "ERR Bad expansion")?),
                };
                if !(self.error_rate > 0.0 && self.error_rate < 1.0) {
                    return Err("ERR Bad error rate");
                }
                if expansion.is_some_and(|expansion| expansion > Bloom::EXPANSION_MAX) {
                    return Err("ERR Bad expansion");
                }
                Bloom::new(self.error_rate, capacity, expansion)
                    .map(Parameters::Bloom)
                    .ok_or("ERR Bad capacity")
            }
            Parameters::Cuckoo(cuckoo) => {
                let (bucket_size, expansion) = (cuckoo.bucket_size(), cuckoo.expansion());
                Cuckoo::new(capacity, bucket_size, cuckoo.max_iterations(), expansion)
                    .map(Parameters::Cuckoo)
                    .map_err(|_| "ERR Capacity must be in the range [cf-bucket-size * 2, 1073741824]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(is_bloom: bool, words: &str) -> Result<InsertOptions, &'static str> {
        let words: Vec<&str> = words.split(' ').collect();
        let parameters = if is_bloom {
            Parameters::Bloom(Bloom::default())
        } else {
            Parameters::Cuckoo(Cuckoo::default())
        };
        let defaults = InsertOptions { creates: true, parameters, items_at: 2 };
        InsertOptions::parse(defaults, |n| words.get(n).map(|word| word.as_bytes()))
    }

    #[test]
    fn options_describe_the_filter_to_be_created() {
        let found = parse(true, "BF.INSERT f error 0.001 CAPACITY 50000 EXPANSION 3 ITEMS a b").unwrap();
        let expected = Parameters::Bloom(Bloom::new(0.001, 50_000, Some(3)).unwrap());
        assert!(found.creates && found.parameters == expected && found.items_at == 9);
        let found = parse(true, "BF.INSERT f NOCREATE NONSCALING ITEMS ITEMS").unwrap();
        assert!(!found.creates && found.items_at == 5);
        assert_eq!(found.parameters, Parameters::Bloom(Bloom::new(0.01, 100, None).unwrap()));
        let found = parse(true, "BF.INSERT f EXPANSION 2 NONSCALING ITEMS a").unwrap();
        assert_eq!(
            found.parameters,
            Parameters::Bloom(Bloom::new(0.01, 100, None).unwrap()),
            "as in RedisBloom"
        );
        let found = parse(false, "CF.INSERT f CAPACITY 4 ITEMS a").unwrap();
        assert_eq!(found.parameters, Parameters::Cuckoo(Cuckoo::new(4, 2, 20, 1).unwrap()));
    }

    #[test]
    fn wrong_options_are_refused() {
        for (is_bloom, words, error) in [
            (true, "BF.INSERT f NOCREATE ITEMS", "ITEMS and at least one item"),
            (true, "BF.INSERT f a", "Unknown argument"),
            (true, "BF.INSERT f CAPACITY", "Bad capacity"),
            (true, "BF.INSERT f CAPACITY 0.3 ITEMS a", "Bad capacity"),
            (true, "BF.INSERT f CAPACITY 0 ITEMS a", "Bad capacity"),
            (true, "BF.INSERT f ERROR big ITEMS a", "Bad error rate"),
            (true, "BF.INSERT f ERROR 1 ITEMS a", "Bad error rate"),
            (true, "BF.INSERT f EXPANSION -1 ITEMS a", "Bad expansion"),
            (true, "BF.INSERT f EXPANSION 40000 ITEMS a", "Bad expansion"),
            (false, "CF.INSERT f CAPACITY 3 ITEMS a", "Capacity must be"),
            (false, "CF.INSERT f CAPACITY -1 ITEMS a", "Bad capacity"),
            (false, "CF.INSERT f ERROR 0.1 ITEMS a", "Unknown argument"),
        ] {
            let found = parse(is_bloom, words).err();
            assert!(found.is_some_and(|found| found.contains(error)), "{words}: {found:?}");
        }
    }
}
