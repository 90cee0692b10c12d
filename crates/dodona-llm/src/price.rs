//! What tokens cost.

use dodona_proto::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// What is read.
    pub input: f64,
    /// What is written.
    pub output: f64,
    /// What is read from the provider's cache; like other input where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// What is put into the provider's cache; like other input where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// What an answer cost, in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let plain = usage
            .input_tokens
            .saturating_sub(usage.cached_input_tokens)
            .saturating_sub(usage.cache_write_tokens);
        let parts = [
            (plain, self.input),
            (
                usage.cached_input_tokens,
                self.cached_input.unwrap_or(self.input),
            ),
            (
                usage.cache_write_tokens,
                self.cache_write.unwrap_or(self.input),
            ),
            (usage.output_tokens, self.output),
        ];
        #[expect(
            clippy::cast_precision_loss,
            reason = "no usage comes near 2^53 tokens"
        )]
        let cost = |(tokens, price): (u64, f64)| tokens as f64 * price;
        parts.into_iter().map(cost).sum::<f64>() / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 500_000,
            cached_input_tokens: 200_000,
            cache_write_tokens: 300_000,
            reasoning_tokens: 100_000,
        };
        let mut price = Price {
            input: 3.0,
            output: 15.0,
            cached_input: Some(0.3),
            cache_write: Some(3.75),
        };
        assert!((price.cost(&usage) - (1.5 + 7.5 + 0.06 + 1.125)).abs() < 1e-9);
        price.cached_input = None;
        price.cache_write = None;
        assert!((price.cost(&usage) - (3.0 + 7.5)).abs() < 1e-9);
    }
}
