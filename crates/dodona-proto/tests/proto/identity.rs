use dodona_proto::{CallId, MAX_NESTING, MethodName, PluginName, PluginPath, Scope, StreamId};
use proptest::prelude::*;

fn segment() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-z][a-z0-9_-]{0,20}").expect("a valid pattern")
}

fn path() -> impl Strategy<Value = PluginPath> {
    prop::collection::vec(segment(), 1..=MAX_NESTING + 1)
        .prop_map(|names| names.join(".").parse().expect("a path"))
}

fn call() -> impl Strategy<Value = CallId> {
    prop::collection::vec(1..u32::MAX, 0..=MAX_NESTING).prop_map(|ordinals| {
        ordinals
            .into_iter()
            .fold(StreamId::random().root_call(), |id, n| {
                id.child(n).expect("within the bound")
            })
    })
}

proptest! {
    #[test]
    fn a_path_reads_back_as_it_was_written(path in path()) {
        prop_assert_eq!(path.to_string().parse::<PluginPath>().expect("parses"), path.clone());
        prop_assert_eq!(path.segments().count(), path.depth());
        let json = serde_json::to_string(&path).expect("serialises");
        prop_assert_eq!(serde_json::from_str::<PluginPath>(&json).expect("parses"), path);
    }

    #[test]
    fn a_joined_path_lies_below_its_parent_and_nothing_else_does(path in path(), name in segment()) {
        if let Ok(child) = path.join(&name) {
            prop_assert!(child.starts_with(&path));
            prop_assert!(!path.starts_with(&child));
            prop_assert_eq!(child.depth(), path.depth() + 1);
            prop_assert_eq!(child.segments().next_back(), Some(name.as_str()));
        } else {
            prop_assert_eq!(path.depth(), MAX_NESTING + 1);
        }
        let longer: PluginPath = format!("{path}x").parse().expect("a path");
        prop_assert!(!longer.starts_with(&path), "a prefix is made of whole names");
    }

    #[test]
    fn any_text_is_a_path_or_an_error_and_never_a_panic(text in ".{0,200}") {
        if let Ok(path) = text.parse::<PluginPath>() {
            prop_assert_eq!(path.as_str(), text.as_str());
        }
        let _ = PluginName::new(&text);
        let _ = MethodName::new(&text);
        let _ = text.parse::<CallId>();
        let _ = text.parse::<Scope>();
    }

    #[test]
    fn a_call_id_reads_back_and_knows_its_family(id in call(), ordinal in 1..u32::MAX) {
        prop_assert_eq!(id.to_string().parse::<CallId>().expect("parses"), id);
        prop_assert!(id.is_within(&id.stream().root_call()));
        match id.child(ordinal) {
            Some(child) => {
                prop_assert_eq!(child.parent(), Some(id));
                prop_assert!(child.is_within(&id));
                prop_assert!(!id.is_within(&child));
            }
            None => prop_assert_eq!(id.depth(), MAX_NESTING),
        }
    }
}

#[test]
fn ids_sort_as_a_tree_is_read() {
    let root = StreamId::random().root_call();
    let child = |parent: CallId, n| parent.child(n).expect("shallow");
    let tree = [
        root,
        child(root, 1),
        child(child(root, 1), 1),
        child(child(root, 1), 2),
        child(root, 2),
        child(child(root, 2), 1),
    ];
    let mut sorted = tree;
    sorted.reverse();
    sorted.sort();
    assert_eq!(sorted, tree);
}

#[test]
fn one_id_has_one_spelling() {
    let id = StreamId::random();
    for other in [
        id.to_string().to_uppercase(),
        id.to_string().replace('-', ""),
        format!("{{{id}}}"),
        format!("{id}."),
        format!("{id}.0"),
        format!("{id}.01"),
        format!("{id}.+1"),
        format!("{id}.1."),
    ] {
        let parsed = other.parse::<CallId>();
        assert!(
            parsed.is_err() || parsed.as_ref().map(ToString::to_string) == Ok(other.clone()),
            "{other} → {parsed:?}"
        );
    }
}

#[test]
fn names_that_could_leave_a_directory_are_refused() {
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "a\0b",
        "A",
        "é",
        "-a",
        "_a",
        "9a",
        "a b",
        &"x".repeat(65),
    ] {
        assert!(PluginName::new(name).is_err(), "{name:?} was accepted");
    }
}

#[test]
fn a_grant_covers_what_it_says_and_no_more() {
    let scope = |text: &str| text.parse::<Scope>().expect("a scope");
    assert!(scope("*").covers(&scope("vault:write")));
    assert!(scope("vault:*").covers(&scope("vault:write")));
    assert!(scope("vault:read").covers(&scope("vault:read")));
    assert!(!scope("vault:read").covers(&scope("vault:write")));
    assert!(!scope("vault:*").covers(&scope("vaultx:read")));
    assert!(!scope("vault:read").covers(&scope("vault:readmore")));
    for text in ["", "vault", "vault:", ":read", "*:read", "vault:re*d", "**"] {
        assert!(text.parse::<Scope>().is_err(), "{text:?} was accepted");
    }
}
