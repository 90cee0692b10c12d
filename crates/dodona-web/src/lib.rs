//! The page, as files in the program.
//!
//! Start from [`file()`] and [`index()`]. The page's source is in `web/`. This crate's build script runs
//! Vite on it, or uses a page that is already built, and compiles the files into the program, each also
//! compressed. If there is no page, [`missing`] returns the reason and the index is a page that shows it.
//!
//! ```
//! let index = dodona_web::index();
//! assert_eq!(index.content_type(), "text/html; charset=utf-8");
//! assert!(!index.is_immutable(), "what it refers to changes with every build");
//! assert!(dodona_web::file("no/such/file").is_none());
//! ```
//!
//! # What it does not do
//!
//! It knows no HTTP: which headers a file is sent with is the server's affair. It builds nothing at run
//! time and reads no file then.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Where it is, without a slash in front.
    pub path: &'static str,
    /// Tells its content from any other, in quotes.
    pub tag: &'static str,
    /// Its content.
    pub plain: &'static [u8],
    /// The same, compressed with gzip.
    pub gzip: Option<&'static [u8]>,
    /// The same, compressed with brotli.
    pub brotli: Option<&'static [u8]>,
}

impl File {
    /// What it is, for the header of that name.
    pub fn content_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "json" | "webmanifest" => "application/json",
            "woff2" => "font/woff2",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// Whether its name says what is in it, so that whoever has it need not ask again.
    pub fn is_immutable(&self) -> bool {
        self.path.starts_with("assets/")
    }
}

/// The page itself.
pub fn index() -> &'static File {
    file("index.html").expect("every build has an index")
}

/// A file by its path.
pub fn file(path: &str) -> Option<&'static File> {
    let place = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    FILES.get(place)
}

/// All files.
pub fn files() -> &'static [File] {
    FILES
}

/// Why the page is not part of this build, where it is not.
pub fn missing() -> Option<&'static str> {
    MISSING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_by_its_path() {
        for known in files() {
            let found = file(known.path).map(|file| file.tag);
            assert_eq!(found, Some(known.tag), "{}", known.path);
        }
    }

    #[test]
    fn what_the_index_refers_to_is_there() {
        let index = String::from_utf8_lossy(index().plain);
        let references = index.split("=\"/").skip(1);
        let paths: Vec<&str> = references
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(!paths.is_empty(), "{index}");
        for path in paths {
            assert!(file(path).is_some(), "{path}");
        }
    }

    #[test]
    fn nothing_in_the_index_is_inline_as_the_policy_allows_none() {
        let index = String::from_utf8_lossy(index().plain);
        assert!(!index.contains("<style"), "{index}");
        assert!(!index.contains(" style="), "{index}");
        let scripts = index.split("<script").skip(1);
        for script in scripts {
            assert!(script.trim_start().contains("src=\"/"), "{script}");
        }
    }

    #[test]
    fn what_a_build_names_by_content_is_compressed_if_it_is_text() {
        let text = files()
            .iter()
            .filter(|file| file.is_immutable() && file.content_type().starts_with("text/"));
        for file in text.filter(|file| file.plain.len() > 1024) {
            let packed = file.brotli.map(<[u8]>::len);
            assert!(
                packed.is_some_and(|packed| packed < file.plain.len()),
                "{}",
                file.path
            );
        }
    }
}
