//! Where a segment is: in a level, or in quarantine.

/// Number of levels of a store. Level 0 holds flushed memtables in the order of flushing, every other level
/// one sorted run.
pub const LEVELS: usize = 7;

/// Where a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this level, 0 to 6.
    Level(u8),
    /// In no level: it could not be read in full.
    Quarantine(Quarantine),
}

/// Where a quarantined segment belongs in the order of ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quarantine {
    /// The level that the segment left.
    pub left: u8,
    /// The deepest level that newer entries of its key range may have reached; `left` if none went deeper.
    pub overtaken: u8,
}

impl Place {
    /// Its level; `None` in quarantine.
    pub fn level(self) -> Option<u8> {
        match self {
            Place::Level(level) => Some(level),
            Place::Quarantine(_) => None,
        }
    }

    /// Its level, or the one that it left for quarantine.
    pub fn last_level(self) -> u8 {
        match self {
            Place::Level(level) => level,
            Place::Quarantine(quarantine) => quarantine.left,
        }
    }

    /// What is known about its time in quarantine; `None` in a level.
    pub fn quarantine(self) -> Option<Quarantine> {
        match self {
            Place::Level(_) => None,
            Place::Quarantine(quarantine) => Some(quarantine),
        }
    }

    /// Whether a store has such a place.
    pub fn exists(self) -> bool {
        match self {
            Place::Level(level) => usize::from(level) < LEVELS,
            Place::Quarantine(Quarantine { left, overtaken }) => {
                left <= overtaken && usize::from(overtaken) < LEVELS
            }
        }
    }
}
