//! Tokens spent by a session, by model, and their cost.
//!
//! Tokens are facts and stored with a grade. Prices change, so the cost is computed when it is
//! shown. A missing price makes the cost unknown, never 0.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::share::rounded;
use super::{GradeDetails, GradeRecord};
use selftest_models::prices::{ModelPrices, PricedTokens, USD};
use selftest_sessions::{Event, SessionHead};

/// Maximum number of distinct models per session.
const MAX_MODELS: usize = 32;
/// Share by which a stated cost may differ from ours and count as the same.
const SAME_COST: f64 = 0.01;
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
    /// Those of events that were copied from another session, which are in `models` too.
    copied: BTreeMap<Option<String>, ModelTokens>,
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
        // Counted in both: only a sum over sessions knows if the other session is part of it.
        if event.is_copy {
            add_call(&mut self.copied, name.clone(), call);
        }
        add_call(&mut self.models, name, call);
    }

    /// Adds the tokens of another part of the session.
    pub fn merge(&mut self, other: Self) {
        for (all, more) in [(&mut self.models, other.models), (&mut self.copied, other.copied)] {
            for (name, more) in more {
                let known = all.entry(name).or_default();
                known.tokens += more.tokens;
                known.beyond_200k += more.beyond_200k;
            }
        }
    }

    /// Returns the tokens of the events that were copied from another session, by model.
    pub fn copied_model_tokens(&self, head: &SessionHead) -> Vec<ModelTokens> {
        if head.copied_from.is_none() || self.copied.is_empty() {
            return Vec::new();
        }
        let copied = Self { models: self.copied.clone(), ..Self::default() };
        copied.into_model_tokens(head)
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

fn add_call(
    models: &mut BTreeMap<Option<String>, ModelTokens>,
    name: Option<String>,
    call: PricedTokens,
) {
    let known = if models.len() < MAX_MODELS || models.contains_key(&name) {
        models.entry(name)
    } else {
        // Further models are counted together, without a name.
        models.entry(None)
    };
    let known = known.or_default();
    known.tokens += call;
    known.beyond_200k += call.beyond_200k();
}

/// Cost of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenCost {
    /// Currency of the amounts.
    pub currency: String,
    /// Cost that counts: what the agent states, else that of all tokens by their prices; absent
    /// (unknown) if some have no price or none were recorded.
    pub amount: Option<f64>,
    /// Cost in USD as the agent states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<f64>,
    /// Cost of all tokens by their prices, where the agent states one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_prices: Option<f64>,
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
            stated: None,
            by_prices: None,
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
        // A sum without a part of the tokens would look like the cost.
        let is_whole = !spent.is_empty() && cost.unpriced.is_empty();
        cost.amount = is_whole.then_some(cost.priced);
        cost
    }

    /// Computes the cost of a graded session.
    pub fn of_session(details: &GradeDetails, prices: &ModelPrices) -> Self {
        Self::compute(&details.spent, prices).with_stated(details.stated_cost)
    }

    /// Adds the cost in USD as the agent states it, which comes first.
    #[must_use]
    pub fn with_stated(mut self, stated: Option<f64>) -> Self {
        if let Some(stated) = stated {
            self.stated = Some(rounded(stated));
            self.by_prices = self.amount;
            // Agents state US dollars. In another currency only our prices can be summed.
            if self.currency == USD {
                self.amount = self.stated;
            }
        }
        self
    }

    /// Formats the cost as `1.23 USD`, or explains why it is unknown. A cost that the agent states
    /// stands beside ours if they differ.
    pub fn words(&self) -> String {
        let Some(stated) = self.stated else { return self.own_words() };
        let stated_words = format!("{} as the agent states", format_money(stated, USD));
        match self.by_prices {
            Some(own) if self.currency == USD && (own - stated).abs() <= SAME_COST * stated => {
                format_money(stated, USD)
            }
            Some(own) => format!("{stated_words}, {} by prices", format_money(own, &self.currency)),
            None => stated_words,
        }
    }

    fn own_words(&self) -> String {
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
    // Most tasks of small models cost less than a cent.
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
        let counted_elsewhere = copies_counted_elsewhere(tasks);
        for task in tasks {
            let cost = TokenCost::of_session(&task.details, prices);
            let is_copy = counted_elsewhere.contains(task.session_id.as_str());
            let copied =
                TokenCost::compute(if is_copy { &task.details.copied } else { &[] }, prices);
            match cost.amount {
                // The stated cost and the price of the copied part may disagree, so the rest could
                // be below 0.
                Some(amount) => amounts.push((amount - copied.priced).max(0.0)),
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
        found.median = selftest_stats::median(&amounts).map(rounded);
        found.known = amounts.len() as u64;
        found.amount = rounded(amounts.iter().sum());
        found
    }
}

/// Returns the sessions whose copied calls another of these sessions counts: the one that they were
/// copied from, else the first with copies of it.
fn copies_counted_elsewhere<'a>(tasks: &[&'a GradeRecord]) -> BTreeSet<&'a str> {
    let present: BTreeSet<&str> = tasks.iter().map(|task| task.session_id.as_str()).collect();
    let mut copies: Vec<(&str, &str)> = tasks
        .iter()
        .filter_map(|task| Some((task.details.copied_from.as_deref()?, task.session_id.as_str())))
        .collect();
    // Which copy counts must not depend on the order of the tasks.
    copies.sort_unstable();
    let mut known = present;
    // Of several copies of a session that is gone, the first makes it known.
    copies.into_iter().filter(|(from, _)| !known.insert(from)).map(|(_, session)| session).collect()
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
    fn a_cost_that_the_agent_states_stands_beside_ours() {
        let usage = Some(TokenCounts { input: 1_000_000, output: 0, cached: 0 });
        let head =
            SessionHead { models: vec!["gpt-5".to_owned()], usage, ..SessionHead::default() };
        let spent = TokenSpending::default().into_model_tokens(&head);
        let cost = |stated| TokenCost::compute(&spent, &ModelPrices::default()).with_stated(stated);
        assert_eq!(cost(None).words(), "1.25 USD");
        assert_eq!(cost(Some(1.2501)).words(), "1.25 USD");
        let other = cost(Some(0.5));
        assert_eq!(other.words(), "0.50 USD as the agent states, 1.25 USD by prices");
        assert_eq!((other.amount, other.by_prices), (Some(0.5), Some(1.25)));
        let unpriced = TokenCost::compute(&[], &ModelPrices::default()).with_stated(Some(0.5));
        assert_eq!(unpriced.words(), "0.50 USD as the agent states");
        let euros = ModelPrices { currency: "EUR".to_owned(), ..ModelPrices::default() };
        let cost = TokenCost::compute(&spent, &euros).with_stated(Some(0.5));
        // The prices that come with the program are in dollars.
        assert_eq!(cost.amount, None, "dollars are no euros");
    }

    #[test]
    fn copied_calls_count_once_across_sessions() {
        let spend = |input| {
            let tokens = PricedTokens { input, ..PricedTokens::default() };
            let model = Some("gpt-5".to_owned());
            vec![ModelTokens { model, tokens, ..ModelTokens::default() }]
        };
        let task = |id: &str, all, copied: Option<(&str, u64)>| {
            let mut one = record(id, TaskType::General, true, 3, 3);
            one.details.spent = spend(all);
            one.details.copied = copied.map(|(_, copied)| spend(copied)).unwrap_or_default();
            one.details.copied_from = copied.map(|(from, _)| from.to_owned());
            one
        };
        let amount = |tasks: &[GradeRecord]| {
            let tasks: Vec<&GradeRecord> = tasks.iter().collect();
            CostSummary::from_tasks(&tasks, &ModelPrices::default()).amount
        };
        let fork = task("b", 3_000_000, Some(("a", 1_000_000)));
        assert_eq!(amount(&[task("a", 1_000_000, None), fork.clone()]), 3.75);
        // The original is gone, and its calls are in two files.
        let other = task("c", 2_000_000, Some(("a", 1_000_000)));
        assert_eq!(amount(&[other, fork.clone()]), 5.0);
        assert_eq!(amount(&[fork]), 3.75);
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
