//! Tokens spent by a session, by model, and their cost.
//!
//! Tokens are facts and stored with a grade. Prices change, so the cost is computed when it is
//! shown. A missing price makes the cost unknown, never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GradeRecord;
use super::share::rounded;
use selftest_models::prices::{ModelPrices, PricedTokens};
use selftest_sessions::{Event, SessionHead};

/// Maximum number of distinct models per session.
const MAX_MODELS: usize = 32;
/// Maximum number of unpriced models to list.
const MAX_NAMED: usize = 5;

/// Tokens used by one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelTokens {
    /// Name of the model; absent if the file does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// All tokens.
    #[serde(flatten)]
    pub tokens: PricedTokens,
    /// Tokens beyond the first 200,000 of a call, for which some models charge more.
    #[serde(skip_serializing_if = "is_empty")]
    pub beyond_200k: PricedTokens,
}

fn is_empty(tokens: &PricedTokens) -> bool {
    *tokens == PricedTokens::default()
}

/// Collects the tokens of a session from its events.
#[derive(Debug, Clone, Default)]
pub struct TokenSpending {
    models: BTreeMap<Option<String>, ModelTokens>,
}

impl TokenSpending {
    /// Adds the tokens of an event.
    pub fn add(&mut self, event: &Event<'_>) {
        let Some(usage) = event.usage else { return };
        // The input includes tokens written to the cache, which have their own price.
        let cache_write = event.cache_written.min(usage.input);
        let call = PricedTokens {
            input: usage.input - cache_write,
            output: usage.output,
            cache_write,
            cache_read: usage.cached,
        };
        let name = event.model.as_str();
        let name = (!name.is_empty()).then(|| selftest_text::one_line(name, 120));
        let known = if self.models.len() < MAX_MODELS || self.models.contains_key(&name) {
            self.models.entry(name)
        } else {
            // Further models are counted together, without a name.
            self.models.entry(None)
        };
        let known = known.or_default();
        known.tokens += call;
        known.beyond_200k += call.beyond_200k();
    }

    /// Adds the tokens of another part of the session.
    pub fn merge(&mut self, other: Self) {
        for (name, more) in other.models {
            let known = self.models.entry(name).or_default();
            known.tokens += more.tokens;
            known.beyond_200k += more.beyond_200k;
        }
    }

    /// Returns the tokens by model. Falls back to the file's total for the whole session if the
    /// events have none.
    pub fn into_model_tokens(self, head: &SessionHead) -> Vec<ModelTokens> {
        // If the file names a single model, it applies to all tokens.
        let only = match head.models.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        if self.models.is_empty() {
            let total = head.usage.map(|usage| PricedTokens {
                input: usage.input,
                output: usage.output,
                cache_write: 0,
                cache_read: usage.cached,
            });
            let of_total = |tokens| ModelTokens { model: only, tokens, ..ModelTokens::default() };
            return total.filter(|total| !is_empty(total)).map(of_total).into_iter().collect();
        }
        let named = self
            .models
            .into_iter()
            .map(|(model, tokens)| ModelTokens { model: model.or_else(|| only.clone()), ..tokens });
        named.filter(|one| !is_empty(&one.tokens)).collect()
    }
}

/// Cost of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenCost {
    /// Currency of the amounts.
    pub currency: String,
    /// Cost of all tokens; absent (unknown) if some have no price or none were recorded.
    pub amount: Option<f64>,
    /// Cost of the tokens that have a price.
    pub priced: f64,
    /// Some of the models without a price. An empty name stands for a model that the file does not
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
}

impl TokenCost {
    /// Computes the cost of tokens.
    pub fn compute(spent: &[ModelTokens], prices: &ModelPrices) -> Self {
        let mut cost = Self {
            currency: prices.currency.clone(),
            amount: None,
            priced: 0.0,
            unpriced: Vec::new(),
        };
        for one in spent {
            let name = one.model.as_deref().unwrap_or_default();
            match prices.recorded_price_of(name) {
                Some(price) => cost.priced += price.cost(one.tokens, one.beyond_200k),
                None if cost.unpriced.len() < MAX_NAMED => cost.unpriced.push(name.to_owned()),
                None => {}
            }
        }
        cost.priced = rounded(cost.priced);
        let is_whole = !spent.is_empty() && cost.unpriced.is_empty();
        cost.amount = is_whole.then_some(cost.priced);
        cost
    }

    /// Formats the cost as `1.23 USD`, or explains why it is unknown.
    pub fn words(&self) -> String {
        if let Some(amount) = self.amount {
            return format_money(amount, &self.currency);
        }
        if self.unpriced.is_empty() {
            return "unknown: no tokens were recorded".to_owned();
        }
        let why = describe_unpriced(&self.unpriced);
        if self.priced > 0.0 {
            format!("unknown, at least {}: {why}", format_money(self.priced, &self.currency))
        } else {
            format!("unknown: {why}")
        }
    }
}

/// Formats an amount as `1.23 USD`, with more decimals for small amounts.
pub fn format_money(amount: f64, currency: &str) -> String {
    let places = if amount > 0.0 && amount < 0.1 { 4 } else { 2 };
    format!("{amount:.places$} {currency}")
}

/// Formats the models without a price: `no price for gpt-9, qwen`.
pub fn describe_unpriced(models: &[String]) -> String {
    let shown = models.iter().map(|name| match name.as_str() {
        "" => "a model that the file does not name".to_owned(),
        name => selftest_text::one_line(name, 60),
    });
    format!("no price for {}", shown.collect::<Vec<_>>().join(", "))
}

