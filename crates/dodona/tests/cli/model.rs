//! A model provider on a socket, and a home that asks it.

use dodona_testkit::model_server::{ModelServer, Reply};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::harness::{Home, Outcome};

/// The provider; it serves until it is dropped.
pub(crate) struct Model {
    server: ModelServer,
    runtime: Runtime,
}

impl Model {
    /// A provider behind the models `main`, the default, and `other`.
    pub(crate) fn of(home: &Home) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(ModelServer::start());
        let model = |name: &str| {
            format!(
                "[models.{name}]\nprovider = \"openai\"\nmodel = \"{name}-1\"\nbase_url = \"{}\"\n\
                 price = {{ input = 1.0, output = 2.0 }}\n",
                server.url()
            )
        };
        // What it is sent is what was typed: passages looked up beforehand are other tests' business.
        let settings = "[agent]\nmodel = \"main\"\npreload = 0\n";
        home.configure(&format!("{settings}{}{}", model("main"), model("other")));
        Self { server, runtime }
    }

    /// What it says next.
    pub(crate) fn says(&self, reply: Reply) {
        self.server.reply(reply);
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let requests = self.server.requests();
        requests.into_iter().map(|request| request.body).collect()
    }

    /// What the user said in the newest request.
    pub(crate) fn question(&self) -> String {
        let body = self.server.last_request().body;
        let messages = body["messages"].as_array().unwrap();
        let said = messages.iter().rev().find(|said| said["role"] == "user");
        said.unwrap()["content"].as_str().unwrap().to_owned()
    }

    /// Waits until its answer is not wanted any more.
    pub(crate) fn until_abandoned(&self) {
        self.runtime.block_on(self.server.until_abandoned(1));
    }
}

/// How the latest query of the default conversation ended.
pub(crate) fn last_query(home: &Home) -> String {
    let asked: Outcome = home.run(&["call", "--project", ".", "agent.queries", "--json"]);
    let answer: Value = serde_json::from_str(&asked.stdout).expect(&asked.stderr);
    answer["queries"][0]["state"].as_str().unwrap().to_owned()
}
