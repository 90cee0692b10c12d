//! Names of tools that every client takes: `[a-zA-Z0-9_-]`, at most 64 of them.

use std::collections::HashSet;

use dodona_proto::MethodName;

/// The longest that strict clients take.
const LONGEST: usize = 64;

/// How much of a name is kept where it needs a number to be told apart.
const KEPT: usize = LONGEST - 9;

/// The name of a method's tool, which agents know it by too. Where that is too long, or another
/// tool has it already, its end gives way to a number made from the whole.
pub(super) fn of(method: &MethodName, taken: &HashSet<String>) -> String {
    let usual = method.as_str().replace('.', "_");
    if usual.len() <= LONGEST && !taken.contains(&usual) {
        return usual;
    }
    // Names are ASCII.
    let kept = &usual[..usual.len().min(KEPT)];
    format!("{kept}_{:08x}", fnv(method.as_str()))
}

/// FNV-1a: the same on every machine and in every release, as a name has to be.
fn fnv(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(methods: &[&str]) -> Vec<String> {
        let mut taken = HashSet::new();
        let mut names = Vec::new();
        for method in methods {
            let name = of(&MethodName::new(method).unwrap(), &taken);
            taken.insert(name.clone());
            names.push(name);
        }
        names
    }

    #[test]
    fn a_dot_becomes_an_underscore() {
        assert_eq!(named(&["vault.search"]), ["vault_search"]);
    }

    #[test]
    fn two_methods_never_share_a_name_and_a_long_one_is_cut() {
        let long = format!("{}.{}", "p".repeat(40), "v".repeat(40));
        let names = named(&["a.b_c", "a_b.c", &long, &format!("{long}w")]);
        assert_eq!(names[0], "a_b_c");
        assert!(names[1].starts_with("a_b_c_"), "{names:?}");
        assert_ne!(names[2], names[3]);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for name in &names {
            assert!(
                name.len() <= LONGEST && name.chars().all(is_plain),
                "{name}"
            );
        }
    }
}
