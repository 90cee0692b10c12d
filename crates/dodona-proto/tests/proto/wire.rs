use dodona_proto::{DoneStatus, ErrorCode, HubStreamItem, ItemBody, PluginPath, StreamId};
use serde_json::json;

fn item(body: ItemBody) -> HubStreamItem {
    let path: PluginPath = "agent.vault".parse().expect("a path");
    let call_id = StreamId::random().root_call().child(3).expect("shallow");
    HubStreamItem {
        call_id,
        seq: 7,
        plugin_path: path,
        body,
    }
}

#[test]
fn items_are_flat_objects_and_read_back() {
    let bodies = [
        (
            ItemBody::Progress {
                message: "reading".into(),
                percentage: Some(40.0),
            },
            json!({"message": "reading", "percentage": 40.0}),
        ),
        (
            ItemBody::Progress {
                message: "reading".into(),
                percentage: None,
            },
            json!({"message": "reading", "percentage": null}),
        ),
        (
            ItemBody::Data {
                content_type: "Tick".into(),
                data: json!({"n": 1}),
            },
            json!({"content_type": "Tick", "data": {"n": 1}}),
        ),
        (
            ItemBody::Error {
                error: "no".into(),
                code: ErrorCode::Denied,
                recoverable: true,
                hint: None,
            },
            json!({"error": "no", "code": "policy.denied", "recoverable": true}),
        ),
        (
            ItemBody::Error {
                error: "no".into(),
                code: ErrorCode::Denied,
                recoverable: false,
                hint: Some("ask nicely".into()),
            },
            json!({"error": "no", "code": "policy.denied", "recoverable": false, "hint": "ask nicely"}),
        ),
        (
            ItemBody::Done {
                status: DoneStatus::Limited,
                reason: None,
            },
            json!({"status": "limited", "reason": null}),
        ),
    ];
    for (body, expected) in bodies {
        let item = item(body);
        let mut wire = serde_json::to_value(&item).expect("serialises");
        assert_eq!(
            serde_json::from_value::<HubStreamItem>(wire.clone()).expect("parses"),
            item
        );
        let fields = wire.as_object_mut().expect("an object");
        assert_eq!(
            fields.remove("call_id"),
            Some(json!(item.call_id.to_string()))
        );
        assert_eq!(fields.remove("seq"), Some(json!(7)));
        assert_eq!(fields.remove("plugin_path"), Some(json!("agent.vault")));
        assert_eq!(wire, expected);
    }
}
