//! Usage of a run: model calls, tokens and time by role, and cost by the configured prices. Pure.
//! Values that were not counted or priced are missing, never zero.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::CaseResult;
use selftest_models::CallRecord;
pub use selftest_models::prices::{ModelPrice, ModelPrices};

/// Usage of one role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoleUsage {
    /// Number of model calls.
    pub calls: u32,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens, including thinking.
    pub completion_tokens: u64,
    /// Tokens for which a system under test reports only a total, without a split into input and
    /// output.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undivided_tokens: u64,
    /// Total wall time of all calls, including the wait for a free slot.
    pub model_ms: u64,
    /// Answered calls without a token count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted_calls: u64,
    /// Cost of all priced calls. Absent if none has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Answered calls that are not in `cost`, because they have no price or no token count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
    /// Model names reported by the servers, up to a limit.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub served_models: BTreeSet<String>,
}

/// Maximum number of served model names to record.
const MAX_SERVED: usize = 10;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RoleUsage {
    /// Returns true if no usage is known.
    pub fn is_empty(&self) -> bool {
        self.calls == 0 && self.undivided_tokens == 0
    }

    fn add_call(&mut self, call: &CallRecord, prices: &ModelPrices) {
        let (input, output) = (call.usage.prompt_tokens, call.usage.completion_tokens);
        self.calls += 1;
        self.model_ms = self.model_ms.saturating_add(call.duration_ms);
        self.prompt_tokens = self.prompt_tokens.saturating_add(input.unwrap_or(0));
        self.completion_tokens = self.completion_tokens.saturating_add(output.unwrap_or(0));
        // A failed call has no tokens, so only answered calls count as missing.
        let has_reply = call.raw_reply.is_some();
        let counted = input.zip(output);
        self.uncounted_calls += u64::from(has_reply && counted.is_none());
        self.add_served(call.served_model.as_ref());
        match counted.zip(prices.price_of(&call.model)) {
            Some(((input, output), price)) => {
                // Prices are stated for a million tokens.
                let money = (tokens(input) * price.input + tokens(output) * price.output) / 1e6;
                self.cost = Some(self.cost.unwrap_or(0.0) + money);
            }
            None => self.unpriced_calls += u64::from(has_reply),
        }
    }

    fn add_served<'a>(&mut self, names: impl IntoIterator<Item = &'a String>) {
        let room = MAX_SERVED.saturating_sub(self.served_models.len());
        // Bounded, because a server can invent a name for each reply.
        let new: Vec<String> =
            names.into_iter().filter(|name| !self.served_models.contains(*name)).cloned().collect();
        self.served_models.extend(new.into_iter().take(room));
    }

    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.undivided_tokens = self.undivided_tokens.saturating_add(other.undivided_tokens);
        self.model_ms = self.model_ms.saturating_add(other.model_ms);
        self.uncounted_calls += other.uncounted_calls;
        self.unpriced_calls += other.unpriced_calls;
        self.add_served(&other.served_models);
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "no model reads 2^53 tokens")]
fn tokens(count: u64) -> f64 {
    count as f64
}

/// Usage of a case or a run, by role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageByRole {
    /// The model that writes prompts.
    #[serde(default, skip_serializing_if = "RoleUsage::is_empty")]
    pub generator: RoleUsage,
    /// The system under test, as far as it reports usage: the built-in assistant's model, or the
    /// tokens that a program states.
    #[serde(default, skip_serializing_if = "RoleUsage::is_empty")]
    pub sut: RoleUsage,
    /// The models that judge.
    #[serde(default, skip_serializing_if = "RoleUsage::is_empty")]
    pub judge: RoleUsage,
    /// Sum over all roles.
    #[serde(default, skip_serializing_if = "RoleUsage::is_empty")]
    pub total: RoleUsage,
}

impl UsageByRole {
    /// Computes the usage of a case. If its answers were judged again, only the judge counts; a
    /// result reused from an earlier run counts as zero.
    pub fn of(case: &CaseResult, prices: &ModelPrices) -> Self {
        let mut usage = Self::default();
        if case.unchanged_since.is_some() {
            return usage;
        }
        // Prompts and answers of a rejudged run were paid for by the earlier one.
        if case.former.is_none() {
            for attempt in &case.generation.attempts {
                usage.generator.add_call(&attempt.call, prices);
            }
            let replies = || case.steps.iter().filter_map(|step| step.reply.as_ref());
            let calls = replies().filter_map(|reply| reply.call.as_ref());
            for call in calls.chain(case.evidence.failed_call.as_deref()) {
                usage.sut.add_call(call, prices);
            }
            // Calls of the built-in assistant are counted above already.
            let stated = replies().filter(|reply| reply.call.is_none());
            usage.sut.undivided_tokens = stated.filter_map(|reply| reply.tokens).sum();
        }
        let judgements = case.steps.iter().filter_map(|step| step.judgement.as_ref());
        for call in judgements.flat_map(|judgement| &judgement.calls) {
            usage.judge.add_call(call, prices);
        }
        usage.update_total();
        usage
    }

