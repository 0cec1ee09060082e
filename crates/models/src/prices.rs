//! Prices of models: the `prices` section of the configuration, and list prices of providers. A
//! model without a price has none, rather than a price of 0.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Prices of models: the `prices` section of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelPrices {
    /// Currency of all prices, for display only.
    #[schemars(length(min = 1, max = 12))]
    pub currency: String,
    /// Prices by full model name, such as `openai/gpt-4o-mini`. A name that ends in `*` matches by
    /// prefix; the longest match applies.
    pub models: BTreeMap<String, ModelPrice>,
    /// Use the providers' list prices, in USD, for recorded sessions whose model matches no name in
    /// `models`. Never used for self-test runs.
    #[serde(skip_serializing_if = "is_default")]
    pub list: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_default(list: &bool) -> bool {
    *list
}

/// The price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Price per million input tokens.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub input: f64,
    /// Price per million output tokens, including thinking.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub output: f64,
    /// Price per million input tokens written to a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub cache_write: Option<f64>,
    /// Price per million input tokens read from a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub cache_read: Option<f64>,
    /// Prices for tokens of each kind beyond the first 200,000 of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_200k: Option<LongContextPrice>,
}

/// Prices for tokens beyond the first 200,000 of a call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongContextPrice {
    /// Price per million input tokens.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub input: f64,
    /// Price per million output tokens, including thinking.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub output: f64,
    /// Price per million input tokens written to a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub cache_write: Option<f64>,
    /// Price per million input tokens read from a cache. Default: `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub cache_read: Option<f64>,
}

/// Token counts of calls by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PricedTokens {
    /// Input tokens, excluding those written to or read from a cache.
    pub input: u64,
    /// Output tokens, including thinking.
    pub output: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
}

impl std::ops::AddAssign for PricedTokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
    }
}

/// Number of tokens above which the long-context price applies.
const LONG_CONTEXT_TOKENS: u64 = 200_000;

impl PricedTokens {
    /// Returns the tokens of one call beyond the first 200,000 of each kind.
    #[must_use]
    pub fn beyond_200k(self) -> Self {
        Self {
            input: self.input.saturating_sub(LONG_CONTEXT_TOKENS),
            output: self.output.saturating_sub(LONG_CONTEXT_TOKENS),
            cache_write: self.cache_write.saturating_sub(LONG_CONTEXT_TOKENS),
            cache_read: self.cache_read.saturating_sub(LONG_CONTEXT_TOKENS),
        }
    }
}

impl Default for ModelPrices {
    fn default() -> Self {
        Self { currency: USD.to_owned(), models: BTreeMap::new(), list: true }
    }
}

