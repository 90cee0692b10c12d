//! Where a request may go. A name is resolved once, every address is checked, and the connection is
//! made to one of those and no other.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::is_public;
use crate::error::HttpError;

/// A list of hosts, each as `host` or `host:port`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed(Arc<[String]>);

impl Allowed {
    pub(crate) fn new(hosts: Vec<String>) -> Self {
        let hosts = hosts.into_iter().map(|host| host.to_lowercase());
        Self(hosts.collect())
    }

    /// Whether a host is in the list, with this port or with every port.
    pub(crate) fn has(&self, host: &str, port: Option<u16>) -> bool {
        let named = |entry: &String| match entry.strip_prefix(host) {
            Some("") => true,
            Some(rest) => port.is_some_and(|port| rest == format!(":{port}")),
            None => false,
        };
        self.0.iter().any(named)
    }

    /// Whether a name may have any address. Only with every port: a name is looked up without one.
    fn has_name(&self, host: &str) -> bool {
        self.0
            .iter()
            .any(|entry| entry.split(':').next() == Some(host))
    }
}

/// Parses a URL, absolute or relative to another. Only `http` and `https` without credentials are
/// accepted; the fragment is removed.
pub fn parse(text: &str, base: Option<&Url>) -> Result<Url, HttpError> {
    let refused = |why| HttpError::Url {
        url: text.to_owned(),
        why,
    };
    if text.len() > 4096 {
        return Err(refused("it is too long"));
    }
    let parsed = match base {
        Some(base) => base.join(text),
        None => Url::parse(text.trim()),
    };
    let mut url = parsed.map_err(|_| refused("it is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("its scheme is not `http` or `https`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("it has a user name or a password in it"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(refused("it names no host"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The host of a URL as it is compared and shown: without brackets and without a dot at its end.
pub fn host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.trim_matches(['[', ']']).trim_end_matches('.')
}

/// Checks the host of a URL as far as it is an address: one that is written out, in any notation, is
/// checked here, because it is not resolved. The parser has normalised it.
pub(crate) fn check(url: &Url, allowed: &Allowed) -> Result<(), HttpError> {
    let host = host(url);
    if allowed.has(host, url.port_or_known_default()) {
        return Ok(());
    }
    let private = || {
        Err(HttpError::Private {
            host: host.to_owned(),
        })
    };
    match host.parse::<IpAddr>() {
        Ok(address) if !is_public(address) => private(),
        Ok(_) => Ok(()),
        Err(_) if host == "localhost" || host.ends_with(".localhost") => private(),
        // With a port that is not allowed, a name that is must not slip through below.
        Err(_) if allowed.has_name(host) => private(),
        Err(_) => Ok(()),
    }
}

/// Resolves names for the client. A name with one address that is not public is an error.
pub(crate) struct Guard {
    pub(crate) allowed: Allowed,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().trim_end_matches('.').to_lowercase();
        let allowed = self.allowed.has_name(&host);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found: Vec<SocketAddr> = match found {
                Ok(found) => found.collect(),
                Err(_) => Vec::new(),
            };
            let addresses = pinned(&host, found, allowed)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// The addresses that a connection may use.
fn pinned(
    host: &str,
    found: Vec<SocketAddr>,
    allowed: bool,
) -> Result<Vec<SocketAddr>, Box<HttpError>> {
    let host = || host.to_owned();
    if found.is_empty() {
        return Err(Box::new(HttpError::NoAddress { host: host() }));
    }
    if !allowed && !found.iter().all(|address| is_public(address.ip())) {
        return Err(Box::new(HttpError::Private { host: host() }));
    }
    Ok(found)
}

/// The guard's own error, where that is why a request failed.
pub(crate) fn refusal(error: &reqwest::Error) -> Option<HttpError> {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let found = inner
            .downcast_ref::<HttpError>()
            .or_else(|| inner.downcast_ref::<Box<HttpError>>().map(AsRef::as_ref));
        match found {
            Some(HttpError::Private { host }) => {
                return Some(HttpError::Private { host: host.clone() });
            }
            Some(HttpError::NoAddress { host }) => {
                return Some(HttpError::NoAddress { host: host.clone() });
            }
            _ => source = inner.source(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, allowed: &Allowed) -> Result<(), HttpError> {
        check(&parse(text, None)?, allowed)
    }

    #[test]
    fn private_hosts_are_refused_however_they_are_spelled() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.1/",
            "http://127.0.1/",
            "http://127.0.0.1./",
            "http://0/",
            "http://0.0.0.0/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://foo.localhost/",
            "http://[::1]/",
            "http://[::]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::127.0.0.1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0xA9FEA9FE/",
            "http://10.0.0.1:8080/",
            "http://192.168.0.1/",
            "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
            "http://127。0。0。1/",
            "http://①②⑦.0.0.1/",
            "http://user@example.org/",
            "http://example.org:pw@127.0.0.1/",
            "http://a:b@1.1.1.1/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "gopher://x/",
            "javascript:1",
            "data:,x",
            "//example.org/",
            "example.org",
            "",
            "http://",
        ] {
            assert!(verdict(url, &Allowed::default()).is_err(), "{url} passed");
        }
        for url in [
            "https://example.org/a?b#c",
            "http://1.1.1.1/",
            "http://example.org.:8080/",
        ] {
            assert!(
                verdict(url, &Allowed::default()).is_ok(),
                "{url} was refused"
            );
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_with_its_port() {
        let allowed = Allowed::new(vec![
            "127.0.0.1:8888".into(),
            "Intranet".into(),
            "wiki:80".into(),
        ]);
        for url in [
            "http://127.0.0.1:8888/",
            "http://2130706433:8888/",
            "http://intranet:81/",
            "http://wiki/",
        ] {
            assert!(verdict(url, &allowed).is_ok(), "{url} was refused");
        }
        for url in [
            "http://127.0.0.1/",
            "http://127.0.0.1:88889/",
            "http://wiki:81/",
            "http://[::1]:8888/",
        ] {
            assert!(verdict(url, &allowed).is_err(), "{url} passed");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused_by_its_address() {
        let resolve = async |allowed: &[&str]| {
            let hosts = allowed.iter().map(|host| (*host).to_owned()).collect();
            let allowed = Allowed::new(hosts);
            Guard { allowed }
                .resolve("localhost".parse().unwrap())
                .await
        };
        let Err(error) = resolve(&[]).await else {
            panic!("it passed");
        };
        let error = error.downcast::<Box<HttpError>>().unwrap();
        assert!(matches!(**error, HttpError::Private { .. }), "{error}");
        assert!(resolve(&["localhost:80"]).await.is_ok());
    }

    #[test]
    fn one_private_answer_of_many_is_enough_to_refuse_a_name() {
        let found = |text: &[&str]| {
            text.iter()
                .map(|t| SocketAddr::new(t.parse().unwrap(), 0))
                .collect()
        };
        assert!(pinned("a", found(&["1.1.1.1", "8.8.8.8"]), false).is_ok());
        for answers in [
            &["10.0.0.1"][..],
            &["1.1.1.1", "127.0.0.1"],
            &["::ffff:10.0.0.1"],
            &[],
        ] {
            assert!(
                pinned("a", found(answers), false).is_err(),
                "{answers:?} passed"
            );
        }
        assert!(pinned("a", found(&["10.0.0.1"]), true).is_ok());
    }
}
