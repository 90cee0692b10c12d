//! Randomness that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that chooses the seed: a number, or `clock`.
const SEED: &str = "DODONA_SEED";

/// The seed of a run that chooses none: what passed once passes again until something changes.
const USUAL: u64 = 20_261_116;

/// A small generator of numbers (splitmix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// A generator with a known beginning.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of this run: the number in `DODONA_SEED`, a new one with `DODONA_SEED=clock`, else
    /// always the same. Tests print it.
    ///
    /// # Panics
    ///
    /// When `DODONA_SEED` is neither.
    pub fn seed() -> u64 {
        match std::env::var(SEED).as_deref() {
            Err(_) => USUAL,
            Ok("clock") => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                now.map_or(0, |since| u64::from(since.subsec_nanos()))
            }
            Ok(number) => number.parse().expect("DODONA_SEED is a number or `clock`"),
        }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is above zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}
