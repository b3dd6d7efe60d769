//! Progress bars on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar whose length is not known yet.
pub(crate) fn bar(label: &str) -> ProgressBar {
    let bar = ProgressBar::no_length().with_prefix(label.to_owned());
    if let Ok(style) =
        ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}%  {elapsed}, {eta} left  {msg}")
    {
        bar.set_style(style);
    }
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}
