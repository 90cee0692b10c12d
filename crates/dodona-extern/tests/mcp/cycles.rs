//! Mounting and unmounting without end.

use serde_json::json;

use crate::support::{hub, mount, small, text, until};

/// How often.
const CYCLES: usize = 500;

/// After so many the measure is taken: what is made once has been made then.
const WARM: usize = 50;

/// The processes below this one, those included that have ended and were not waited for.
fn children() -> usize {
    let me = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mine = entries.filter(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        rest.is_some_and(|rest| rest.split(' ').nth(1) == Some(&me))
    });
    mine.count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How much memory is in use, in kilobytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn five_hundred_cycles_leave_no_process_descriptor_or_memory() {
    let name = "cycles::five_hundred_cycles_leave_no_process_descriptor_or_memory";
    if !dodona_testkit::is_alone(name) {
        return;
    }
    let hub = hub().await;
    let (mut fds, mut kilobytes) = (0, 0);
    for cycle in 0..CYCLES {
        mount(&hub, &[("small", &small(), "")]).await;
        assert_eq!(text(&hub, "small.say", json!({"text": "x"})).await, "x");
        mount(&hub, &[]).await;
        if cycle == WARM {
            until("the end of the processes", || children() == 0).await;
            (fds, kilobytes) = (descriptors(), memory());
        }
    }
    until("the end of the processes", || children() == 0).await;
    until("the end of the pipes", || descriptors() <= fds + 2).await;
    // Allocators keep what they were given; what would leak with each cycle would be more.
    let grown = memory().saturating_sub(kilobytes);
    assert!(
        grown < 16 * 1024,
        "{grown} kB more than after {WARM} cycles"
    );
    hub.stop().await;
}
