//! Links that keep leading where they did when a note moves.

use super::links::{Links, without_ending};
use crate::parse::markdown::{self, Form, Placed};

/// A note that moves, and where links lead before and after.
pub(super) struct Move<'m> {
    pub(super) from: &'m str,
    pub(super) to: &'m str,
    pub(super) before: &'m Links,
    pub(super) after: &'m Links,
}

impl Move<'_> {
    /// Where a note is after the move.
    pub(super) fn path<'p>(&'p self, path: &'p str) -> &'p str {
        if path == self.from { self.to } else { path }
    }

    /// Whether a link may have to be written anew, however it is written.
    pub(super) fn may_stray(&self, note: &str, target: &str) -> bool {
        let forms = [Form::Wiki, Form::Markdown];
        forms
            .iter()
            .any(|form| self.astray(note, target, *form).is_some())
    }

    /// Where a link of a note has to lead from now on, if it would not by itself.
    fn astray(&self, note: &str, target: &str, form: Form) -> Option<&str> {
        if target.is_empty() {
            return None;
        }
        let meant = self.path(self.before.resolve(note, target)?);
        let leads = self.leads(note, target, form);
        (leads != Some(meant)).then_some(meant)
    }

    /// Where a link leads after the move. One in Markdown that is a path stays one, because other
    /// programs follow no names.
    fn leads(&self, note: &str, target: &str, form: Form) -> Option<&str> {
        let is_path = form != Form::Wiki && self.before.by_path(note, target).is_some();
        match is_path {
            true => self.after.by_path(self.path(note), target),
            false => self.after.resolve(self.path(note), target),
        }
    }

    /// The text of a note with its links put right; `None` where they are.
    pub(super) fn rewrite(&self, note: &str, text: &str) -> Option<String> {
        let mut written = String::with_capacity(text.len() + 64);
        let mut done = 0;
        for placed in markdown::links(text) {
            if let Some(meant) = self.astray(note, &placed.link.target, placed.form) {
                written.push_str(&text[done..placed.target.start]);
                written.push_str(&self.target(note, &placed, meant));
                done = placed.target.end;
                // A link by another name of the note goes on showing that.
                let rest = &text[done..];
                let shows = rest.starts_with("]]") && self.is_alias(&placed);
                if shows {
                    written.push('|');
                    written.push_str(&text[placed.target]);
                }
            }
        }
        if done == 0 {
            return None;
        }
        written.push_str(&text[done..]);
        Some(written)
    }

    /// Whether a wikilink is written with a name that only the frontmatter of its note has.
    fn is_alias(&self, placed: &Placed) -> bool {
        placed.form == Form::Wiki && self.before.is_alias(&placed.link.target)
    }

    /// A target as its writer would have written it: by name, by the path from the root or from the
    /// note, with an ending or without. The path from the note is never mistaken for another.
    fn target(&self, note: &str, placed: &Placed, meant: &str) -> String {
        let written = placed.link.target.as_str();
        let note = self.path(note);
        let relative = relative(note, meant);
        let ended = without_ending(written) != written;
        let trim = |path: &str| match ended {
            true => path.to_owned(),
            false => without_ending(path).to_owned(),
        };
        let candidates = match placed.form {
            Form::Wiki if !written.contains('/') => {
                let name = meant.rsplit('/').next().unwrap_or(meant);
                vec![trim(name), trim(meant)]
            }
            Form::Wiki if written.starts_with('.') => vec![trim(&dotted(&relative))],
            Form::Wiki if written.starts_with('/') => vec![format!("/{}", trim(meant))],
            Form::Wiki => vec![trim(meant)],
            _ if written.starts_with('/') => vec![format!("/{meant}")],
            _ if written.starts_with("./") => vec![dotted(&relative)],
            _ => Vec::new(),
        };
        let leads = |candidate: &String| self.after.resolve(note, candidate) == Some(meant);
        let chosen = candidates.into_iter().find(leads);
        let chosen = chosen.unwrap_or(relative);
        match placed.form {
            Form::Wiki | Form::Angled => chosen,
            Form::Markdown => encoded(&chosen),
        }
    }
}

