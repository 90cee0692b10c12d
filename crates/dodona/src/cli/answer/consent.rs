//! Asking whoever sits at the terminal whether a call may run.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dodona_hub::Approvers;
use dodona_proto::{ApprovalAnswer, ApprovalId, ApprovalRequest, HubStreamItem, ItemBody};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Screen, Watch};
use crate::cli::approvals::waits;
use crate::failure::Failure;
use crate::paint::{Paint, harmless, one_line};
use crate::shell;

/// The most of the parameters that is shown before a question.
const LONGEST: usize = 2000;

/// Whether there is somebody to ask.
pub(in crate::cli) fn approvers() -> Approvers {
    match io::stdin().is_terminal() && io::stderr().is_terminal() {
        true => Approvers::Available,
        false => Approvers::None,
    }
}

/// What an item asks, if it does.
pub(super) fn requested(item: &HubStreamItem) -> Option<ApprovalRequest> {
    match &item.body {
        ItemBody::Data { content_type, data } if content_type == ApprovalRequest::CONTENT_TYPE => {
            ApprovalRequest::deserialize(data).ok()
        }
        _ => None,
    }
}

/// Whether an item tells that a question has been answered.
fn answers(item: &HubStreamItem, id: ApprovalId) -> bool {
    match &item.body {
        ItemBody::Data { content_type, data } if content_type == ApprovalAnswer::CONTENT_TYPE => {
            ApprovalAnswer::deserialize(data).is_ok_and(|answer| answer.approval_id == id)
        }
        _ => false,
    }
}

/// Asks whoever is there and passes the answer on, or tells how to answer from elsewhere. An
/// answer that comes from elsewhere meanwhile ends it.
pub(super) async fn ask(
    watch: &mut Watch<'_>,
    request: &ApprovalRequest,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let id = request.approval_id;
    let is_answered = |watch: &Watch<'_>| watch.queue.iter().any(|item| answers(item, id));
    if is_answered(watch) {
        return Ok(());
    }
    screen.end();
    if approvers() == Approvers::None {
        tell_how(request);
        screen.say_waiting();
        return Ok(());
    }
    let mut typing = Typing::begin(&question(request, Paint::of(&io::stderr())));
    let yes = loop {
        tokio::select! {
            biased;
            // The query is being stopped, and the question with it.
            () = watch.shell.interrupt.requested() => return Ok(()),
            line = &mut typing.line => break line.is_ok_and(|line| agrees(&line)),
            more = watch.more() => {
                let more = more?;
                if !more || is_answered(watch) {
                    shell::tell("");
                    screen.say_waiting();
                    return Ok(());
                }
            }
        }
    };
    let method = if yes { "hub.approve" } else { "hub.deny" };
    let answered = watch.session.ask::<Value>(method, json!({ "id": id }));
    if let Err(error) = answered.await {
        let note = format!("note: {}", one_line(&error.message));
        shell::tell(&Paint::of(&io::stderr()).dim(note).to_string());
    }
    screen.say_waiting();
    Ok(())
}

fn agrees(line: &str) -> bool {
    ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

/// The question, with what the call would run with: nobody should agree to what they do not see.
fn question(request: &ApprovalRequest, paint: Paint) -> String {
    let ApprovalRequest {
        method,
        plugin,
        message,
        ..
    } = request;
    let message = harmless(message);
    let asks = match plugin {
        Some(plugin) => format!("{plugin} asks: {message}"),
        None => message.into_owned(),
    };
    let params = format!("{:#}", request.params);
    let mut shown: String = params.chars().take(LONGEST).collect();
    if shown.len() < params.len() {
        shown.push_str("\n… (`dodona approvals show` shows all of it)");
    }
    format!(
        "{}\n{}\nAllow `{method}`? [y/N] ",
        paint.bold(asks),
        paint.dim(harmless(&shown))
    )
}

fn tell_how(request: &ApprovalRequest) {
    let ApprovalRequest {
        approval_id,
        method,
        message,
        ..
    } = request;
    shell::tell(&waits(*approval_id, method.as_str(), message));
}

/// A line that somebody is typing. When it is dropped nothing reads the terminal any more, so
/// that what is typed next goes to whoever reads next.
struct Typing {
    stop: Arc<AtomicBool>,
    line: JoinHandle<String>,
}

impl Typing {
    /// Asks, and begins to wait. What was typed before the question is no answer to it.
    fn begin(question: &str) -> Self {
        forget_typed();
        let mut err = io::stderr().lock();
        // A terminal that cannot be written to gives no answer either.
        let _ = err
            .write_all(question.as_bytes())
            .and_then(|()| err.flush());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            if wait_for_line(&stopped) {
                // What cannot be read agrees to nothing.
                let _ = io::stdin().lock().read_line(&mut line);
            }
            line
        });
        Self { stop, line }
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(unix)]
fn forget_typed() {
    // A terminal that is gone has nothing to forget.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_typed() {}

/// Waits until a line can be read; false if nobody wants one any more.
#[cfg(unix)]
fn wait_for_line(stopped: &AtomicBool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    loop {
        let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
        let polled = poll(&mut terminal, Some(&moment));
        if stopped.load(Ordering::Relaxed) {
            return false;
        }
        match polled {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(not(unix))]
fn wait_for_line(stopped: &AtomicBool) -> bool {
    !stopped.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_agrees() {
        for yes in ["y\n", "Y", " yes \r\n", "YES"] {
            assert!(agrees(yes), "{yes:?}");
        }
        for no in ["", "\n", "n", "no", "yep", "yes please"] {
            assert!(!agrees(no), "{no:?}");
        }
    }

    #[test]
    fn a_question_shows_what_would_run_and_steers_no_terminal() {
        let request = ApprovalRequest {
            approval_id: ApprovalId::random(),
            method: "vault.write".parse().unwrap(),
            plugin: Some("guard".parse().unwrap()),
            message: "write\u{1b}[2J it?".to_owned(),
            params: json!({"path": "a.md"}),
        };
        let text = question(&request, Paint::plain());
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.starts_with("guard asks: write"), "{text}");
        assert!(text.contains("\"path\": \"a.md\""), "{text}");
        assert!(text.ends_with("Allow `vault.write`? [y/N] "), "{text}");
    }
}
