//! The one line at the bottom of a terminal that tells what is going on.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::paint::{Paint, one_line};

/// How often it moves.
const TICK: Duration = Duration::from_millis(100);

/// The line. Where standard error is not a terminal there is none.
pub(super) struct Live(Option<ProgressBar>);

impl Live {
    /// A line that is not there.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// A line, if there is a terminal to show it.
    pub(super) fn start() -> Self {
        let stderr = std::io::stderr();
        if !stderr.is_terminal() {
            return Self::none();
        }
        let template = if Paint::of(&stderr).colours() {
            "{spinner:.cyan} {wide_msg} {elapsed:.dim}"
        } else {
            "{spinner} {wide_msg} {elapsed}"
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(20));
        bar.set_style(style);
        Self(Some(bar))
    }

    /// Tells what is being waited for.
    pub(super) fn waiting(&self, what: &str) {
        self.say(what.to_owned());
    }

    /// Tells what a call says about its progress.
    pub(super) fn progress(&self, path: &str, message: &str, percentage: Option<f32>) {
        let share = percentage.map(|share| format!("{share:.0} % "));
        let message = one_line(message);
        self.say(format!("{path}  {}{message}", share.unwrap_or_default()));
    }

    fn say(&self, message: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(message);
            bar.enable_steady_tick(TICK);
        }
    }

    /// Writes something else while the line is out of the way.
    pub(super) fn aside<R>(&self, write: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the line.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}