    /// Returns true if no usage is known.
    pub fn is_empty(&self) -> bool {
        self.total.is_empty()
    }

    /// Returns each role with usage, followed by the total.
    pub fn rows(&self) -> Vec<(&'static str, &RoleUsage)> {
        let roles = [("generator", &self.generator), ("sut", &self.sut), ("judge", &self.judge)];
        let used = roles.into_iter().filter(|(_, role)| !role.is_empty());
        used.chain((!self.is_empty()).then_some(("total", &self.total))).collect()
    }

    fn add(&mut self, other: &Self) {
        self.generator.add(&other.generator);
        self.sut.add(&other.sut);
        self.judge.add(&other.judge);
        self.update_total();
    }

    fn update_total(&mut self) {
        self.total = RoleUsage::default();
        for role in [&self.generator, &self.sut, &self.judge] {
            self.total.add(role);
        }
    }
}

/// Usage of a run, with the prices that applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// The prices that costs were computed with. Absent if none were configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
    /// Usage by role.
    #[serde(flatten)]
    pub usage: UsageByRole,
}

impl RunUsage {
    /// Sums the usage of these cases. Returns `None` if none of them reports any.
    pub fn of<'a>(
        cases: impl Iterator<Item = &'a CaseResult>,
        prices: Option<&ModelPrices>,
    ) -> Option<Self> {
        let stated = prices.cloned().unwrap_or_default();
        let mut usage = UsageByRole::default();
        for case in cases {
            usage.add(&UsageByRole::of(case, &stated));
        }
        (!usage.is_empty()).then(|| Self { prices: prices.cloned(), usage })
    }

    /// Returns the model names reported by the servers, by role.
    pub fn served_models(&self) -> Vec<(&'static str, String)> {
        let roles = self.usage.rows().into_iter().filter(|(role, _)| *role != "total");
        let named = roles.filter(|(_, used)| !used.served_models.is_empty());
        let names = |used: &RoleUsage| {
            used.served_models.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        named.map(|(role, used)| (role, names(used))).collect()
    }

    /// Returns the currency, if prices were configured.
    pub fn currency(&self) -> Option<&str> {
        self.prices.as_ref().map(|prices| prices.currency.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_models::TokenUsage as Tokens;
    use serde_json::json;

    fn prices() -> ModelPrices {
        let models = json!({
            "openai/*": { "input": 1.0, "output": 2.0 },
            "openai/gpt-4o*": { "input": 3.0, "output": 4.0 },
            "openai/gpt-4o": { "input": 2.5, "output": 10.0 },
        });
        serde_json::from_value(json!({ "currency": "EUR", "models": models })).unwrap()
    }

    fn call(model: &str, tokens: Option<(u64, u64)>, reply: bool) -> CallRecord {
        serde_json::from_value(json!({
            "model": model, "prompt_digest": "", "structured": null, "finish": null,
            "parameters": { "temperature": 0.0, "max_tokens": 1, "seed": 1 },
            "usage": Tokens {
                prompt_tokens: tokens.map(|it| it.0),
                completion_tokens: tokens.map(|it| it.1),
            },
            "duration_ms": 40, "raw_reply": reply.then_some("x"), "error": null,
        }))
        .unwrap()
    }

    #[test]
    fn the_longest_name_that_fits_has_the_price() {
        let input = |model: &str| prices().price_of(model).map(|price| price.input);
        assert_eq!(input("openai/gpt-4o"), Some(2.5));
        assert_eq!(input("openai/gpt-4o-mini"), Some(3.0));
        assert_eq!(input("openai/o3"), Some(1.0));
        assert_eq!(input("ollama/qwen"), None);
    }

    #[test]
    fn what_nobody_counts_or_prices_is_missing_and_not_zero() {
        let mut role = RoleUsage::default();
        role.add_call(&call("ollama/qwen", Some((500, 10)), true), &prices());
        assert_eq!((role.cost, role.unpriced_calls), (None, 1), "no price is no money");
        role.add_call(&call("openai/gpt-4o", Some((1_000_000, 100_000)), true), &prices());
        assert_eq!((role.cost, role.unpriced_calls), (Some(3.5), 1));
        role.add_call(&call("openai/gpt-4o", None, true), &prices());
        assert_eq!((role.uncounted_calls, role.unpriced_calls), (1, 2));
        role.add_call(&call("openai/gpt-4o", None, false), &prices());
        assert_eq!((role.uncounted_calls, role.unpriced_calls), (1, 2), "no reply, nothing to pay");
        assert_eq!((role.calls, role.model_ms), (4, 160));
        assert_eq!((role.prompt_tokens, role.completion_tokens), (1_000_500, 100_010));
    }

    /// A case with a call of each role, a failed one of the program, and a step that states tokens.
    fn paid() -> CaseResult {
        let mut case = crate::fixtures::case(0, "a", crate::fixtures::scored([0.9; 4], "Good."));
        let mut wrote = call("openai/gpt-4o", Some((1_000_000, 0)), true);
        wrote.served_model = Some("gpt-4o-2026".to_owned());
        case.generation.attempts[0].call = wrote;
        let mut stated = case.steps[0].clone();
        stated.judgement = None;
        stated.reply.as_mut().unwrap().tokens = Some(30);
        let reply = case.steps[0].reply.as_mut().unwrap();
        reply.call = Some(call("ollama/qwen", Some((5, 7)), true));
        reply.tokens = Some(12);
        case.evidence.failed_call = Some(Box::new(call("ollama/qwen", None, false)));
        let judgement = case.steps[0].judgement.as_mut().unwrap();
        judgement.calls = vec![call("openai/o3", Some((2_000_000, 0)), true)];
        case.steps.push(stated);
        case
    }

    fn roles(usage: &UsageByRole) -> Vec<&'static str> {
        usage.rows().into_iter().map(|(role, _)| role).collect()
    }

    #[test]
    fn a_case_pays_for_what_it_asked_itself() {
        let usage = UsageByRole::of(&paid(), &prices());
        assert_eq!(roles(&usage), ["generator", "sut", "judge", "total"]);
        assert_eq!((usage.generator.calls, usage.generator.cost), (1, Some(2.5)));
        assert_eq!((usage.sut.calls, usage.sut.cost, usage.sut.unpriced_calls), (2, None, 1));
        assert_eq!(usage.sut.undivided_tokens, 30, "the tokens of a call are counted there");
        assert_eq!((usage.judge.calls, usage.judge.cost), (1, Some(2.0)));
        let expected = RoleUsage {
            calls: 4,
            prompt_tokens: 3_000_005,
            completion_tokens: 7,
            undivided_tokens: 30,
            model_ms: 160,
            uncounted_calls: 0,
            cost: Some(4.5),
            unpriced_calls: 1,
            served_models: ["gpt-4o-2026".to_owned()].into(),
        };
        assert_eq!(usage.total, expected);
        // The run before paid for prompts and answers.
        let former = Some(crate::outcome::case::FormerVerdict::of(&paid()));
        let again = UsageByRole::of(&CaseResult { former, ..paid() }, &prices());
        assert_eq!(roles(&again), ["judge", "total"]);
        assert_eq!(again.total.cost, Some(2.0));
        let unchanged_since = Some(crate::fixtures::run_id());
        let known = UsageByRole::of(&CaseResult { unchanged_since, ..paid() }, &prices());
        assert_eq!((known.is_empty(), roles(&known)), (true, Vec::new()));
    }

    #[test]
    fn a_run_pays_for_all_its_cases() {
        let prices = prices();
        let mut other = paid();
        other.steps[0].judgement.as_mut().unwrap().calls = vec![call("x", None, true)];
        let run = RunUsage::of([&paid(), &other].into_iter(), Some(&prices)).unwrap();
        let total = &run.usage.total;
        assert_eq!((total.calls, total.cost, total.undivided_tokens), (8, Some(7.0), 60));
        assert_eq!((total.uncounted_calls, total.unpriced_calls), (1, 3));
        assert_eq!((run.usage.judge.calls, run.usage.judge.cost), (2, Some(2.0)));
        assert_eq!((run.usage.generator.cost, run.usage.sut.calls), (Some(5.0), 4));
        assert_eq!(run.currency(), Some("EUR"));
        assert_eq!(run.served_models(), [("generator", "gpt-4o-2026".to_owned())]);
        let free = RunUsage::of([&paid()].into_iter(), None).unwrap();
        assert_eq!((free.currency(), free.usage.total.cost), (None, None));
        assert_eq!(free.usage.total.unpriced_calls, 3);
        assert_eq!(RunUsage::of(std::iter::empty(), Some(&prices)), None);
    }

    #[test]
    fn names_of_served_models_are_bounded() {
        let mut role = RoleUsage::default();
        let names: Vec<String> = (0..12).map(|number| format!("m-{number:02}")).collect();
        role.add_served(&names[..3]);
        role.add_served(&names[..3]);
        assert_eq!(role.served_models.len(), 3);
        role.add_served(&names);
        assert_eq!(role.served_models.len(), MAX_SERVED);
        assert!(role.served_models.contains("m-09") && !role.served_models.contains("m-10"));
    }

    #[test]
    fn what_is_zero_is_left_out() {
        let empty = RoleUsage::default();
        let stated = RoleUsage { undivided_tokens: 1, ..RoleUsage::default() };
        let called = RoleUsage { calls: 1, ..RoleUsage::default() };
        assert!(empty.is_empty() && !stated.is_empty() && !called.is_empty());
        assert!(json!(stated).get("undivided_tokens").is_some());
        assert!(json!(called).get("undivided_tokens").is_none());
    }
}
