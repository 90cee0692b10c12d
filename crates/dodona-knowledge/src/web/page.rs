//! From HTML to Markdown that can be read.
//!
//! Tags are taken as they come, without a tree: a page cannot nest so deep that anything grows or
//! recurses with it. What a page is about is in its `main` or `article` where it has one; menus,
//! forms, scripts and the like are left out.

use std::cell::RefCell;
use std::ops::Range;

use dodona_plugin::http::Url;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use super::ink::Ink;

/// A page that can be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: Option<String>,
    pub(super) markdown: String,
}

/// What is in these is not what a page says.
const LEFT_OUT: [&str; 12] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select",
    "button", "dialog", "form",
];

/// What is in these is about other pages.
const AROUND: [&str; 4] = ["nav", "aside", "footer", "header"];

/// A part of a page that is shorter than this share of the whole is not what it is about.
const LEAST_SHARE: usize = 10;

/// Makes a page of HTML; links lead from `base`.
pub(super) fn readable(html: &str, base: &Url) -> Page {
    let page = write(html, base, &[&LEFT_OUT[..], &AROUND[..]].concat());
    match page.markdown.trim().is_empty() {
        // A page that is all menu, or that never closes one.
        true => Page {
            title: page.title,
            ..write(html, base, &LEFT_OUT)
        },
        false => page,
    }
}

fn write(html: &str, base: &Url, left_out: &[&'static str]) -> Page {
    let sink = Sink(RefCell::new(Reading {
        ink: Ink::new(base.clone()),
        left_out: left_out.to_vec(),
        skipping: None,
        title: None,
        in_title: false,
        parts: Vec::new(),
        open: Vec::new(),
    }));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

struct Sink(RefCell<Reading>);

/// A page while it is read.
struct Reading {
    ink: Ink,
    left_out: Vec<&'static str>,
    /// What is being left out, and how often it was opened within itself.
    skipping: Option<(String, usize)>,
    title: Option<String>,
    in_title: bool,
    /// What `main` and `article` brought.
    parts: Vec<Range<usize>>,
    /// Where those began that are open.
    open: Vec<usize>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut reading = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) => reading.tag(&tag),
            Token::CharacterTokens(text) => {
                reading.text(&text);
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Reading {
    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if self.skipping.is_none() {
            self.ink.text(text);
        }
    }

    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let opens = tag.kind == TagKind::StartTag;
        if self.skipping.is_some() {
            self.skip(name, opens && !tag.self_closing);
        } else if opens && self.left_out.contains(&name) && !tag.self_closing {
            self.skipping = Some((name.to_owned(), 1));
        } else {
            self.write(name, tag, opens);
        }
        match name {
            _ if !opens => TokenSinkResult::Continue,
            "script" => TokenSinkResult::RawData(ScriptData),
            "title" | "textarea" => TokenSinkResult::RawData(Rcdata),
            "style" | "iframe" | "noembed" | "noframes" | "xmp" => {
                TokenSinkResult::RawData(Rawtext)
            }
            _ => TokenSinkResult::Continue,
        }
    }

    fn skip(&mut self, name: &str, opens: bool) {
        let Some((left_out, depth)) = &mut self.skipping else {
            return;
        };
        if name != left_out {
            return;
        }
        match opens {
            true => *depth += 1,
            false => *depth -= 1,
        }
        if *depth == 0 {
            self.skipping = None;
        }
    }

    fn write(&mut self, name: &str, tag: &Tag, opens: bool) {
        match name {
            // The first one counts: a picture may have another.
            "title" => self.in_title = opens && self.title.is_none(),
            "main" | "article" => {
                self.ink.block();
                match opens {
                    true => self.open.push(self.ink.len()),
                    false => {
                        let part = self.open.pop().map(|start| start..self.ink.len());
                        self.parts.extend(part);
                    }
                }
            }
            _ => {
                let attribute = |wanted: &str| {
                    let of = |attribute: &&html5ever::Attribute| &*attribute.name.local == wanted;
                    tag.attrs
                        .iter()
                        .find(of)
                        .map(|found| found.value.to_string())
                };
                self.ink.tag(name, opens, attribute);
            }
        }
    }

    fn finish(mut self) -> Page {
        let end = self.ink.len();
        self.parts
            .extend(self.open.drain(..).map(|start| start..end));
        let text = self.ink.finish();
        let largest = self.parts.into_iter().max_by_key(ExactSizeIterator::len);
        let about = largest
            .filter(|part| part.len() > text.len() / LEAST_SHARE)
            .and_then(|part| text.get(part.start..part.end.min(text.len())))
            .unwrap_or(&text);
        let title = self
            .title
            .map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        Page {
            title: title.filter(|title| !title.is_empty()),
            markdown: format!("{}\n", about.trim()).trim_start().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> Page {
        readable(html, &Url::parse("https://example.org/a/b.html").unwrap())
    }

    #[test]
    fn a_page_becomes_markdown() {
        let page = page(
            r#"<!doctype html><html><head><title> The &amp; title
            </title><style>p { color: red }</style><script>if (a < b) { "</p>" }</script></head>
            <body><nav><a href="/">Home</a></nav>
            <main><h1>Big <em>news</em></h1>
            <p>First   paragraph with <b>bold</b>, <code>code</code> and
            <a href="../x?y=1#z">a link</a>, <a href="javascript:alert(1)">none</a>.<br>Next line.</p>
            <ul><li>one</li><li>two<ol><li>inner</li><li>more</li></ol></li></ul>
            <blockquote><p>quoted</p><p>twice</p></blockquote>
            <pre><code>fn main() {
    x &lt; y
}</code></pre>
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2 | 3</td></tr></table>
            <img src="/i.png" alt="a picture"><hr><p>End&nbsp;of it.</p></main>
            <footer>© nobody</footer></body></html>"#,
        );
        assert_eq!(page.title.as_deref(), Some("The & title"));
        let expected = "# Big *news*\n\nFirst paragraph with **bold**, `code` and [a link](https://example.org/x?y=1#z), none.\nNext line.\n\n- one\n- two\n  1. inner\n  2. more\n\n> quoted\n>\n> twice\n\n```\nfn main() {\n    x < y\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 \\| 3 |\n\n![a picture](https://example.org/i.png)\n\n---\n\nEnd of it.\n";
        assert_eq!(page.markdown, expected);
    }

    #[test]
    fn pages_that_are_broken_or_hostile_become_something() {
        let deep = |tag: &str| format!("{}x", format!("<{tag}>").repeat(100_000));
        for html in [
            "b",
            "div",
            "blockquote",
            "ul><li",
            "table><tr><td",
            "a href='/'",
            "main",
            "nav",
            "pre",
            "select",
        ] {
            let page = page(&deep(html));
            assert!(
                page.markdown.len() < 3_000_000,
                "{html} grew to {}",
                page.markdown.len()
            );
        }
        for html in [
            "",
            "<",
            "</",
            "<!--",
            "<a href=\"",
            "&#x110000;",
            "<script>",
            "<title>",
            "\0",
            "</main></ul></a></table>",
            "<td>x</td>",
        ] {
            let _ = page(html);
        }
        assert_eq!(page("<nav>all of it</nav>").markdown, "all of it\n");
        assert_eq!(page("just text").markdown, "just text\n");
    }

    #[test]
    fn what_a_page_is_about_is_its_largest_article() {
        let page = page(
            "<body>around<article>short</article><article>the longer one of them</article>below</body>",
        );
        assert_eq!(page.markdown, "the longer one of them\n");
    }
}
