//! Context windows of well-known models.

/// Beginnings of model names and the tokens their windows have, as their providers document them.
/// The longest beginning that fits counts.
const WINDOWS: &[(&str, u32)] = &[
    ("claude-", 200_000),
    ("gemini-1.5-", 1_000_000),
    ("gemini-2", 1_000_000),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// The context window of a model by the name that its provider gives it. `None` if the model is
/// not known; then nothing is assumed.
pub(crate) fn known_window(model: &str) -> Option<u32> {
    // Gateways put the provider before the name: `openai/gpt-4o`.
    let name = model.rsplit('/').next().unwrap_or(model);
    let fits = WINDOWS.iter().filter(|(start, _)| name.starts_with(start));
    fits.max_by_key(|(start, _)| start.len())
        .map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts() {
        assert_eq!(known_window("gpt-4-0613"), Some(8_192));
        assert_eq!(known_window("gpt-4o-mini"), Some(128_000));
        assert_eq!(known_window("openai/gpt-4.1-mini"), Some(1_000_000));
        assert_eq!(known_window("claude-sonnet-4-5"), Some(200_000));
        assert_eq!(known_window("qwen3-8b"), None);
    }
}
