//! Makes the calls of a task.

use super::runner::TaskRunner;
use crate::engine::Engine;
use crate::error::Result;
use crate::measure::CallTiming;
use crate::workload::{StoreRole, WorkloadKind};

/// The calls of a task, and their effect on the store.
pub struct MadeCalls {
    /// Their times.
    pub timing: CallTiming,
    /// The rate of the concurrent writer, if there was one.
    pub writer_puts_per_second: Option<f64>,
    /// Keys that they inserted.
    pub inserted: u64,
    /// CPU time that went into making a load's keys and values.
    pub making_cpu_ns: Option<u64>,
}

impl From<CallTiming> for MadeCalls {
    fn from(timing: CallTiming) -> Self {
        MadeCalls { timing, writer_puts_per_second: None, inserted: 0, making_cpu_ns: None }
    }
}

impl TaskRunner {
    /// Makes the calls of the workload.
    pub fn calls(&self, engine: &dyn Engine) -> Result<MadeCalls> {
        let settings = &self.task.settings;
        let driver = self.driver(engine);
        let calls = self.workload.calls(settings);
        // A fill writes one key per call.
        let loaded = if self.workload.store == StoreRole::Fresh { calls } else { settings.num };
        let present = settings.num + self.task.added;
        match self.workload.kind {
            WorkloadKind::Load => {
                let (timing, making_cpu_ns) = self.load(engine)?;
                return Ok(MadeCalls { making_cpu_ns: Some(making_cpu_ns), ..timing.into() });
            }
            WorkloadKind::Scan => return Ok(driver.scan_all(present)?.into()),
            WorkloadKind::ScanKeys => return Ok(driver.scan_all_keys(present)?.into()),
            _ if self.workload.threads > 1 => {
                return Ok(self.on_threads(&driver, calls)?.per_key(self.workload.kind).into());
            }
            _ => {}
        }
        let mut generator = self.generator(self.workload.kind, loaded, self.seed());
        let (timing, writer_puts_per_second) = match self.workload.kind {
            WorkloadKind::GetWhileWriting => self.with_writer(&driver, &mut generator, calls)?,
            _ => (driver.run(&mut generator, calls)?, None),
        };
        self.check_written(&driver, &generator)?;
        let inserted = generator.present() - loaded - self.task.added;
        let timing = timing.per_key(self.workload.kind);
        Ok(MadeCalls { writer_puts_per_second, inserted, ..timing.into() })
    }
}
