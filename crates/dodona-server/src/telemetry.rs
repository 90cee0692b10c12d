//! Numbers for Prometheus.

use dodona_hub::Hub;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Bounds of the latency histogram, in seconds: from a call that only reads memory to one that
/// asks a model.
const LATENCY: &[f64] = &[
    0.000_01, 0.000_1, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0,
];

/// Collects what the process counts. Install it before the hub starts, which then counts its
/// calls, items and errors into it.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Makes this the collector of the whole process. Fails when there is one already.
    pub fn install() -> Result<Self, BuildError> {
        let latency = Matcher::Full("dodona_call_seconds".to_owned());
        let recorder = PrometheusBuilder::new().set_buckets_for_metric(latency, LATENCY)?;
        recorder.install_recorder().map(Self)
    }

    /// The text of `/metrics`; what is measured by looking is looked at now.
    pub(crate) fn render(&self, hub: &Hub) -> String {
        let health = hub.health();
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        let gauge = |name: &'static str, value: usize| metrics::gauge!(name).set(value as f64);
        gauge("dodona_calls_running", health.calls);
        gauge("dodona_plugins_active", health.plugins.0);
        gauge("dodona_plugins_not_active", health.plugins.1);
        gauge("dodona_journal_backlog_bytes", health.journal_backlog);
        metrics::gauge!("dodona_uptime_seconds").set(health.uptime.as_secs_f64());
        self.0.run_upkeep();
        self.0.render()
    }
}
