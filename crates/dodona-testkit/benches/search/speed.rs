//! How fast a large tree of sources is indexed, kept in step and searched.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dodona_hub::{HubConfig, PluginHub, Request};
use dodona_knowledge::search::{FileChunks, Question, SearchIndex};
use dodona_proto::{Project, ProjectId};
use dodona_testkit::measure::per_operation_on_cpu;
use dodona_testkit::principal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::peers::Fts5;

/// The number of passages that the tree is cut to: the 100 000 that the target for queries names,
/// and those of generated files, which the index leaves out.
const PASSAGES: usize = 101_000;
/// Passages asked for, as a person would.
const LIMIT: usize = 10;
/// In which the kernel counts a second, on every system that Debian runs on.
const TICKS: u64 = 100;
/// How often one changed file is taken in.
const CHANGES: usize = 7;

/// What was measured.
pub(crate) struct Speed {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) passages: u64,
    pub(crate) index: Duration,
    /// What all processors together spent on that.
    pub(crate) index_cpu: Duration,
    /// What it costs to read the same files and to cut them as ours does, for whatever index.
    pub(crate) parse_cpu: Duration,
    /// What FTS5 adds to that.
    pub(crate) fts5_cpu: Duration,
    pub(crate) peak_mib: f64,
    pub(crate) index_bytes: u64,
    pub(crate) fts5_bytes: u64,
    pub(crate) reindex: Duration,
    pub(crate) nothing_new: Duration,
    pub(crate) query: Percentiles,
    pub(crate) fts5_query: Percentiles,
}

/// Of the questions, in the order of their times.
pub(crate) struct Percentiles {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Percentiles {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        Self {
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

/// Measures on a copy of sources below `tree`, through the hub as any caller would.
pub(crate) fn measure(tree: &Path, questions: &[String]) -> Result<Speed> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("project");
    let bytes = copy(tree, &root)?;
    let product = Product::start(folder.path(), &root)?;
    forget_peak();
    let (begun, before) = (Instant::now(), on_cpu()?);
    let summary = product.index()?;
    let (index, index_cpu) = (begun.elapsed(), on_cpu()? - before);
    let peak_mib = peak()?;
    let (reindex, nothing_new) = product.changes(&root)?;
    let place = folder.path().join("data/plugins/search/indexes/project");
    let ours = SearchIndex::open(&place)?;
    let before = on_cpu()?;
    let files = parsed(&root);
    let parse_cpu = on_cpu()? - before;
    let fts5_place = folder.path().join("fts5.db");
    let mut fts5 = Fts5::open(&fts5_place)?;
    let before = on_cpu()?;
    for some in files.chunks(200) {
        fts5.add(some)?;
    }
    let fts5_cpu = on_cpu()? - before;
    let query = timed(questions, |text| {
        let question = Question {
            text: text.to_owned(),
            limit: LIMIT,
            ..Question::default()
        };
        Ok(ours.search(&question).map(drop)?)
    })?;
    let fts5_query = timed(questions, |text| fts5.search(text, LIMIT).map(drop))?;
    Ok(Speed {
        files: summary["files"].as_u64().unwrap_or_default(),
        bytes,
        passages: ours.passage_count(),
        index,
        index_cpu,
        parse_cpu,
        fts5_cpu,
        peak_mib,
        index_bytes: size(&place),
        fts5_bytes: size(&fts5_place),
        reindex,
        nothing_new,
        query,
        fts5_query,
    })
}

/// A hub with the plugins that ship, and one project.
struct Product {
    runtime: Runtime,
    hub: PluginHub,
    project: ProjectId,
}

impl Product {
    fn start(home: &Path, root: &Path) -> Result<Self> {
        let runtime = Runtime::new()?;
        let plugins = dodona_knowledge::plugins(dodona_knowledge::Options::default());
        let data = home.join("data");
        let hub = runtime.block_on(PluginHub::start(&data, HubConfig::default(), plugins))?;
        let register = Request::new(
            principal("alice"),
            "hub.register_project",
            json!({ "root": root }),
        );
        let registered = runtime.block_on(hub.call(register))?;
        let project: Project = serde_json::from_value(registered)?;
        Ok(Self {
            runtime,
            hub,
            project: project.id,
        })
    }

