//! A client that jsonrpsee's macro generates from a trait, unmodified, against our server: calls,
//! errors, subscriptions by the method's own name, and unsubscribing.

use dodona_testkit::assert_well_formed;
use futures_util::StreamExt;
use jsonrpsee::core::client::Error;
use jsonrpsee::proc_macros::rpc;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sse::{parsed, ticks};
use crate::support::{Server, until};
use crate::websocket::jsonrpsee;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
}

/// Names are written in full: a namespace would also prefix the name for unsubscribing.
#[rpc(client)]
trait Echo {
    #[method(name = "echo.say", param_kind = map)]
    async fn say(&self, text: String) -> Result<Text, jsonrpsee::types::ErrorObjectOwned>;

    #[method(name = "echo.fail", param_kind = map)]
    async fn fail(&self, message: String) -> Result<Text, jsonrpsee::types::ErrorObjectOwned>;

    #[subscription(name = "echo.count", unsubscribe = "hub.unsubscribe", item = Value, param_kind = map)]
    async fn count(&self, to: u64, delay_ms: u64) -> jsonrpsee::core::SubscriptionResult;
}

#[tokio::test]
async fn a_generated_client_calls_and_gets_typed_results_and_errors() {
    let server = Server::start().await;
    let client = jsonrpsee(&server.owner()).await;
    let text = "hello".to_owned();
    assert_eq!(client.say(text.clone()).await.unwrap(), Text { text });
    let failed = client.fail("as asked".to_owned()).await.unwrap_err();
    let Error::Call(error) = failed else {
        panic!("{failed}");
    };
    let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
    assert_eq!(data["code"], "echo.failed", "{error:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_generated_client_subscribes_to_a_method_by_its_name_and_unsubscribes() {
    let server = Server::start().await;
    let client = jsonrpsee(&server.owner()).await;
    let stream = client.count(3, 0).await.unwrap();
    // One progress, three ticks, one end.
    let items: Vec<Value> = stream.take(5).map(Result::unwrap).collect().await;
    assert_well_formed(&parsed(&items));
    assert_eq!(ticks(&items), [1, 2, 3]);

    let mut long = client.count(1_000_000, 1).await.unwrap();
    long.next().await.unwrap().unwrap();
    assert_eq!(server.running(), 1);
    long.unsubscribe().await.unwrap();
    until("the call to end", async || server.running() == 0).await;
    server.stop().await;
}
