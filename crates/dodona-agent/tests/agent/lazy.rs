//! Many tools: a model is offered a few, finds the others and calls them through `tools_call`.

use std::sync::Arc;

use dodona_plugin::activation::Activating;
use dodona_plugin::{
    CallCtx, CallError, Contribution, Method, MethodSpec, Plugin, PluginContext, ToolSpec,
};
use dodona_proto::{Approval, DoneStatus, ToolCategory};
use dodona_testkit::model_server::{Reply, SeenRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::talk::{Setup, Talk};

const NOUNS: [&str; 20] = [
    "order",
    "invoice",
    "customer",
    "shipment",
    "refund",
    "coupon",
    "warehouse",
    "supplier",
    "catalogue",
    "review",
    "basket",
    "payment",
    "address",
    "return",
    "voucher",
    "tariff",
    "pallet",
    "carrier",
    "receipt",
    "subscription",
];

const VERBS: [(&str, &str); 10] = [
    ("create", "Creates a new"),
    ("list", "Lists every known"),
    ("read", "Reads the particulars of one"),
    ("update", "Changes the particulars of one"),
    ("close", "Closes an open"),
    ("reopen", "Opens again a closed"),
    ("assign", "Hands to a colleague one"),
    ("export", "Writes into a spreadsheet any"),
    ("archive", "Puts away an old"),
    ("audit", "Tells who has touched one"),
];

/// A shop with two hundred tools.
struct Shop;

#[derive(Deserialize, JsonSchema)]
struct Thing {
    /// The number of the thing in the books of the shop, such as A-1732.
    id: String,
    /// What to note about it in the journal of the shop.
    #[serde(default)]
    remark: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Done {
    did: String,
}

impl Plugin for Shop {
    fn name(&self) -> &'static str {
        "shop"
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        Box::pin(async {
            let mut methods = Vec::new();
            for noun in NOUNS {
                for (verb, does) in VERBS {
                    methods.push(method(noun, verb, does)?);
                }
            }
            Ok(Contribution::new().methods(methods))
        })
    }
}

fn method(noun: &str, verb: &str, does: &str) -> Result<Method, dodona_plugin::ContractError> {
    let name: &'static str = format!("shop.{verb}_{noun}").leak();
    let description =
        format!("{does} {noun} of the shop, by its number, and notes it in the books.");
    let spec = MethodSpec {
        name,
        description: description.leak(),
        scope: Some("shop:use"),
        tool: Some(ToolSpec {
            category: ToolCategory::Meta,
            agents: &["*"],
            approval: Approval::Never,
        }),
        ..MethodSpec::default()
    };
    Method::unary(&spec, move |_ctx: CallCtx, p: Thing| async move {
        let did = format!("{name} {} {}", p.id, p.remark.unwrap_or_default());
        Ok::<_, CallError>(Done { did })
    })
}

async fn talk(limit: usize) -> Talk {
    let setup = Setup {
        plugins: vec![Arc::new(Shop)],
        ..Setup::default()
    };
    Talk::set_up_in(setup, |folder, options| {
        options.tools_limit = limit;
        options.preload = 0;
        options.agents = Some(folder.join("agents"));
    })
    .await
}

fn names(request: &SeenRequest) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn last(request: &SeenRequest) -> &str {
    let messages = request.body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap()
}

/// The names of the tools that a search found.
fn found(text: &str) -> Vec<&str> {
    let starts = text.split("\n\n").skip(1);
    starts.map(|tool| tool.split_once(':').unwrap().0).collect()
}

fn search(query: &str, limit: usize) -> Reply {
    let arguments = json!({ "query": query, "limit": limit }).to_string();
    Reply::stream().tool_call("s", "tools_search", &[&arguments])
}

#[tokio::test]
async fn what_is_found_is_called_as_itself_and_the_offered_tools_stay_the_same() {
    let talk = talk(40).await;
    talk.server.reply(search("close an invoice", 2));
    let arguments = r#"{"name":"shop_close_invoice","arguments":{"id":"A-1"}}"#;
    talk.server
        .reply(Reply::stream().tool_call("c", "tools_call", &[arguments]));
    talk.server.reply(Reply::text("It is closed."));
    let answer = talk.ask("Please close invoice A-1.").await;
    assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
    assert_eq!(answer.endings(), ["success", "success"]);
    let requests = talk.server.requests();
    let told: Vec<Vec<String>> = requests.iter().map(names).collect();
    assert!(told[0].len() < 20 && told[0].contains(&"tools_search".to_owned()));
    assert!(
        told[0].iter().all(|name| !name.starts_with("shop_")),
        "{told:?}"
    );
    let listed = last(&requests[1]);
    assert!(
        listed.starts_with(
            "Call one with tools_call {\"name\": \"...\", \"arguments\": {...}}.\n\nshop_close_invoice: Closes an open invoice of the shop, by its number, and notes it in the books.\n  id (string, required): The number of the thing in the books of the shop, such as A-1732.\n  remark (string): What to note about it in the journal of the shop."
        ),
        "{listed}"
    );
    // Byte for byte the same in every request.
    for request in &requests[1..] {
        assert_eq!(request.body["tools"], requests[0].body["tools"]);
    }
    assert_eq!(last(&requests[2]), "shop.close_invoice A-1 ");
    // The model sees the call that it wrote; readers and the record have the tool itself.
    let called = &requests[2].body["messages"][4]["tool_calls"][0]["function"];
    assert_eq!(called["name"], "tools_call");
    let written: Value = serde_json::from_str(called["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(arguments).unwrap());
    let shown = answer.data("ToolCall");
    assert_eq!(shown[1]["name"], "shop_close_invoice");
    assert_eq!(shown[1]["method"], "shop.close_invoice");
    assert_eq!(shown[1]["arguments"], json!({ "id": "A-1" }));
    let events = talk.events("tool.call.success").await;
    assert!(
        events
            .iter()
            .any(|event| event.payload["method"] == "shop.close_invoice"),
        "the hub ran it as itself"
    );

    talk.server.reply(Reply::text("It is still closed."));
    talk.ask("Is it?").await;
    assert_eq!(names(&talk.server.last_request()), told[0]);

    // All of that can be made again.
    let queries = talk.call("agent.queries", json!({})).await.unwrap();
    for query in queries["queries"].as_array().unwrap() {
        let params = json!({ "query_id": query["id"] });
        let replayed = talk.call("agent.replay", params).await.unwrap();
        assert_eq!(replayed["divergence"], Value::Null, "{replayed}");
    }
}

#[tokio::test]
async fn a_call_through_tools_call_is_validated_like_the_tool() {
    let talk = talk(40).await;
    let calls = [
        (
            r#"{"name":"shop.audit_pallet","arguments":"{\"id\":\"P\"}"}"#,
            "shop.audit_pallet P ",
        ),
        (
            r#"{"name":"shop_audit_pallet"}"#,
            "error (rpc.invalid_params): invalid parameters: \"id\" is a required property",
        ),
        (
            r#"{"name":"shop_eat_pallet","arguments":{}}"#,
            "error (rpc.method_not_found): there is no tool `shop_eat_pallet`",
        ),
        (
            r#"{"arguments":{}}"#,
            "error (rpc.invalid_params): invalid parameters: \"name\" is a required property",
        ),
    ];
    let reply = calls
        .iter()
        .zip(1..)
        .fold(Reply::stream(), |reply, ((arguments, _), n)| {
            reply.tool_call(&format!("c{n}"), "tools_call", &[arguments])
        });
    talk.server.reply(reply);
    talk.server.reply(Reply::text("Done."));
    talk.ask("Audit.").await;
    let request = talk.server.last_request();
    let messages = request.body["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    for ((_, expected), result) in calls.iter().zip(results) {
        let shown = result["content"].as_str().unwrap();
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[tokio::test]
async fn a_tool_that_was_not_told_of_can_be_called_and_one_that_is_not_there_cannot() {
    let talk = talk(40).await;
    talk.server.reply(
        Reply::stream()
            .tool_call("a", "shop_audit_pallet", &[r#"{"id":"P-9"}"#])
            .tool_call("b", "shop_eat_pallet", &[r#"{"id":"P-9"}"#]),
    );
    talk.server.reply(Reply::text("Done."));
    let answer = talk.ask("Who was at pallet P-9?").await;
    assert_eq!(answer.endings(), ["success", "error"]);
}

#[tokio::test]
async fn tokens_are_saved_and_counted() {
    let (all, few) = (talk(1_000).await, talk(40).await);
    let mut table = Vec::new();
    for talk in [&all, &few] {
        talk.server.reply(search("refund", 3));
        talk.server.reply(Reply::text("There are some."));
        let answer = talk.ask("What can be done about refunds?").await;
        let query = answer.response()["query_id"].clone();
        let trace = talk.call("agent.trace", json!({ "query_id": query })).await;
        table.push(trace.unwrap()["turns"].clone());
    }
    println!(
        "\n{:<22} {:>6} {:>6} {:>14}",
        "", "told", "known", "tokens saved"
    );
    for (what, turns) in ["no limit", "a limit of 40"].iter().zip(&table) {
        for (turn, number) in turns.as_array().unwrap().iter().zip(1..) {
            let number_of = |field: &str| turn[field].as_u64().unwrap();
            println!(
                "{:<22} {:>6} {:>6} {:>14}",
                format!("{what}, turn {number}"),
                number_of("tools_told"),
                number_of("tools_known"),
                number_of("tokens_saved")
            );
        }
    }
    let saved = |way: usize, turn: usize| table[way][turn]["tokens_saved"].as_u64().unwrap();
    assert_eq!((saved(0, 0), saved(0, 1)), (0, 0));
    // What is saved is what the model's own counter says of what was sent.
    let count = |talk: &Talk, turn: usize| -> u64 {
        let counter = dodona_llm::TokenCounter::for_model("gpt-4o");
        let tools = talk.server.requests()[turn].body["tools"].clone();
        let tools = tools.as_array().unwrap().iter().map(|tool| {
            let tool = &tool["function"];
            counter.count_tool(&dodona_llm::ToolOffer {
                name: tool["name"].as_str().unwrap().to_owned(),
                description: tool["description"].as_str().unwrap().to_owned(),
                parameters: tool["parameters"].clone(),
            })
        });
        tools.sum::<usize>() as u64
    };
    let search_itself =
        |talk: &Talk| names(&talk.server.requests()[0]).contains(&"tools_search".to_owned());
    assert!(!search_itself(&all) && search_itself(&few));
    for turn in [0, 1] {
        let (whole, part) = (count(&all, turn), count(&few, turn));
        assert!(part * 4 < whole, "{part} of {whole}");
        assert!(part + saved(1, turn) > whole, "with the search itself");
        assert!(part + saved(1, turn) < whole + 400);
    }
    assert_eq!(saved(1, 1), saved(1, 0), "what was found is not offered");
}

#[tokio::test]
async fn an_agent_finds_nothing_outside_its_scope() {
    let talk = talk(5).await;
    let dir = talk.folder.path().join("agents");
    std::fs::create_dir_all(&dir).unwrap();
    let mut allowed: Vec<String> = (NOUNS.iter().map(|noun| format!("shop_list_{noun}"))).collect();
    allowed.push("kit_echo".to_owned());
    let text = format!(
        "name = \"clerk\"\ndescription = \"Lists.\"\nsystem_prompt_path = \"clerk.md\"\n\
         allowed_tools = {allowed:?}\n"
    );
    std::fs::write(dir.join("clerk.toml"), text).unwrap();
    std::fs::write(dir.join("clerk.md"), "You list things.").unwrap();
    talk.server.respond_with(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        let is_clerk = messages[0]["content"] == "You list things.";
        let answered = messages.iter().filter(|m| m["role"] == "tool").count();
        match (is_clerk, answered) {
            (false, 0) => {
                let task = json!({ "name": "clerk", "task": "Close a refund." }).to_string();
                Reply::stream().tool_call("d", "agent_delegate", &[&task])
            }
            (true, 0) => search("close or list a refund", 20),
            (true, 1) => Reply::stream().tool_call("x", "shop_close_refund", &[r#"{"id":"R"}"#]),
            _ => Reply::text("I cannot."),
        }
    });
    let answer = talk.ask("Have a refund closed.").await;
    assert_eq!(answer.status(), DoneStatus::Complete, "{}", answer.error());
    let of_clerk: Vec<SeenRequest> = talk.server.requests();
    let of_clerk: Vec<&SeenRequest> = of_clerk
        .iter()
        .filter(|request| request.body["messages"][0]["content"] == "You list things.")
        .collect();
    assert_eq!(
        names(of_clerk[0]),
        ["agent_result", "tools_call", "tools_search"]
    );
    let found = found(last(of_clerk[1]));
    assert_eq!(found[0], "shop_list_refund");
    assert!(
        found.iter().all(|name| name.starts_with("shop_list_")),
        "{found:?}"
    );
    assert_eq!(
        last(of_clerk[2]),
        "error (policy.denied): the agent `clerk` may not use `shop_close_refund`\nhint: use the tools you are given"
    );
    // Whoever asks directly finds what he may call.
    let params = json!({ "query": "close a refund", "limit": 1 });
    let found = talk.call("tools.search", params).await.unwrap();
    assert_eq!(found["tools"][0]["method"], "shop.close_refund");
}