/// Cost of a set of tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostSummary {
    /// Currency of the amounts.
    pub currency: String,
    /// Total cost of the tasks with a known cost.
    pub amount: f64,
    /// Number of tasks with a known cost.
    pub known: u64,
    /// Median cost of these tasks; absent without any.
    pub median: Option<f64>,
    /// Number of tasks with tokens that have no price.
    pub unpriced: u64,
    /// Number of tasks whose files record no tokens.
    pub without_tokens: u64,
    /// Some of the models without a price.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced_models: Vec<String>,
}

impl CostSummary {
    /// Summarizes the cost of these tasks.
    pub fn from_tasks(tasks: &[&GradeRecord], prices: &ModelPrices) -> Self {
        let mut found = Self { currency: prices.currency.clone(), ..Self::default() };
        let mut amounts = Vec::new();
        for task in tasks {
            let cost = TokenCost::compute(&task.details.spent, prices);
            match cost.amount {
                Some(amount) => amounts.push(amount),
                None if cost.unpriced.is_empty() => found.without_tokens += 1,
                None => found.unpriced += 1,
            }
            for name in cost.unpriced {
                if found.unpriced_models.len() < MAX_NAMED && !found.unpriced_models.contains(&name)
                {
                    found.unpriced_models.push(name);
                }
            }
        }
        amounts.sort_by(f64::total_cmp);
        let (low, high) = (amounts.len().saturating_sub(1) / 2, amounts.len() / 2);
        let median = amounts.get(low).zip(amounts.get(high)).map(|(a, b)| f64::midpoint(*a, *b));
        found.median = median.map(rounded);
        found.known = amounts.len() as u64;
        found.amount = rounded(amounts.iter().sum());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::TaskType;
    use crate::grade::fixture::record;
    use selftest_sessions::{EventRole, TokenCounts};

    fn call(model: &'static str, input: u64, cache_written: u64) -> Event<'static> {
        Event {
            role: EventRole::Assistant,
            model: model.into(),
            usage: Some(TokenCounts { input, output: 1000, cached: 10_000 }),
            cache_written,
            ..Event::default()
        }
    }

    #[test]
    fn tokens_by_model_and_what_they_cost() {
        let mut spending = TokenSpending::default();
        spending.add(&call("claude-sonnet-4-5", 300_000, 20_000));
        spending.add(&call("claude-sonnet-4-5", 1000, 0));
        spending.add(&Event::default());
        let spent = spending.clone().into_model_tokens(&SessionHead::default());
        let [one] = &spent[..] else { panic!("{spent:?}") };
        assert_eq!((one.tokens.input, one.tokens.cache_write), (281_000, 20_000));
        assert_eq!((one.tokens.cache_read, one.tokens.output), (20_000, 2000));
        assert_eq!(one.beyond_200k, PricedTokens { input: 80_000, ..PricedTokens::default() });
        let cost = TokenCost::compute(&spent, &ModelPrices::default());
        // 201,000 at 3, 80,000 at 6, 20,000 at 3.75, 20,000 at 0.3 and 2,000 at 15.
        assert_eq!(cost.amount, Some(1.194));
        assert_eq!(cost.words(), "1.19 USD");
        let json = serde_json::to_string(&spent).unwrap();
        assert_eq!(serde_json::from_str::<Vec<ModelTokens>>(&json).unwrap(), spent);

        spending.add(&call("qwen", 5, 0));
        let cost = TokenCost::compute(
            &spending.into_model_tokens(&SessionHead::default()),
            &ModelPrices::default(),
        );
        assert_eq!((cost.amount, cost.priced), (None, 1.194));
        assert_eq!(cost.words(), "unknown, at least 1.19 USD: no price for qwen");
    }

    #[test]
    fn a_total_counts_where_no_event_says_more() {
        let usage = Some(TokenCounts { input: 1_000_000, output: 0, cached: 0 });
        let head = |models: &[&str]| SessionHead {
            models: models.iter().map(ToString::to_string).collect(),
            usage,
            ..SessionHead::default()
        };
        let cost = |head: &SessionHead| {
            TokenCost::compute(
                &TokenSpending::default().into_model_tokens(head),
                &ModelPrices::default(),
            )
        };
        assert_eq!(cost(&head(&["gpt-5"])).amount, Some(1.25));
        let unclear = cost(&head(&["gpt-5", "gpt-4o"])).words();
        assert_eq!(unclear, "unknown: no price for a model that the file does not name");
        assert_eq!(cost(&SessionHead::default()).words(), "unknown: no tokens were recorded");
    }

    #[test]
    fn what_is_unknown_is_no_zero_in_a_sum() {
        let spent = |model: &str, input| {
            let mut one = record(model, TaskType::General, true, 3, 3);
            let tokens = PricedTokens { input, ..PricedTokens::default() };
            let model = Some(model.to_owned());
            one.details.spent = vec![ModelTokens { model, tokens, ..ModelTokens::default() }];
            one
        };
        let tasks = [
            spent("gpt-5", 1_000_000),
            spent("gpt-5", 3_000_000),
            spent("qwen", 7),
            record("x", TaskType::General, true, 3, 3),
        ];
        let found =
            CostSummary::from_tasks(&tasks.iter().collect::<Vec<_>>(), &ModelPrices::default());
        assert_eq!((found.amount, found.median, found.known), (5.0, Some(2.5), 2));
        assert_eq!((found.unpriced, found.without_tokens), (1, 1));
        assert_eq!(found.unpriced_models, ["qwen"]);
    }
}
