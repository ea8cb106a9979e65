//! The progress bar of whatever takes long and is counted.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts to `length`, where progress is shown.
pub fn bar(shown: bool, length: usize) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{msg}  {pos}/{len}  {wide_bar:.cyan/dim}  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length as u64).with_style(style)
}
