//! Metrics in the Prometheus text format, served at `/metrics`.
//!
//! Other crates count through the `metrics` facade. [`Metrics`] is the recorder behind it: every
//! metric is a set of atomics that is registered once and never removed. The exporter crate was
//! replaced because it costs eleven crates for this one page (docs/decisions/0014).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dodona_hub::PluginHub;
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

/// Upper bounds of the histogram buckets in seconds: from a call that reads memory to one that
/// waits for a model. All our histograms are latencies, so one set of bounds is enough.
const BUCKETS: [f64; 10] = [
    0.000_01, 0.000_1, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0,
];

/// The metrics of the process. Install it before the hub starts: counters that were created
/// earlier are not recorded.
#[derive(Clone)]
pub struct Metrics(Arc<Registry>);

/// A second recorder was installed in one process.
#[derive(Debug, thiserror::Error)]
#[error("a metrics recorder is already installed in this process")]
pub struct AlreadyInstalled;

impl Metrics {
    /// Makes this the recorder of the whole process.
    pub fn install() -> Result<Self, AlreadyInstalled> {
        let registry = Arc::new(Registry::default());
        metrics::set_global_recorder(Handle(Arc::clone(&registry)))
            .map_err(|_| AlreadyInstalled)?;
        Ok(Self(registry))
    }

    /// Returns the text of `/metrics`. Gauges that describe the hub are read now.
    pub(crate) fn render(&self, hub: &PluginHub) -> String {
        let health = hub.health();
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        let gauge = |name: &'static str, value: usize| metrics::gauge!(name).set(value as f64);
        gauge("dodona_calls_running", health.calls);
        gauge("dodona_plugins_active", health.plugins.0);
        gauge("dodona_plugins_not_active", health.plugins.1);
        gauge("dodona_journal_backlog_bytes", health.journal_backlog);
        metrics::gauge!("dodona_uptime_seconds").set(health.uptime.as_secs_f64());
        let mut text = String::new();
        for line in self.0.render().lines() {
            // Plugins choose labels, and a scraper stores them for a long time.
            text.push_str(&hub.redactor().clean(line));
            text.push('\n');
        }
        text
    }
}

/// The registered metrics, by name and then by rendered labels, so that the output is sorted.
#[derive(Default)]
struct Registry {
    families: Mutex<BTreeMap<String, BTreeMap<String, Cell>>>,
}

/// The storage of one metric with one set of labels.
#[derive(Clone)]
enum Cell {
    Counter(Arc<AtomicU64>),
    /// The bits of an `f64`.
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Buckets>),
}

impl Registry {
    fn families(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Cell>>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, key: &Key, new: impl FnOnce() -> Cell) -> Cell {
        let mut families = self.families();
        let family = families.entry(key.name().to_owned()).or_default();
        family.entry(labels(key)).or_insert_with(new).clone()
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for (name, family) in self.families().iter() {
            let Some(kind) = family.values().next().map(Cell::kind) else {
                continue;
            };
            let _ = writeln!(text, "# TYPE {name} {kind}");
            for (labels, cell) in family {
                cell.render(&mut text, name, labels);
            }
            text.push('\n');
        }
        text
    }
}

impl Cell {
    fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) => "counter",
            Self::Gauge(_) => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }

    fn render(&self, text: &mut String, name: &str, labels: &str) {
        let braces = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{labels}}}")
        };
        let _ = match self {
            Self::Counter(value) => {
                writeln!(text, "{name}{braces} {}", value.load(Ordering::Relaxed))
            }
            Self::Gauge(bits) => {
                let value = f64::from_bits(bits.load(Ordering::Relaxed));
                writeln!(text, "{name}{braces} {value}")
            }
            Self::Histogram(buckets) => buckets.render(text, name, labels, &braces),
        };
    }
}

/// The labels of a key as `name="value",…`, with the escapes of the text format.
fn labels(key: &Key) -> String {
    let label = |label: &metrics::Label| {
        let value = label.value().replace('\\', r"\\").replace('"', "\\\"");
        format!("{}=\"{}\"", label.key(), value.replace('\n', r"\n"))
    };
    key.labels().map(label).collect::<Vec<_>>().join(",")
}

/// A histogram with fixed bounds. The last count is for values above all bounds.
#[derive(Default)]
struct Buckets {
    counts: [AtomicU64; BUCKETS.len() + 1],
    /// The bits of an `f64`.
    sum: AtomicU64,
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let bucket = BUCKETS.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let add = |sum: u64| Some((f64::from_bits(sum) + value).to_bits());
        let order = Ordering::Relaxed;
        // Never fails: `add` always returns a value.
        let _ = self.sum.fetch_update(order, order, add);
    }
}

impl Buckets {
    fn render(
        &self,
        text: &mut String,
        name: &str,
        labels: &str,
        braces: &str,
    ) -> std::fmt::Result {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut total = 0;
        let bounds = BUCKETS.iter().map(f64::to_string);
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&self.counts) {
            total += count.load(Ordering::Relaxed);
            writeln!(
                text,
                "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {total}"
            )?;
        }
        let sum = f64::from_bits(self.sum.load(Ordering::Relaxed));
        writeln!(text, "{name}_sum{braces} {sum}")?;
        writeln!(text, "{name}_count{braces} {total}")
    }
}

/// The registry as the facade's recorder. A name that is registered as two kinds keeps the first
/// kind; the second caller gets a metric that records nothing.
struct Handle(Arc<Registry>);

impl Recorder for Handle {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.0.register(key, || Cell::Counter(Arc::default())) {
            Cell::Counter(value) => Counter::from_arc(value),
            Cell::Gauge(_) | Cell::Histogram(_) => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.0.register(key, || Cell::Gauge(Arc::default())) {
            Cell::Gauge(value) => Gauge::from_arc(value),
            Cell::Counter(_) | Cell::Histogram(_) => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.0.register(key, || Cell::Histogram(Arc::default())) {
            Cell::Histogram(buckets) => Histogram::from_arc(buckets),
            Cell::Counter(_) | Cell::Gauge(_) => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_every_kind_in_the_text_format() {
        let registry = Arc::new(Registry::default());
        let recorder = Handle(Arc::clone(&registry));
        metrics::with_local_recorder(&recorder, || {
            metrics::counter!("calls_total", "method" => "a\"b\\c\nd").increment(3);
            metrics::gauge!("running").set(2.5);
            let seconds = metrics::histogram!("seconds", "method" => "echo.say");
            seconds.record(0.001);
            seconds.record(0.5);
            seconds.record(100.0);
        });
        let text = registry.render();
        assert!(
            text.contains(
                "# TYPE calls_total counter\ncalls_total{method=\"a\\\"b\\\\c\\nd\"} 3\n"
            )
        );
        assert!(text.contains("# TYPE running gauge\nrunning 2.5\n"));
        assert!(text.contains("seconds_bucket{method=\"echo.say\",le=\"0.001\"} 1\n"));
        assert!(text.contains("seconds_bucket{method=\"echo.say\",le=\"0.5\"} 2\n"));
        assert!(text.contains("seconds_bucket{method=\"echo.say\",le=\"+Inf\"} 3\n"));
        assert!(text.contains("seconds_sum{method=\"echo.say\"} 100.501\n"));
        assert!(text.contains("seconds_count{method=\"echo.say\"} 3\n"));
    }
}
