//! What plugins remember, per user and project.

use std::sync::Arc;
use std::sync::Mutex;

use dodona_plugin::{Contribution, Plugin, State, StateStore};
use dodona_proto::{ErrorCode, ProjectId, UserId};
use serde_json::{Value, json};

use crate::homes::{Home, Made, ask, stop};
use crate::support::{object, spec, unary};

type Seen = Arc<Mutex<Option<StateStore>>>;

fn keeper(name: &'static str) -> (Arc<dyn Plugin>, Seen) {
    let seen = Seen::default();
    let given = Arc::clone(&seen);
    let plugin = Made::new(name).activate(move |ctx| {
        *given.lock().unwrap() = Some(ctx.state);
        Ok(Contribution::new())
    });
    (plugin.done(), seen)
}

fn of(seen: &Seen, user: &str, project: Option<&str>) -> State {
    let store = seen.lock().unwrap().clone().unwrap();
    let project = project.map(|project| ProjectId::new(project).unwrap());
    store.for_user(UserId::new(user).unwrap(), project)
}

#[tokio::test(flavor = "multi_thread")]
async fn values_keep_their_type_and_each_change_counts() {
    let (plugin, seen) = keeper("keeper");
    let home = Home::new();
    let hub = home.start(vec![plugin]).await;
    let state = of(&seen, "ada", None);
    assert_eq!(state.version().await.unwrap(), 0);
    assert_eq!(state.get::<i64>("count").await.unwrap(), None);
    assert_eq!(state.set("count", 1).await.unwrap(), 1);
    assert_eq!(state.set("count", 2).await.unwrap(), 2);
    assert_eq!(
        state
            .set("deep", json!({"a": [1.5, null, true]}))
            .await
            .unwrap(),
        3
    );
    assert_eq!(state.get::<i64>("count").await.unwrap(), Some(2));
    assert_eq!(
        state.get::<Value>("deep").await.unwrap(),
        Some(json!({"a": [1.5, null, true]}))
    );
    assert!(state.get::<String>("count").await.is_err(), "another type");
    assert!(state.delete("count").await.unwrap());
    assert!(!state.delete("count").await.unwrap());
    assert_eq!(
        state.version().await.unwrap(),
        4,
        "what changes nothing does not count"
    );
    stop(hub).await;
    let (plugin, seen) = keeper("keeper");
    let hub = home.start(vec![plugin]).await;
    let state = of(&seen, "ada", None);
    assert_eq!(state.version().await.unwrap(), 4);
    assert_eq!(state.list("").await.unwrap().len(), 1);
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_what_is_anothers() {
    let ((one, seen_one), (two, seen_two)) = (keeper("one"), keeper("two"));
    let home = Home::new();
    let hub = home.start(vec![one, two]).await;
    let owners = [
        of(&seen_one, "ada", None),
        of(&seen_one, "bob", None),
        of(&seen_one, "ada", Some("p")),
        of(&seen_one, "ada", Some("q")),
        of(&seen_two, "ada", None),
    ];
    for (owner, number) in owners.iter().zip(1..) {
        owner.set("key", number).await.unwrap();
    }
    for (owner, number) in owners.iter().zip(1..) {
        assert_eq!(owner.get::<i64>("key").await.unwrap(), Some(number));
        assert_eq!(
            owner.list("").await.unwrap(),
            [("key".to_owned(), json!(number))]
        );
        assert_eq!(owner.version().await.unwrap(), 1);
    }
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_is_taken_literally() {
    let (plugin, seen) = keeper("keeper");
    let home = Home::new();
    let hub = home.start(vec![plugin]).await;
    let state = of(&seen, "ada", None);
    for key in ["a_1", "ab1", "a%x", "aXx", "A_1", "ä1", "b"] {
        state.set(key, key).await.unwrap();
    }
    let keys = async |prefix: &str| {
        let found = state.list(prefix).await.unwrap();
        found
            .into_iter()
            .map(|(key, _)| key)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(keys("a_").await, "a_1");
    assert_eq!(keys("a%").await, "a%x");
    assert_eq!(keys("ä").await, "ä1");
    assert_eq!(keys("a").await, "a%x aXx a_1 ab1");
    assert_eq!(keys("").await.split(' ').count(), 7);
    assert_eq!(keys("zz").await, "");
    stop(hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_values_and_their_number_have_bounds() {
    let (plugin, seen) = keeper("keeper");
    let home = Home::new();
    let hub = home.start(vec![plugin]).await;
    let state = of(&seen, "ada", None);
    let too_large = |error: dodona_plugin::CallError| assert_eq!(error.code, ErrorCode::TooLarge);
    too_large(state.set("", 1).await.unwrap_err());
    too_large(state.set(&"k".repeat(257), 1).await.unwrap_err());
    // The quotes count.
    state.set("fits", "x".repeat((64 << 10) - 2)).await.unwrap();
    too_large(
        state
            .set("large", "x".repeat((64 << 10) - 1))
            .await
            .unwrap_err(),
    );
    let writes = (1..10_000).map(|number| {
        let state = state.clone();
        async move { state.set(&format!("k{number}"), number).await }
    });
    for outcome in futures(writes).await {
        outcome.unwrap();
    }
    too_large(state.set("one-more", 1).await.unwrap_err());
    state.set("k1", "changed").await.unwrap();
    state.delete("k2").await.unwrap();
    state.set("one-more", 1).await.unwrap();
    assert_eq!(state.list("").await.unwrap().len(), 10_000);
    stop(hub).await;
}

/// Runs them side by side, so that they share commits.
async fn futures<T: Send + 'static>(
    all: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = all.map(tokio::spawn).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_reaches_the_values_of_its_user_and_project() {
    let plugin = Made::new("probe").activate(|ctx| {
        let store = ctx.state;
        let mut visit = spec("probe.visit");
        visit.mutates = true;
        let visit = unary(visit, move |ctx, _| {
            let state = store.of(&ctx);
            async move {
                let seen = state.get::<u64>("seen").await?.unwrap_or(0) + 1;
                let version = state.set("seen", seen).await?;
                Ok(object(json!({ "seen": seen, "version": version })))
            }
        });
        Ok(Contribution::new().methods([visit]))
    });
    let home = Home::new();
    let hub = home.start(vec![plugin.done()]).await;
    ask(&hub, "probe.visit", json!({})).await.unwrap();
    let again = ask(&hub, "probe.visit", json!({})).await.unwrap();
    assert_eq!(again, json!({"seen": 2, "version": 2}));
    let ada = crate::support::user("ada", &["probe:*"]);
    let request = dodona_hub::Request::new(ada, "probe.visit", json!({}));
    assert_eq!(hub.call(request).await.unwrap()["seen"], 1);
    stop(hub).await;
}
