//! How long to wait before a process is started again.

use std::time::Duration;

/// The first pause after a failure that was not the first, and the longest.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

/// How long to wait after so many failures. After the first not at all: most ends are accidents.
pub(crate) fn pause_after(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        more => PAUSE.saturating_mul(1 << (more - 1).min(16)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_a_longest() {
        let millis: Vec<u128> = (0..9).map(|n| pause_after(n).as_millis()).collect();
        assert_eq!(
            millis,
            [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]
        );
        assert_eq!(pause_after(u32::MAX), LONGEST);
    }
}
