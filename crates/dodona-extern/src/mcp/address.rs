//! Where a server is: a program to start, or an address to talk to.

use super::words;
use crate::child::Program;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A program that speaks over its standard input and output.
    Program(Program),
    /// Streamable HTTP.
    Url(Url),
}

/// An address, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) text: String,
    /// Whether what is sent there can be read on the way.
    pub(crate) is_open: bool,
}

impl Address {
    /// Reads what stands behind `mcp:` in the roster.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with("http://") || text.starts_with("https://") {
            return Url::parse(text).map(Self::Url);
        }
        let mut words = words::split(text).map_err(|error| error.to_string())?;
        if words.is_empty() {
            return Err("it names no program and no address".to_owned());
        }
        let program = words.remove(0);
        if program.contains("://") {
            return Err(format!("`{program}` is neither http:// nor https://"));
        }
        let (args, directory) = (words, None);
        Ok(Self::Program(Program {
            program,
            args,
            directory,
        }))
    }
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let url = reqwest::Url::parse(text).map_err(|error| format!("`{text}`: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "a name or a password in an address would be shown in listings; \
                        name a header in the server's settings instead"
                    .to_owned(),
            );
        }
        let host = url.host_str().unwrap_or_default();
        let is_local = host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse()
                .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        Ok(Self {
            is_open: url.scheme() == "http" && !is_local,
            text: url.into(),
        })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => f.write_str(&url.text),
            Self::Program(Program { program, args, .. }) => {
                let words = std::iter::once(program).chain(args);
                f.write_str(&words::join(words.map(String::as_str)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_or_an_address_is_told_apart() {
        let address = Address::parse("npx -y 'a b'").unwrap();
        assert_eq!(address.to_string(), "npx -y \"a b\"");
        assert_eq!(Address::parse(&address.to_string()), Ok(address));
        for (text, is_open) in [
            ("http://127.0.0.1:1/mcp", false),
            ("http://localhost/mcp", false),
            ("http://[::1]:8/mcp", false),
            ("https://a.example/mcp", false),
            ("http://a.example/mcp", true),
        ] {
            let Address::Url(url) = Address::parse(text).unwrap() else {
                panic!("{text}");
            };
            assert_eq!((url.text.as_str(), url.is_open), (text, is_open));
        }
        for (text, why) in [
            ("", "names no program"),
            ("'a", "not closed"),
            ("ftp://x/", "neither http:// nor https://"),
            ("http://", "empty host"),
            ("https://me:secret@a.example/", "would be shown"),
        ] {
            let told = Address::parse(text).unwrap_err();
            assert!(told.contains(why), "{told}");
            assert!(!told.contains("secret"));
        }
    }
}