impl ModelPrice {
    /// Creates a price without cache or long-context prices.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_write: None, cache_read: None, above_200k: None }
    }

    /// Computes the cost of tokens; `long` counts those beyond the first 200,000 of a call.
    ///
    /// As in ccusage, each kind of tokens is counted separately, and the higher price applies only
    /// to the tokens above the limit.
    pub fn cost(&self, tokens: PricedTokens, long: PricedTokens) -> f64 {
        let tier = self.above_200k.unwrap_or(LongContextPrice {
            input: self.input,
            output: self.output,
            cache_write: self.cache_write,
            cache_read: self.cache_read,
        });
        let kinds = [
            (tokens.input, long.input, self.input, tier.input),
            (tokens.output, long.output, self.output, tier.output),
            (
                tokens.cache_write,
                long.cache_write,
                self.cache_write.unwrap_or(self.input),
                tier.cache_write.unwrap_or(tier.input),
            ),
            (
                tokens.cache_read,
                long.cache_read,
                self.cache_read.unwrap_or(self.input),
                tier.cache_read.unwrap_or(tier.input),
            ),
        ];
        // A part can be no larger than the whole, whatever a server reports.
        let money = kinds.map(|(all, long, price, higher)| {
            count(all.saturating_sub(long)) * price + count(all.min(long)) * higher
        });
        money.iter().sum::<f64>() / 1e6
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
fn count(tokens: u64) -> f64 {
    tokens as f64
}

impl ModelPrices {
    /// Returns the configured price of a model.
    pub fn price_of(&self, model: &str) -> Option<ModelPrice> {
        longest_match(model, self.models.iter().map(|(name, price)| (name.as_str(), *price)))
    }

    /// Returns the price of a model in a recorded session. Falls back to the provider's list price,
    /// for which a provider or region before the name (`anthropic/…`) is ignored.
    pub fn recorded_price_of(&self, model: &str) -> Option<ModelPrice> {
        let own = self.price_of(model);
        // List prices are in USD, and nothing converts them.
        if own.is_some() || !self.list || self.currency != USD {
            return own;
        }
        let name = model.rsplit('/').next().unwrap_or(model);
        // Bedrock names, such as `us.anthropic.claude-…`.
        let name = name.rsplit_once("anthropic.").map_or(name, |(_, name)| name);
        longest_match(name, LIST_PRICES.iter().copied())
    }
}

/// Returns the price with the longest matching name; exact names take precedence over prefixes.
fn longest_match<'a>(
    model: &str,
    prices: impl Iterator<Item = (&'a str, ModelPrice)>,
) -> Option<ModelPrice> {
    let fits = |name: &str| match name.strip_suffix('*') {
        Some(start) => model.starts_with(start),
        None => model == name,
    };
    let found = prices.filter(|(name, _)| fits(name));
    found.max_by_key(|(name, _)| (!name.ends_with('*'), name.len())).map(|(_, price)| price)
}

/// The currency of list prices, and of the costs that agents state.
pub const USD: &str = "USD";

/// List prices of providers per million tokens, from `LiteLLM`'s table or public copies of such
/// tables, as of April 2026 or earlier. Models not found there are omitted.
const LIST_PRICES: [(&str, ModelPrice); 15] = [
    ("claude-opus-4-5*", cached([5.0, 25.0, 6.25, 0.5])),
    ("claude-opus-4-2025*", cached([15.0, 75.0, 18.75, 1.5])),
    ("claude-3-opus*", cached([15.0, 75.0, 18.75, 1.5])),
    ("claude-sonnet-4-5*", long([3.0, 15.0, 3.75, 0.3], [6.0, 22.5, 7.5, 0.6])),
    ("claude-sonnet-4-2025*", long([3.0, 15.0, 3.75, 0.3], [6.0, 22.5, 7.5, 0.6])),
    ("claude-3-5-sonnet*", cached([3.0, 15.0, 3.75, 0.3])),
    ("claude-haiku-4-5*", cached([1.0, 5.0, 1.25, 0.1])),
    ("claude-3-haiku*", cached([0.25, 1.25, 0.3, 0.03])),
    ("gpt-5", read([1.25, 10.0, 0.125])),
    ("gpt-5-codex", read([1.25, 10.0, 0.125])),
    ("gpt-4o", read([2.5, 10.0, 1.25])),
    ("gpt-4o-mini", read([0.15, 0.6, 0.075])),
    ("o4-mini", read([1.1, 4.4, 0.275])),
    ("gemini-2.5-pro", long([1.25, 10.0, 1.25, 0.125], [2.5, 15.0, 2.5, 0.25])),
    ("gemini-2.5-flash", read([0.3, 2.5, 0.03])),
];

/// Input, output, cache write, cache read.
const fn cached([input, output, write, from]: [f64; 4]) -> ModelPrice {
    let (cache_write, cache_read) = (Some(write), Some(from));
    ModelPrice { input, output, cache_write, cache_read, above_200k: None }
}

/// Input, output, cache read. Writing to the cache is free.
const fn read([input, output, from]: [f64; 3]) -> ModelPrice {
    let cache_read = Some(from);
    ModelPrice { input, output, cache_write: None, cache_read, above_200k: None }
}

const fn long(first: [f64; 4], [input, output, write, from]: [f64; 4]) -> ModelPrice {
    let (cache_write, cache_read) = (Some(write), Some(from));
    let above = LongContextPrice { input, output, cache_write, cache_read };
    ModelPrice { above_200k: Some(above), ..cached(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: u64 = 1_000_000;

    #[test]
    fn each_kind_of_tokens_has_its_price() {
        let price = ModelPrices::default().recorded_price_of("claude-opus-4-5-20251101").unwrap();
        let tokens = PricedTokens {
            input: MILLION,
            output: MILLION,
            cache_write: MILLION,
            cache_read: MILLION,
        };
        let none = PricedTokens::default();
        assert!((price.cost(tokens, none) - 36.75).abs() < 1e-9);
        assert_eq!(price.cost(none, none), 0.0);
        // Without a price of their own, cache tokens cost the same as input tokens.
        assert!((ModelPrice::new(2.0, 3.0).cost(tokens, none) - 9.0).abs() < 1e-9);
    }

    #[test]
    fn only_what_is_beyond_200k_of_a_call_costs_more() {
        let price = ModelPrices::default().recorded_price_of("claude-sonnet-4-5").unwrap();
        let call = PricedTokens { input: 300_000, output: 1000, ..PricedTokens::default() };
        assert_eq!(call.beyond_200k(), PricedTokens { input: 100_000, ..PricedTokens::default() });
        let money = price.cost(call, call.beyond_200k());
        assert!((money - (0.2 * 3.0 + 0.1 * 6.0 + 0.015)).abs() < 1e-9, "{money}");
        let flat = ModelPrice::new(3.0, 15.0).cost(call, call.beyond_200k());
        assert!((flat - 0.915).abs() < 1e-9, "{flat}");
    }

    #[test]
    fn a_stated_price_goes_before_a_listed_one() {
        let stated = r#"{"models":{"claude-*":{"input":1,"output":2}}}"#;
        let own: ModelPrices = serde_json::from_str(stated).unwrap();
        assert_eq!(own.recorded_price_of("claude-opus-4-5").map(|price| price.input), Some(1.0));
        assert_eq!(own.recorded_price_of("openai/gpt-5").map(|price| price.input), Some(1.25));
        assert_eq!(own.price_of("gpt-5"), None, "runs of the self-test go by stated prices alone");
        let bedrock = "us.anthropic.claude-3-haiku-20240307-v1:0";
        assert_eq!(
            ModelPrices::default().recorded_price_of(bedrock).map(|price| price.input),
            Some(0.25)
        );
        for unlisted in ["gpt-5.9", "qwen3", "", "claude-opus-9", "o4-mini-deep-research"] {
            assert_eq!(ModelPrices::default().recorded_price_of(unlisted), None, "{unlisted}");
        }
        for other in [r#"{"list":false}"#, r#"{"currency":"EUR"}"#] {
            let other: ModelPrices = serde_json::from_str(other).unwrap();
            assert_eq!(other.recorded_price_of("gpt-5"), None);
        }
    }
}
