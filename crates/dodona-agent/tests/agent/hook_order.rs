//! The order of hook points: the reference page, `HookPoint::ALL` and a real query agree.

use std::path::Path;

use dodona_plugin::hooks::{Hook, Point, point};
use dodona_proto::HookPoint;
use dodona_testkit::model_server::Reply as ModelReply;
use serde_json::json;

use crate::compacting::{fill, small};
use crate::integration::{Seen, calls_echo, set_up};

/// The rows of the first table of `hooks.md`: the point and its kind.
fn documented() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/hooks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("## Points").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| (cells[1].trim_matches('`').to_owned(), cells[2].to_owned()))
        .collect()
}

/// The points in the second table, which says what callbacks are shown there.
fn payload_rows() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/hooks.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("| point | payload | edit |").unwrap();
    let rows = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn the_page_lists_every_point_with_its_kind_in_the_order_of_the_code() {
    let known = HookPoint::ALL.map(|point| {
        let kind = serde_json::to_value(point.kind()).unwrap();
        (point.to_string(), kind.as_str().unwrap().to_owned())
    });
    assert_eq!(documented(), known);
    assert_eq!(
        payload_rows(),
        HookPoint::ALL.map(|point| point.to_string())
    );
}

/// One watcher for each point that an agent fires.
fn watchers(seen: &Seen) -> Vec<Hook> {
    fn watch<P: Point>(seen: &Seen) -> Hook {
        seen.watch::<P>()
    }
    [
        watch::<point::ToolRegistryBuild>,
        watch::<point::SessionResolved>,
        watch::<point::QueryReceived>,
        watch::<point::SystemPromptExtend>,
        watch::<point::PrePreload>,
        watch::<point::PostPreload>,
        watch::<point::PreLlmCall>,
        watch::<point::PreCompact>,
        watch::<point::PostCompact>,
        watch::<point::PostLlmResponse>,
        watch::<point::PreToolExecute>,
        watch::<point::PostToolExecute>,
        watch::<point::TurnCompleted>,
        watch::<point::SessionEnd>,
    ]
    .map(|watch| watch(seen))
    .into()
}

#[tokio::test]
async fn a_query_reaches_the_points_in_the_order_of_the_page() {
    let seen = Seen::default();
    let watched = seen.clone();
    let talk = set_up(move || watchers(&watched), small).await;
    // The window is nearly full, so that the next question compacts the conversation.
    fill(&talk).await;
    seen.clear();
    talk.server.reply(calls_echo());
    talk.server.reply(ModelReply::text("Done."));
    talk.ask("Is that all?").await;
    talk.call("agent.close", json!({})).await.unwrap();
    let mut first = Vec::new();
    for point in seen.points() {
        if !first.contains(&point) {
            first.push(point);
        }
    }
    let documented: Vec<String> = documented().into_iter().map(|(point, _)| point).collect();
    // The server fires the first one, before there is a query.
    assert_eq!(documented[0], "DAEMON_SERVER_REGISTER");
    assert_eq!(first, documented[1..]);
}
