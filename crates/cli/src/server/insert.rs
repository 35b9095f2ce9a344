//! The options of `BF.INSERT` and `CF.INSERT` describe a filter to be created. Here the filter exists and
//! grows by itself, so the options are checked but have no effect.

/// Where the items begin in `NAME [CAPACITY n] [ERROR rate] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item
/// …` (a cuckoo filter has CAPACITY and NOCREATE only), or what is wrong. `word` gives the arguments; number
/// 0 is the command's name.
pub fn items_at<'a>(is_bloom: bool, word: impl Fn(usize) -> Option<&'a [u8]>) -> Result<usize, &'static str> {
    const NO_ITEMS: &str = "ERR wrong number of arguments: ITEMS and at least one item are missing";
    let number = |n: usize| std::str::from_utf8(word(n)?).ok()?.parse::<u64>().ok();
    let rate = |n: usize| std::str::from_utf8(word(n)?).ok()?.parse::<f64>().ok();
    let (mut at, mut expands, mut is_fixed) = (2, false, false);
    loop {
        let option = word(at).ok_or(NO_ITEMS)?.to_ascii_uppercase();
        at += match (option.as_slice(), is_bloom) {
            (b"ITEMS", _) => break,
            (b"NOCREATE", _) => 1,
            (b"NONSCALING", true) => {
                is_fixed = true;
                1
            }
            (b"CAPACITY", _) => match number(at + 1) {
                Some(1..) => 2,
                _ => return Err("ERR Bad capacity"),
            },
            (b"EXPANSION", true) => match number(at + 1) {
                Some(0..=32_768) => {
                    expands = true;
                    2
                }
                _ => return Err("ERR bad expansion"),
            },
            (b"ERROR", true) => match rate(at + 1) {
                Some(rate) if rate > 0.0 && rate < 1.0 => 2,
                _ => return Err("ERR Bad error rate"),
            },
            _ => return Err("ERR Unknown argument received"),
        };
    }
    match word(at + 1) {
        None => Err(NO_ITEMS),
        Some(_) if is_fixed && expands => Err("ERR Nonscaling filters cannot expand"),
        Some(_) => Ok(at + 1),
    }
}
