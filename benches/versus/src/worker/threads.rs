//! Calls from several threads: a writer and a reader, or many threads with the same workload.

use super::runner::TaskRunner;
use crate::error::Result;
use crate::keys::{KeyPresence, SplitMix64};
use crate::measure::{CallCpu, CallDriver, CallTiming, latency_histogram};
use crate::workload::CallGenerator;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

impl TaskRunner {
    /// Makes the calls in the workload's threads, which begin together. Each has its own random keys. The
    /// mean is the time of all threads divided by all calls, so it includes generating and checking them, a
    /// few percent of a call. Of calls that return many rows, it would be up to half: there, the time counts
    /// that has the calls' share of the CPU time.
    pub fn on_threads(&self, driver: &CallDriver<'_>, calls: u64) -> Result<CallTiming> {
        let (threads, loaded) = (self.workload.threads, self.task.settings.num);
        let calls = (calls / threads).max(1);
        let begin = Barrier::new(threads as usize);
        let work = |thread: u64| -> Result<(Instant, Instant, CallTiming)> {
            let seed = self.seed() ^ (thread + 1) << 56;
            let mut generator = self.generator(self.workload.kind, loaded, seed);
            begin.wait();
            let began = Instant::now();
            let timing = driver.run(&mut generator, calls)?;
            let ended = Instant::now();
            self.check_written(driver, &generator)?;
            Ok((began, ended, timing))
        };
        let work = &work;
        let results = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
            running.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        let mut latencies = latency_histogram()?;
        let (mut span, mut user_bytes, mut cpu) = (None::<(Instant, Instant)>, 0, CallCpu::default());
        for result in results {
            let (began, ended, timing) = result.map_err(|_| "a thread panicked")??;
            latencies.add(&timing.latencies)?;
            user_bytes += timing.user_bytes;
            cpu.add(timing.cpu);
            span = Some(span.map_or((began, ended), |(first, last)| (first.min(began), last.max(ended))));
        }
        let elapsed = span.map_or(Duration::ZERO, |(first, last)| last - first);
        let calls = calls * threads;
        let mean_ns = elapsed.as_nanos() as f64 * cpu.share_of_calls() / calls as f64;
        Ok(CallTiming { calls, mean_ns, latencies, keys_per_call: 1, user_bytes, cpu })
    }

    /// Makes the calls while another thread overwrites at the rate in the settings.
    pub fn with_writer(
        &self,
        driver: &CallDriver<'_>,
        generator: &mut CallGenerator<'_>,
        calls: u64,
    ) -> Result<(CallTiming, Option<f64>)> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.write_until(driver, &done));
            let timing = driver.run(generator, calls);
            done.store(true, Relaxed);
            let rate = writer.join().map_err(|_| "the writer thread panicked")??;
            Ok((timing?, Some(rate)))
        })
    }

    fn write_until(&self, driver: &CallDriver<'_>, done: &AtomicBool) -> Result<f64> {
        let mut rng = SplitMix64::new(self.task.generation ^ 0x7772_6974_6572);
        let pause = Duration::from_nanos(1_000_000_000 / self.task.settings.put_rate);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (begin, mut puts) = (Instant::now(), 0u32);
        while !done.load(Relaxed) {
            let index = rng.below(self.task.settings.num);
            self.keys.write(self.keys.rank(index, KeyPresence::Present), KeyPresence::Present, &mut key);
            self.values.write(index, self.task.generation, &mut value);
            driver.engine.put(&key, &value)?;
            puts += 1;
            std::thread::sleep((pause * puts).saturating_sub(begin.elapsed()));
        }
        Ok(f64::from(puts) / begin.elapsed().as_secs_f64())
    }
}
