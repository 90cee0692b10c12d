//! The one line at the bottom of a terminal that tells what is going on.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::layout;
use crate::paint::{Paint, one_line};

/// How often it moves.
const TICK: Duration = Duration::from_millis(100);

/// How often it is drawn at most.
const HERTZ: u8 = 20;

/// What a terminal shows of a Ctrl-C, `^C`, and one more.
const CTRL_C: usize = 3;

/// The line. Where standard error is not a terminal there is none.
pub(crate) struct Live(Option<ProgressBar>);

impl Live {
    /// A line that is not there.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A line, if there is a terminal to show it.
    pub(crate) fn start() -> Self {
        let stderr = io::stderr();
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
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(AlmostFull), HERTZ);
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style);
        Self(Some(bar))
    }

    /// Tells what is being waited for.
    pub(crate) fn waiting(&self, what: &str) {
        self.say(what.to_owned());
    }

    /// Tells what a call says about its progress.
    pub(crate) fn progress(&self, path: &str, message: &str, percentage: Option<f32>) {
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
    pub(crate) fn aside<R>(&self, write: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
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

/// The terminal of standard error without its last columns. The line fills what there is, and a
/// `^C` after it would begin another line, from where this one could not be removed.
#[derive(Debug)]
struct AlmostFull;

impl AlmostFull {
    fn write(text: &str) -> io::Result<()> {
        io::stderr().lock().write_all(text.as_bytes())
    }

    /// Moves the cursor, or does not: zero would count as one.
    fn go(n: usize, direction: char) -> io::Result<()> {
        match n {
            0 => Ok(()),
            n => Self::write(&format!("\u{1b}[{n}{direction}")),
        }
    }
}

impl TermLike for AlmostFull {
    fn width(&self) -> u16 {
        let columns = layout::width(&io::stderr()).unwrap_or(80);
        u16::try_from(columns.saturating_sub(CTRL_C)).unwrap_or(u16::MAX)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        Self::go(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        Self::go(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        Self::go(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        Self::go(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        Self::write(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        Self::write(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        Self::write("\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
