//! The widths of a parity filter: size and false-positive rate.

/// The most levels of a filter.
pub const MAX_LEVELS: usize = 7;

/// The number of lines in each level, first level first; 0 for levels that do not exist.
pub type Levels = [u32; MAX_LEVELS];

/// How many bits a filter spends on a key. The false-positive rate of width n is below 2^−n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 7 lanes of 72 rows: about 7.7 bits per key, 0.6 %.
    Seven,
    /// 8 lanes of 63 rows: about 8.8 bits per key, 0.28 %.
    Eight,
    /// 9 lanes of 56 rows: about 10.1 bits per key, 0.13 %.
    Nine,
    /// 10 lanes of 50 rows: about 11.4 bits per key, 0.057 %.
    Ten,
    /// 11 lanes of 45 rows: about 12.8 bits per key, 0.025 %.
    Eleven,
    /// 12 lanes of 42 rows: about 13.8 bits per key, 0.013 %.
    Twelve,
    /// 16 lanes of 31 rows: about 19.5 bits per key, 0.0006 %.
    Sixteen,
}

impl Width {
    /// All widths, narrow to wide.
    pub const ALL: [Width; 7] =
        [Width::Seven, Width::Eight, Width::Nine, Width::Ten, Width::Eleven, Width::Twelve, Width::Sixteen];

    /// The number in the name.
    pub const fn number(self) -> u32 {
        match self {
            Width::Seven => 7,
            Width::Eight => 8,
            Width::Nine => 9,
            Width::Ten => 10,
            Width::Eleven => 11,
            Width::Twelve => 12,
            Width::Sixteen => 16,
        }
    }

    /// The width with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Width> {
        Width::ALL.into_iter().find(|width| width.number() == number)
    }

    /// Bits per key of a large filter, including all levels.
    pub fn bits_per_key(self) -> f64 {
        match self {
            Width::Seven => 7.68,
            Width::Eight => 8.85,
            Width::Nine => 10.08,
            Width::Ten => 11.39,
            Width::Eleven => 12.77,
            Width::Twelve => 13.75,
            Width::Sixteen => 19.45,
        }
    }

    /// The false-positive rate of a large filter, 0 to 1. With a few hundred keys it is up to half as much
    /// again, if their lines happen to be full;
    /// [`BuiltFilter::expected_fpr`](crate::BuiltFilter::expected_fpr) has the exact rate.
    pub fn fpr(self) -> f64 {
        match self {
            Width::Seven => 0.005_955,
            Width::Eight => 0.002_783,
            Width::Nine => 0.001_281,
            Width::Ten => 0.000_569_6,
            Width::Eleven => 0.000_249_3,
            Width::Twelve => 0.000_127_5,
            Width::Sixteen => 0.000_005_78,
        }
    }

    /// Number of lines in all levels of a filter for this many keys, with this many keys per line on average.
    /// Real filters have a few lines more or less, because their hashes decide how many keys a level bumps.
    pub fn expected_lines(self, keys: u64, keys_per_line: f64) -> u64 {
        let roomier = (self.keys_per_line() / keys_per_line - 1.0).max(0.0);
        let (bumped, decay) = self.bumped();
        let bumped = bumped * (-decay * roomier).exp();
        let (mut keys, mut lines) = (keys as f64, (keys as f64 / keys_per_line).ceil().max(1.0));
        for _ in 1..MAX_LEVELS {
            keys *= bumped;
            if keys < 0.5 {
                break;
            }
            lines += (keys / keys_per_line).ceil();
        }
        lines as u64
    }

    /// The share of keys that a level bumps, and by what power of e it falls when lines have twice the room,
    /// as the tests measure.
    fn bumped(self) -> (f64, f64) {
        match self {
            Width::Seven => (0.0476, 11.2),
            Width::Eight => (0.0506, 9.8),
            Width::Nine => (0.0510, 9.8),
            Width::Ten => (0.0532, 8.8),
            Width::Eleven => (0.0570, 8.4),
            Width::Twelve => (0.0581, 7.9),
            Width::Sixteen => (0.0600, 6.5),
        }
    }

    /// λ: the average number of keys per line.
    pub fn keys_per_line(self) -> f64 {
        match self {
            Width::Seven => 70.0,
            Width::Eight => 61.0,
            Width::Nine => 53.5,
            Width::Ten => 47.5,
            Width::Eleven => 42.5,
            Width::Twelve => 39.5,
            Width::Sixteen => 28.0,
        }
    }
}