    fn index(&self) -> Result<Value> {
        let request = Request::new(principal("alice"), "search.index", json!({}));
        let request = Request {
            project: Some(self.project.clone()),
            ..request
        };
        Ok(self.runtime.block_on(self.hub.call(request))?)
    }

    /// The median times to take in one changed file, and to see that nothing changed.
    fn changes(&self, root: &Path) -> Result<(Duration, Duration)> {
        let (mut changed, mut same) = (Vec::new(), Vec::new());
        for round in 0..CHANGES {
            let text = format!("/// Round {round}.\nfn changed_{round}() {{\n    go();\n}}\n");
            fs::write(root.join("changed.rs"), text)?;
            let begun = Instant::now();
            self.index()?;
            changed.push(begun.elapsed());
            let begun = Instant::now();
            self.index()?;
            same.push(begun.elapsed());
        }
        Ok((Percentiles::of(changed).p50, Percentiles::of(same).p50))
    }
}

/// Copies sources until they have enough passages, without what a registry adds; tells how many
/// bytes that are. Which ones is up to their names: a part of everything, the same each time.
fn copy(from: &Path, to: &Path) -> Result<u64> {
    let wanted = |path: &str| !path.ends_with(".cargo-checksum.json");
    let mut texts = crate::fetch::texts(from, wanted);
    texts.sort_by_cached_key(|(path, _)| {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        hasher.finish()
    });
    let (mut bytes, mut passages) = (0, 0);
    for (path, text) in texts {
        if passages >= PASSAGES {
            break;
        }
        passages += FileChunks::of(&path, &text).chunks.len();
        let place = to.join(path);
        fs::create_dir_all(place.parent().context("every file is in a folder")?)?;
        bytes += text.len() as u64;
        fs::write(place, text)?;
    }
    Ok(bytes)
}

/// The passages of the tree, as ours has them.
fn parsed(root: &Path) -> Vec<FileChunks> {
    let texts = crate::fetch::texts(root, |_| true);
    let files = texts.iter().filter(|(_, text)| text.len() <= 1 << 20);
    files
        .map(|(path, text)| FileChunks::of(path, text))
        .collect()
}

/// Each question once to warm up, then once by the processor's clock: a search never waits, and
/// on a busy machine the clock on the wall measures the others.
fn timed(questions: &[String], search: impl Fn(&str) -> Result<()>) -> Result<Percentiles> {
    for question in questions {
        search(question)?;
    }
    let time = |question: &String| {
        let nanos = per_operation_on_cpu(1, || {
            // It worked a moment ago.
            let _ = search(question);
        });
        Duration::from_nanos(nanos as u64)
    };
    Ok(Percentiles::of(questions.iter().map(time).collect()))
}

/// How long all threads of this process have run.
fn on_cpu() -> Result<Duration> {
    let mut all = Duration::ZERO;
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')').context("a name in parentheses")?;
    for ticks in fields.split_whitespace().skip(11).take(2) {
        all += Duration::from_millis(ticks.parse::<u64>()? * 1_000 / TICKS);
    }
    Ok(all)
}

/// Lets the kernel measure the peak of this process anew.
fn forget_peak() {
    // Where that is not allowed, the peak is that of the whole run, which is no smaller.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that this process had at once, in MiB.
fn peak() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.context("the kernel tells the peak")?.parse()?;
    Ok(kib / 1024.0)
}

/// The bytes below a path.
fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else {
        return fs::metadata(path).map_or(0, |metadata| metadata.len());
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.map(|path: PathBuf| size(&path)).sum()
}
