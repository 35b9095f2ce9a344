//! Progress on standard error; draws nothing unless that is a terminal.

use crate::human;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use sidebloom::Progress;
use std::fmt::Write;
use std::time::Duration;

/// A bar of `total` units, named `label`.
pub fn bar(label: &str, total: u64) -> ProgressBar {
    styled(label, Some(total), "{msg:26} [{wide_bar}] {human_pos}/{human_len} {rate} {eta}")
}

/// A bar of `total` bytes; without a total (standard input), it counts bytes.
pub fn byte_bar(label: &str, total: Option<u64>) -> ProgressBar {
    match total {
        Some(_) => styled(label, total, "{msg:26} [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
        None => styled(label, None, "{msg:26} {spinner} {bytes} {bytes_per_sec}"),
    }
}

/// A bar of bytes for what the library tells of its progress.
pub fn work_bar(label: &str) -> ProgressBar {
    byte_bar(label, Some(0))
}

/// Shows how far work is in a [`work_bar`].
pub fn show(bar: &ProgressBar, so_far: &Progress) {
    match so_far.bytes_left {
        Some(left) => bar.set_length(so_far.bytes_done.saturating_add(left)),
        None => bar.unset_length(),
    }
    bar.set_position(so_far.bytes_done);
}

/// A counter of an unknown number of units.
pub fn counter(label: &str) -> ProgressBar {
    styled(label, None, "{msg:26} {spinner} {human_pos} {rate}")
}

/// A spinner for work of unknown length.
#[cfg(feature = "remote")]
pub fn spinner(label: &str) -> ProgressBar {
    styled(label, None, "{msg:26} {spinner} {elapsed}")
}

fn styled(label: &str, total: Option<u64>, template: &str) -> ProgressBar {
    // `stderr()` draws only on a terminal.
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let _ = write!(out, "{}/s", human::count(state.per_sec() as u64));
    };
    bar.set_style(style.with_key("rate", rate).progress_chars("█▉▊▋▌▍▎▏ "));
    bar.set_message(label.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
