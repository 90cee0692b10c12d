//! Lists in pages. A cursor names the last entry that was shown, so that a list that changes
//! meanwhile is neither shown twice nor cut short.

use rmcp::ErrorData;

/// What a cursor begins with.
const AFTER: &str = "after:";

/// One page of a list that is in order of its keys, and the cursor of the next.
pub(super) fn of<'a, T>(
    entries: &'a [T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
    size: usize,
) -> Result<(&'a [T], Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let last = cursor.strip_prefix(AFTER).ok_or_else(unknown)?;
            entries.partition_point(|entry| key(entry) <= last)
        }
    };
    let rest = &entries[start..];
    let page = &rest[..rest.len().min(size)];
    let next = match (rest.len() > size, page.last()) {
        (true, Some(last)) => Some(format!("{AFTER}{}", key(last))),
        _ => None,
    };
    Ok((page, next))
}

fn unknown() -> ErrorData {
    ErrorData::invalid_params("the cursor is none that this server gave", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(entries: &[&str], size: usize) -> Vec<Vec<String>> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = of(entries, |entry| entry, cursor.as_deref(), size).unwrap();
            pages.push(page.iter().map(|entry| (*entry).to_owned()).collect());
            match next {
                Some(next) => cursor = Some(next),
                None => return pages,
            }
        }
    }

    #[test]
    fn pages_have_everything_once_and_the_last_has_no_cursor() {
        assert_eq!(pages(&[], 2), [Vec::<String>::new()]);
        assert_eq!(pages(&["a", "b"], 2), [["a", "b"]]);
        assert_eq!(pages(&["a", "b", "c"], 2), [vec!["a", "b"], vec!["c"]]);
    }

    #[test]
    fn an_entry_that_is_gone_does_not_lose_the_place() {
        let (page, next) = of(&["a", "c", "d"], |entry| entry, Some("after:b"), 1).unwrap();
        assert_eq!((page, next.as_deref()), (&["c"][..], Some("after:c")));
    }

    #[test]
    fn a_cursor_of_somebody_elses_is_refused() {
        let refused = of(&["a"], |entry| entry, Some("17"), 1).unwrap_err();
        assert_eq!(refused.code.0, -32602);
    }
}
