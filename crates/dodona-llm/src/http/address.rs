//! Where requests may go.

use std::net::IpAddr;

use reqwest::Url;

use crate::error::ModelError;

/// A provider's base URL that was found fit to send conversations to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Ends with a slash.
    base: Url,
    /// The host, and the port where it is not the usual one.
    host: String,
}

/// Whether conversations may cross a network unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainHttp {
    Loopback,
    Anywhere,
}

impl Address {
    /// Checks a base URL.
    pub(crate) fn new(base_url: &str, plain: PlainHttp) -> Result<Self, ModelError> {
        let wrong = |reason: String| ModelError::Settings {
            reason,
            hint: "set `base_url` to an address such as `https://api.example.com/v1`".to_owned(),
        };
        let mut base = Url::parse(base_url)
            .map_err(|error| wrong(format!("`base_url` is no address: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong(
                "`base_url` does not begin with `https://` or `http://` and a host".to_owned(),
            ));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong(
                "`base_url` holds a user name or a password, and addresses are shown".to_owned(),
            ));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("`base_url` holds a `?` or a `#`".to_owned()));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let address = Self {
            host: host(&base),
            base,
        };
        if address.base.scheme() == "http" && plain == PlainHttp::Loopback && !address.is_loopback()
        {
            return Err(ModelError::Settings {
                reason: format!(
                    "`{base_url}` would send conversations and the key over the network unencrypted"
                ),
                hint: "use `https://`, or set `allow_plain_http = true` if you trust that network"
                    .to_owned(),
            });
        }
        Ok(address)
    }

    /// Whether it is this machine: no proxy and no certificate has a part in it then.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.ends_with(".localhost")
            || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Whether no certificate is needed.
    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    /// The address of one of its paths.
    pub(crate) fn join(&self, path: &str) -> Url {
        self.base
            .join(path)
            .expect("a relative path joins any address with a host")
    }

    /// The host, and the port where it is not the usual one.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

/// The host of an address, and the port where it is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_base() {
        for base in ["https://api.example.com/v1", "https://api.example.com/v1/"] {
            let address = Address::new(base, PlainHttp::Loopback).unwrap();
            let joined = address.join("chat/completions");
            assert_eq!(
                joined.as_str(),
                "https://api.example.com/v1/chat/completions"
            );
        }
    }

    #[test]
    fn unencrypted_goes_to_this_machine_only() {
        let fine = [
            "http://localhost:11434/v1",
            "http://127.0.0.1:8080",
            "http://[::1]:8080/v1",
        ];
        for base in fine {
            let address = Address::new(base, PlainHttp::Loopback).unwrap();
            assert!(address.is_loopback(), "{base}");
        }
        let elsewhere = [
            "http://10.0.0.7/v1",
            "http://localhost.example.com/v1",
            "http://model.lan/v1",
        ];
        for base in elsewhere {
            let error = Address::new(base, PlainHttp::Loopback).unwrap_err();
            assert!(error.hint().unwrap().contains("allow_plain_http"), "{base}");
            assert!(Address::new(base, PlainHttp::Anywhere).is_ok(), "{base}");
        }
    }

    #[test]
    fn what_is_no_base_is_refused() {
        let wrong = [
            "",
            "api.example.com/v1",
            "file:///etc/passwd",
            "https://user:secret@api.example.com",
            "https://api.example.com/?key=secret",
        ];
        for base in wrong {
            let error = Address::new(base, PlainHttp::Anywhere).unwrap_err();
            assert!(matches!(error, ModelError::Settings { .. }), "{base}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
