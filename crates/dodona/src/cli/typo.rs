//! Suggestions for mistyped commands.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::Cli;
use crate::nearest::nearest;

/// Prints an error of the command line, with a suggestion where clap has none, and exits.
///
/// clap compares words by their common letters in order, so that it finds nothing for two letters
/// that changed places (`aks`).
pub(super) fn exit(mut error: clap::Error) -> ! {
    if error.kind() == ErrorKind::InvalidSubcommand
        && error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
    {
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        if let Some(meant) = suggestion(&Cli::command(), &words, typed) {
            let meant = ContextValue::Strings(vec![meant]);
            error.insert(ContextKind::SuggestedSubcommand, meant);
        }
    }
    error.exit()
}

/// The subcommand nearest to what was typed, of the command in whose place it was typed.
fn suggestion(root: &Command, words: &[OsString], typed: &str) -> Option<String> {
    let mut parent = root;
    for word in words {
        match word.to_str().and_then(|word| parent.find_subcommand(word)) {
            Some(found) => parent = found,
            None if word == typed => break,
            None => {}
        }
    }
    let names = parent
        .get_subcommands()
        .flat_map(Command::get_name_and_visible_aliases);
    nearest(typed, names.collect::<Vec<_>>()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_letters_are_recognised_at_every_level() {
        let suggest = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let typed = line.rsplit(' ').next().unwrap();
            suggestion(&Cli::command(), &words, typed)
        };
        assert_eq!(suggest("aks").as_deref(), Some("ask"));
        assert_eq!(suggest("rules lsit").as_deref(), Some("list"));
        assert_eq!(suggest("--color never doctro").as_deref(), Some("doctor"));
        assert_eq!(suggest("elephant"), None);
    }
}
