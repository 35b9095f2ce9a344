//! How soon the system lets the server's threads run.

/// Asks for short turns for this thread, and so for those that it starts: whoever takes short turns has them
/// sooner (the `EEVDF` scheduler of Linux, with turns of one's own since 6.12). Answering clients never takes
/// long. Elsewhere, or if it is forbidden, nothing changes.
#[cfg(target_os = "linux")]
pub fn take_short_turns() {
    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
    // SAFETY: a `sched_attr` is integers, of which 0 is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the system writes at most `SIZE` bytes to the structure, which lives during the call.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    if got != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = TURN_NANOS;
    // SAFETY: the system reads `size` bytes of the structure, which the call before has set.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// The default is 1.4 ms with two cores (`se.slice` in `/proc/PID/sched`).
#[cfg(target_os = "linux")]
const TURN_NANOS: u64 = 300_000;

#[cfg(not(target_os = "linux"))]
pub fn take_short_turns() {}
