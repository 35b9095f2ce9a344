//! The widths of a parity filter: lanes, false-positive rate and size.

/// The most levels of a filter.
pub const MAX_LEVELS: usize = 7;

/// The number of lines in each level, first level first; 0 for levels that do not exist.
pub type Levels = [u32; MAX_LEVELS];

/// The number of lanes in a line. This is the number of fingerprint bits, so the false-positive rate is 2^−lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 7 lanes of 72 rows: about 7.7 bits per key, 0.78 %.
    Seven,
    /// 8 lanes of 63 rows: about 8.8 bits per key, 0.39 %.
    Eight,
    /// 9 lanes of 56 rows: about 10.1 bits per key, 0.195 %.
    Nine,
    /// 12 lanes of 42 rows: about 13.7 bits per key, 0.0244 %.
    Twelve,
    /// 16 lanes of 31 rows: about 19.2 bits per key, 0.0015 %.
    Sixteen,
}

impl Width {
    /// All widths, narrow to wide.
    pub const ALL: [Width; 5] = [Width::Seven, Width::Eight, Width::Nine, Width::Twelve, Width::Sixteen];

    /// The number of lanes.
    pub fn lanes(self) -> u32 {
        match self {
            Width::Seven => 7,
            Width::Eight => 8,
            Width::Nine => 9,
            Width::Twelve => 12,
            Width::Sixteen => 16,
        }
    }

    /// The width with this number of lanes, if there is one.
    pub fn from_lanes(lanes: u32) -> Option<Width> {
        Width::ALL.into_iter().find(|width| width.lanes() == lanes)
    }

    /// Bits per key of a large filter, including all levels.
    pub fn bits_per_key(self) -> f64 {
        match self {
            Width::Seven => 7.68,
            Width::Eight => 8.84,
            Width::Nine => 10.07,
            Width::Twelve => 13.74,
            Width::Sixteen => 19.19,
        }
    }

    /// The false-positive rate, 0 to 1.
    pub fn fpr(self) -> f64 {
        0.5f64.powi(self.lanes() as i32)
    }

    /// λ: the average number of keys per line.
    pub(super) fn keys_per_line(self) -> f64 {
        match self {
            Width::Seven => 70.0,
            Width::Eight => 61.0,
            Width::Nine => 53.5,
            Width::Twelve => 39.5,
            Width::Sixteen => 28.5,
        }
    }
}
