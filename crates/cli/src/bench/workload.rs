//! The workloads, by name.

use super::drive::{Driver, KEYS_PER_CALL, WorkloadResult};
use super::{reads, writes, ycsb};
use crate::context::Failure;

/// Workloads under db_bench's and YCSB's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Write all keys in order
    #[value(name = "fillseq")]
    FillSeq,
    /// Write all keys in random order
    #[value(name = "fillrandom")]
    FillRandom,
    /// Overwrite present keys, in random order
    #[value(name = "overwrite")]
    Overwrite,
    /// Get present keys
    #[value(name = "readrandom")]
    ReadRandom,
    /// Get absent keys, of the same length as present keys and between them
    #[value(name = "readmissing")]
    ReadMissing,
    /// Get present keys, 16 per call
    #[value(name = "multireadrandom")]
    MultiReadRandom,
    /// Get present keys while another thread overwrites nonstop
    #[value(name = "readwhilewriting")]
    ReadWhileWriting,
    /// Seek to a random key and read one row
    #[value(name = "seekrandom")]
    SeekRandom,
    /// Read all rows in order
    #[value(name = "scan", alias = "readseq")]
    Scan,
    /// 50 % get, 50 % put, Zipfian
    #[value(name = "ycsb-a")]
    YcsbA,
    /// 95 % get, 5 % put, Zipfian
    #[value(name = "ycsb-b")]
    YcsbB,
    /// Get, Zipfian
    #[value(name = "ycsb-c")]
    YcsbC,
    /// Like C, with 50 % absent keys
    #[value(name = "ycsb-c-miss50")]
    YcsbCMiss50,
    /// Like C, with 90 % absent keys
    #[value(name = "ycsb-c-miss90")]
    YcsbCMiss90,
    /// Like C, with absent keys only
    #[value(name = "ycsb-c-miss100")]
    YcsbCMiss100,
    /// 95 % get of the latest inserts, 5 % insert
    #[value(name = "ycsb-d")]
    YcsbD,
    /// 95 % scan of 1 to 100 rows, 5 % insert
    #[value(name = "ycsb-e")]
    YcsbE,
    /// 50 % get, 50 % get and put back, Zipfian
    #[value(name = "ycsb-f")]
    YcsbF,
}

/// The size of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// Operations of a workload other than a fill.
    pub reads: u64,
    /// Puts per write of a fill.
    pub batch: u64,
}

impl Workload {
    /// The name on the command line.
    pub fn name(self) -> String {
        use clap::ValueEnum;
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Whether it loads the store.
    pub fn is_fill(self) -> bool {
        matches!(self, Workload::FillSeq | Workload::FillRandom)
    }

    /// Whether it writes, so that compactions may follow it.
    pub fn writes(self) -> bool {
        use Workload::*;
        self.is_fill() || matches!(self, Overwrite | ReadWhileWriting | YcsbA | YcsbB | YcsbD | YcsbE | YcsbF)
    }

    /// Calls that the driver will make.
    pub fn calls(self, num: u64, amount: Amount) -> u64 {
        match self {
            Workload::FillSeq | Workload::FillRandom | Workload::Overwrite => num.div_ceil(amount.batch),
            Workload::MultiReadRandom => amount.reads.div_ceil(KEYS_PER_CALL as u64),
            Workload::Scan => 1,
            _ => amount.reads,
        }
    }

    /// Runs it.
    pub fn run(self, driver: &Driver<'_>, amount: Amount) -> Result<WorkloadResult, Failure> {
        let calls = self.calls(driver.keys.num(), amount);
        match self {
            Workload::FillSeq => writes::in_order(driver, calls, amount.batch),
            Workload::FillRandom | Workload::Overwrite => writes::shuffled(driver, calls, amount.batch),
            Workload::ReadRandom => reads::present(driver, calls),
            Workload::ReadMissing => reads::absent(driver, calls),
            Workload::MultiReadRandom => reads::many(driver, calls),
            Workload::ReadWhileWriting => reads::while_writing(driver, calls),
            Workload::SeekRandom => reads::seek(driver, calls),
            Workload::Scan => reads::scan(driver),
            Workload::YcsbA => ycsb::read_or_update(driver, calls, 50),
            Workload::YcsbB => ycsb::read_or_update(driver, calls, 5),
            Workload::YcsbC => ycsb::read(driver, calls, 0),
            Workload::YcsbCMiss50 => ycsb::read(driver, calls, 50),
            Workload::YcsbCMiss90 => ycsb::read(driver, calls, 90),
            Workload::YcsbCMiss100 => ycsb::read(driver, calls, 100),
            Workload::YcsbD => ycsb::read_latest(driver, calls),
            Workload::YcsbE => ycsb::short_scans(driver, calls),
            Workload::YcsbF => ycsb::read_modify_write(driver, calls),
        }
    }
}
