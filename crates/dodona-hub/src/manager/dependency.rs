//! What must be active before what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;

use dodona_proto::PluginName;
use semver::{Version, VersionReq};

/// A plugin that must be active, and of which versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) plugin: PluginName,
    /// `None` is any version, pre-releases too.
    pub(crate) version: Option<VersionReq>,
}

impl Dependency {
    /// Whether a version will do.
    pub(crate) fn accepts(&self, version: &Version) -> bool {
        self.version
            .as_ref()
            .is_none_or(|wanted| wanted.matches(version))
    }

    /// Adds the version requirement of a second mention of the same plugin. Both must hold.
    pub(crate) fn merge(&mut self, other: Self) {
        match (&mut self.version, other.version) {
            (_, None) => {}
            (Some(own), Some(more)) => {
                for comparator in more.comparators {
                    if !own.comparators.contains(&comparator) {
                        own.comparators.push(comparator);
                    }
                }
            }
            (own @ None, more) => *own = more,
        }
    }
}

impl FromStr for Dependency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text
            .find(|c: char| c.is_whitespace() || "<>=^~".contains(c))
            .unwrap_or(text.len());
        let (name, wanted) = text.split_at(end);
        let plugin = PluginName::new(name).map_err(|error| error.to_string())?;
        let wanted = wanted.trim();
        let version = match wanted {
            "" => None,
            wanted => Some(VersionReq::parse(wanted).map_err(|error| {
                format!("`{wanted}` is not a version requirement such as `>= 1.2`: {error}")
            })?),
        };
        Ok(Self { plugin, version })
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{} {version}", self.plugin),
            None => write!(f, "{}", self.plugin),
        }
    }
}

/// Which plugin needs which, by name.
pub(crate) type Graph = BTreeMap<PluginName, BTreeSet<PluginName>>;

/// An order in which everything comes after what it needs.
pub(crate) struct Order {
    /// Everybody, those in circles too, by need and then by name.
    pub(crate) names: Vec<PluginName>,
    /// Those that need themselves in the end, and the way round.
    pub(crate) circles: BTreeMap<PluginName, Vec<PluginName>>,
}

impl Order {
    /// Orders a graph. Needs that are not in it do not count.
    pub(crate) fn of(graph: &Graph) -> Self {
        let circles: BTreeMap<_, _> = graph
            .keys()
            .filter_map(|name| Some((name.clone(), way_back(graph, name)?)))
            .collect();
        let mut waiting: BTreeMap<&PluginName, usize> = BTreeMap::new();
        for (name, needs) in graph {
            // Who is in a circle waits for nobody: it is not activated anyway.
            let counted = needs
                .iter()
                .filter(|need| graph.contains_key(*need))
                .count();
            let waits = if circles.contains_key(name) {
                0
            } else {
                counted
            };
            waiting.insert(name, waits);
        }
        let mut ready: BTreeSet<&PluginName> = waiting
            .iter()
            .filter(|(_, waits)| **waits == 0)
            .map(|(name, _)| *name)
            .collect();
        let mut names = Vec::new();
        while let Some(name) = ready.pop_first() {
            names.push(name.clone());
            for (other, needs) in graph {
                if !needs.contains(name) || circles.contains_key(other) {
                    continue;
                }
                if let Some(waits) = waiting.get_mut(other) {
                    *waits -= 1;
                    if *waits == 0 {
                        ready.insert(other);
                    }
                }
            }
        }
        Self { names, circles }
    }
}

/// The shortest way from a plugin over its needs back to itself.
fn way_back(graph: &Graph, start: &PluginName) -> Option<Vec<PluginName>> {
    let mut outcome: BTreeMap<&PluginName, &PluginName> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(name) = queue.pop_front() {
        for need in graph.get(name).into_iter().flatten() {
            if need == start {
                let mut way = vec![start.clone()];
                let mut at = name;
                while at != start {
                    way.insert(0, at.clone());
                    at = outcome.get(at)?;
                }
                way.insert(0, start.clone());
                return Some(way);
            }
            if let Some((need, _)) = graph.get_key_value(need)
                && !outcome.contains_key(need)
            {
                outcome.insert(need, name);
                queue.push_back(need);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PluginName {
        PluginName::new(text).unwrap()
    }

    fn order(edges: &[(&str, &[&str])]) -> Order {
        let graph = edges
            .iter()
            .map(|(of, needs)| (name(of), needs.iter().map(|need| name(need)).collect()));
        Order::of(&graph.collect())
    }

    fn shown(names: &[PluginName]) -> String {
        let names: Vec<&str> = names.iter().map(PluginName::as_str).collect();
        names.join(" ")
    }

    #[test]
    fn needs_come_first_and_names_decide_the_rest() {
        let order = order(&[
            ("a", &["z"]),
            ("b", &[]),
            ("c", &["a", "b"]),
            ("z", &["m", "nobody"]),
            ("m", &[]),
        ]);
        assert_eq!(shown(&order.names), "b m z a c");
        assert!(order.circles.is_empty());
    }

    #[test]
    fn a_circle_is_told_with_the_way_round_and_what_follows_it_is_in_none() {
        let order = order(&[
            ("a", &["b"]),
            ("b", &["c"]),
            ("c", &["a"]),
            ("after", &["a"]),
            ("alone", &[]),
        ]);
        assert_eq!(shown(&order.names), "a after alone b c");
        let circles: Vec<String> = order.circles.values().map(|way| shown(way)).collect();
        assert_eq!(circles, ["a b c a", "b c a b", "c a b c"]);
    }

    #[test]
    fn dependencies_are_read_with_and_without_versions() {
        let read = |text: &str| text.parse::<Dependency>();
        let vault = read("vault >= 1.2").unwrap();
        assert_eq!(vault.plugin.as_str(), "vault");
        assert!(vault.accepts(&Version::new(1, 2, 0)) && !vault.accepts(&Version::new(1, 1, 9)));
        assert!(
            read("vault>=1.2, <2")
                .unwrap()
                .accepts(&Version::new(1, 9, 0))
        );
        assert!(!read("vault ^1").unwrap().accepts(&Version::new(2, 0, 0)));
        assert_eq!(read("vault").unwrap().version, None);
        assert!(
            read("vault soon")
                .unwrap_err()
                .contains("version requirement")
        );
        assert!(read("../vault").is_err());
        assert!(read("").is_err());
    }
}