/// The path from one note to another.
pub(super) fn relative(from: &str, to: &str) -> String {
    let mut from: Vec<&str> = from.split('/').collect();
    from.pop();
    let to: Vec<&str> = to.split('/').collect();
    let (_, folders) = to.split_last().unwrap_or((&"", &[]));
    let shared = from.iter().zip(folders).take_while(|(a, b)| a == b).count();
    let up = from.len() - shared;
    let parts: Vec<&str> = std::iter::repeat_n("..", up)
        .chain(to[shared..].iter().copied())
        .collect();
    parts.join("/")
}

fn dotted(relative: &str) -> String {
    match relative.starts_with('.') {
        true => relative.to_owned(),
        false => format!("./{relative}"),
    }
}

/// What cannot stand in a Markdown link by itself, as `%20` and the like.
pub(super) fn encoded(path: &str) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            // A colon would look like the end of a URL's scheme.
            ' ' | '(' | ')' | '<' | '>' | '#' | '?' | '%' | '\\' | '"' | '[' | ']' | '`' | '*'
            | '|' | ':' => {
                let _ = write!(text, "%{:02X}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn links(notes: &[&str], aliases: &[(&str, &str)]) -> Links {
        let aliases = aliases
            .iter()
            .map(|(alias, path)| ((*alias).to_owned(), (*path).to_owned()));
        Links::new(notes.iter().copied(), aliases.collect())
    }

    /// What becomes of a note's text when another, or itself, moves.
    fn moved(notes: &[&str], from: &str, to: &str, note: &str, text: &str) -> String {
        let aliases = [("Ada Lovelace", "people/ada.md")];
        let after: Vec<&str> = notes
            .iter()
            .map(|path| if *path == from { to } else { path })
            .collect();
        let renamed = aliases.map(|(alias, path)| (alias, if path == from { to } else { path }));
        let (before, after) = (links(notes, &aliases), links(&after, &renamed));
        let moving = Move {
            from,
            to,
            before: &before,
            after: &after,
        };
        moving
            .rewrite(note, text)
            .unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn links_are_written_anew_as_they_were_written() {
        let notes = [
            "index.md",
            "auth/Login.md",
            "auth/deep/x.md",
            "web/login.md",
            "people/ada.md",
        ];
        let to = "people/sign in.md";
        for (note, text, expected) in [
            // By name, by path, with an ending, with heading and alias, in a table.
            ("auth/deep/x.md", "[[Login]]", "[[sign in]]"),
            (
                "auth/deep/x.md",
                "[[Login#Refresh|the login]]",
                "[[sign in#Refresh|the login]]",
            ),
            (
                "index.md",
                "[[auth/login]] and [[auth/Login.md]]",
                "[[people/sign in]] and [[people/sign in.md]]",
            ),
            (
                "auth/deep/x.md",
                "[[../Login|x]]",
                "[[../../people/sign in|x]]",
            ),
            (
                "index.md",
                "| [[auth/Login\\|x]] |",
                "| [[people/sign in\\|x]] |",
            ),
            ("index.md", "![[auth/Login]]", "![[people/sign in]]"),
            // Markdown.
            (
                "auth/deep/x.md",
                "[a](../Login.md#refresh \"t\")",
                "[a](../../people/sign%20in.md#refresh \"t\")",
            ),
            (
                "index.md",
                "[a](./auth/Login.md)",
                "[a](./people/sign%20in.md)",
            ),
            (
                "index.md",
                "[a](</auth/Login.md>)",
                "[a](</people/sign in.md>)",
            ),
            (
                "index.md",
                "[a]: auth/Login.md\r\n",
                "[a]: people/sign%20in.md\r\n",
            ),
            // What is no link, or leads elsewhere, stays.
            (
                "index.md",
                "`[[auth/Login]]` [[nowhere]] <https://auth/Login.md>",
                "`[[auth/Login]]` [[nowhere]] <https://auth/Login.md>",
            ),
            (
                "index.md",
                "```\n[[auth/Login]]\n```\n",
                "```\n[[auth/Login]]\n```\n",
            ),
            (
                "web/login.md",
                "[[login]] [[Ada Lovelace]]",
                "[[login]] [[Ada Lovelace]]",
            ),
        ] {
            assert_eq!(
                moved(&notes, "auth/Login.md", to, note, text),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_links_of_the_note_that_moves_lead_where_they_did() {
        let notes = ["a/x.md", "a/y.md", "b/y.md", "people/ada.md"];
        let text = "[[y]] [y](y.md) [[#Here]] [[x]] [me](x.md) [[Ada Lovelace]]";
        let expected = "[[a/y]] [y](../a/y.md) [[#Here]] [[z]] [me](z.md) [[Ada Lovelace]]";
        assert_eq!(moved(&notes, "a/x.md", "b/z.md", "a/x.md", text), expected);
    }

    #[test]
    fn a_note_that_comes_nearer_takes_no_links_from_another() {
        let notes = ["x/index.md", "y/topic.md", "far/away/topic.md"];
        let text = "[[topic]]";
        assert_eq!(
            moved(
                &notes,
                "far/away/topic.md",
                "x/topic.md",
                "x/index.md",
                text
            ),
            "[[y/topic]]"
        );
        // A name that another note has from now on.
        let notes = ["index.md", "people/ada.md", "b.md"];
        let text = "[[Ada Lovelace]]";
        let expected = "[[ada|Ada Lovelace]]";
        assert_eq!(
            moved(&notes, "b.md", "Ada Lovelace.md", "index.md", text),
            expected
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Notes in few folders with few names, so that they are mistaken for each other often, and
        /// texts full of links: afterwards each link leads to the note it led to before.
        #[test]
        fn whatever_moves_every_link_leads_where_it_did(
            names in prop::collection::btree_set("([abA]/){0,2}[xyX]\\.(md|markdown)", 2..7),
            to in "([abc]/){0,2}[xyzZ]\\.md",
            texts in prop::collection::vec("(\\[\\[(\\.\\./|/|\\./)?([abA]/)?[xyXZ](\\.md)?(#h)?(\\|t)?\\]\\]|\\[l\\]\\((\\.\\./|/)?([ab]/)?[xyX]\\.md\\)|[ \r\n`]){0,8}", 7),
        ) {
            let notes: Vec<&str> = names.iter().map(String::as_str).collect();
            prop_assume!(!notes.contains(&to.as_str()));
            let from = notes[0];
            let renamed: Vec<&str> = notes.iter().map(|path| if *path == from { &to } else { *path }).collect();
            let (before, after) = (links(&notes, &[]), links(&renamed, &[]));
            let moving = Move { from, to: &to, before: &before, after: &after };
            for (note, text) in notes.iter().zip(&texts) {
                let written = moving.rewrite(note, text).unwrap_or_else(|| text.clone());
                let (old, new) = (markdown::links(text), markdown::links(&written));
                prop_assert_eq!(old.len(), new.len());
                for (old, new) in old.iter().zip(&new) {
                    prop_assert_eq!(&old.link.heading, &new.link.heading);
                    if let Some(meant) = before.resolve(note, &old.link.target) && !old.link.target.is_empty() {
                        if old.form != Form::Wiki && before.by_path(note, &old.link.target).is_some() {
                            prop_assert_eq!(after.by_path(moving.path(note), &new.link.target), Some(moving.path(meant)));
                        }
                        let leads = after.resolve(moving.path(note), &new.link.target);
                        prop_assert_eq!(leads, Some(moving.path(meant)), "{} became {}", text, written);
                    }
                }
            }
        }
    }
}
