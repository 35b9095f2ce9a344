//! Whether the machine was quiet: how busy processes other than this program and its workers kept the CPUs.

use crate::format::number;
use std::fs;
use std::time::{Duration, Instant};

/// Other processes disturb a measurement if they keep more CPUs busy than this.
pub const DISTURBING: f64 = 0.25;
/// The kernel counts in ticks of ten milliseconds, so a shorter window says nothing.
const WINDOW_MIN: Duration = Duration::from_millis(200);

/// The kernel's CPU times at one moment.
#[derive(Debug, Clone, Copy)]
pub struct CpuSample {
    at: Instant,
    /// Busy ticks of all CPUs, including those that the hypervisor gave to other machines (steal).
    busy: u64,
    /// Ticks of this process and of its terminated children.
    own: u64,
}

impl CpuSample {
    /// The CPU times now.
    pub fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (busy, own) =
            (busy_ticks(&text("/proc/stat")).unwrap_or(0), own_ticks(&text("/proc/self/stat")).unwrap_or(0));
        CpuSample { at: Instant::now(), busy, own }
    }

    /// CPUs that other processes kept busy since `before`, on average; `None` if `before` is too recent.
    pub fn others_since(&self, before: &CpuSample) -> Option<f64> {
        let window = self.at - before.at;
        let ticks = self.busy.saturating_sub(before.busy).saturating_sub(self.own.saturating_sub(before.own));
        let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        (window >= WINDOW_MIN).then(|| seconds / window.as_secs_f64())
    }
}

/// CPUs that other processes keep busy, measured over half a second.
fn others_now() -> f64 {
    let before = CpuSample::now();
    std::thread::sleep(Duration::from_millis(500));
    CpuSample::now().others_since(&before).unwrap_or(0.0)
}

/// Warns of a busy machine before the user spends much time.
pub fn warn_of_others() {
    let others = others_now();
    if others > DISTURBING {
        let others = number(others);
        eprintln!(
            "versus: other processes keep {others} CPUs busy: figures will be worse than on a quiet machine"
        );
    }
}

/// A note about the CPUs that other processes kept busy since `begin`, if they did.
pub fn note_of_others(during: &str, begin: &CpuSample) -> Option<String> {
    let others = CpuSample::now().others_since(begin).filter(|others| *others > DISTURBING)?;
    Some(format!("other processes kept {} CPUs busy during {during}", number(others)))
}

/// How much other processes disturbed the measurements, from the CPUs that they kept busy during each; `None`
/// if they hardly did.
pub fn disturbance(others: impl Iterator<Item = f64>) -> Option<String> {
    let others: Vec<f64> = others.collect();
    let disturbed = others.iter().filter(|&&others| others > DISTURBING).count();
    (disturbed > 0).then(|| {
        format!(
            "the machine was not quiet: other processes kept more than {DISTURBING} CPUs busy during {disturbed} of {} measurements, at most {}",
            others.len(),
            number(others.iter().copied().fold(0.0, f64::max))
        )
    })
}

/// The sum of user, nice, system, irq, softirq and steal of all CPUs:
/// <https://docs.kernel.org/filesystems/proc.html>, section 1.7.
fn busy_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |column: usize| ticks.get(column).copied();
    Some(at(0)? + at(1)? + at(2)? + at(5)? + at(6)? + at(7)?)
}

/// The sum of utime, stime, cutime and cstime, columns 14 to 17 in proc_pid_stat(5). Column 2, the name, can
/// contain anything and ends with the last ')'.
fn own_ticks(stat: &str) -> Option<u64> {
    let columns = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).take(4);
    columns.map(|word| word.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lines_are_parsed() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(stat), Some(100 + 20 + 30 + 6 + 7 + 8));
        let own = "42 (a (b) c) S 1 42 42 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0";
        assert_eq!(own_ticks(own), Some(100));
        assert_eq!(own_ticks(""), None);
    }

    #[test]
    fn own_ticks_do_not_count_as_others() {
        let tick = Duration::from_secs(1) / rustix::param::clock_ticks_per_second() as u32;
        let before = CpuSample { at: Instant::now(), busy: 1000, own: 500 };
        let after = CpuSample { at: before.at + 100 * tick, busy: 1150, own: 600 };
        let others = after.others_since(&before);
        if 100 * tick >= WINDOW_MIN {
            assert!((others.unwrap() - 0.5).abs() < 1e-9, "{others:?}");
        }
        assert_eq!(CpuSample { at: before.at + tick, ..after }.others_since(&before), None);
    }

    #[test]
    fn another_busy_process_is_noticed() {
        let before = CpuSample::now();
        let mut other = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(600));
        let others = CpuSample::now().others_since(&before).unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        // The child has terminated, so its ticks are now our own.
        let own = CpuSample::now().own - before.own;
        assert!(others > DISTURBING, "{others}");
        assert!(own > 0);
    }
}
