//! A share of a run's cases, so that several machines can divide them. Pure.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::plan::PlannedCase;
use crate::event::ShardRun;
use selftest_text::digest;

/// Maximum number of shards: one for each case of the longest suite.
const MAX_SHARDS: usize = 10_000;

/// A text is not a shard such as `1/4`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// It does not consist of two numbers.
    #[error("expected K/N, such as 1/4 for the first of four shards")]
    Syntax,
    /// The number of shards is out of range.
    #[error("expected 1 to {MAX_SHARDS} shards, found {0}")]
    Count(usize),
    /// The shard's own number is out of range.
    #[error("there is no shard {number} of {of}: they count from 1 to {of}")]
    Number {
        /// Number of the shard.
        number: usize,
        /// Number of shards.
        of: usize,
    },
}

/// One of several shares that together contain all cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Number of this shard, from 1.
    number: usize,
    /// Number of shards.
    of: usize,
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.trim().parse().ok()?, of.trim().parse().ok()?)));
        let Some((number, of)) = numbers else {
            return Err(ShardError::Syntax);
        };
        if of == 0 || of > MAX_SHARDS {
            return Err(ShardError::Count(of));
        }
        if number == 0 || number > of {
            return Err(ShardError::Number { number, of });
        }
        Ok(Self { number, of })
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// Returns this shard of a whole plan, for the report.
    pub fn describe(self, plan: &[PlannedCase]) -> ShardRun {
        let scenarios = plan.iter().map(|planned| planned.scenario.id.clone()).collect();
        ShardRun { number: self.number, of: self.of, scenarios }
    }

    /// Keeps the cases of this shard with all their repeats. They keep their indices from the full
    /// plan, so that their seeds do not change. The assignment depends on the ids alone, not on
    /// their order, and shard sizes differ by at most one case.
    pub fn retain_own(self, plan: &mut Vec<PlannedCase>) {
        let own = self.own_ids(plan.iter().map(|planned| planned.scenario.id.as_str()));
        let own: BTreeSet<String> = own.into_iter().map(str::to_owned).collect();
        plan.retain(|planned| own.contains(&planned.scenario.id));
    }

    /// Returns those of these ids that belong to this shard.
    pub fn own_ids<'a>(self, ids: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let ids: BTreeSet<&str> = ids.collect();
        // Sorted by digest, because cases with adjacent names often take equally long.
        let mut mixed: Vec<(String, &str)> =
            ids.into_iter().map(|id| (digest::sha256_hex(id.as_bytes()), id)).collect();
        // Sorted, so that every machine computes the same shards.
        mixed.sort_unstable();
        mixed
            .into_iter()
            .skip(self.number.saturating_sub(1))
            .step_by(self.of)
            .map(|(_, id)| id)
            .collect()
    }
}

impl ShardRun {
    /// Returns the ids of the scenarios that this shard executes.
    pub fn own_ids(&self) -> BTreeSet<&str> {
        let shard = Shard { number: self.number, of: self.of.max(1) };
        shard.own_ids(self.scenarios.iter().map(String::as_str))
    }

    /// Returns the shard in the form of `--shard`.
    pub fn name(&self) -> String {
        Shard { number: self.number, of: self.of }.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_shard() {
        assert_eq!("2/4".parse(), Ok(Shard { number: 2, of: 4 }));
        for (text, why) in [
            ("5/4", "no shard 5 of 4"),
            ("0/4", "no shard 0 of 4"),
            ("1/0", "found 0"),
            ("1/10001", "found 10001"),
            ("x", "expected K/N"),
            ("1", "expected K/N"),
            ("-1/4", "expected K/N"),
            ("1/2/3", "expected K/N"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn shards_are_disjoint_complete_and_even(count in 0..60_usize, of in 1..9_usize) {
            let ids: Vec<String> = (0..count).map(|number| format!("case-{number}")).collect();
            let shards: Vec<BTreeSet<&str>> = (1..=of)
                .map(|number| Shard { number, of }.own_ids(ids.iter().map(String::as_str)))
                .collect();
            let backwards = Shard { number: 1, of }.own_ids(ids.iter().rev().map(String::as_str));
            prop_assert_eq!(&backwards, &shards[0]);
            let all: BTreeSet<&str> = shards.iter().flatten().copied().collect();
            prop_assert_eq!(all.len(), count);
            prop_assert_eq!(shards.iter().map(BTreeSet::len).sum::<usize>(), count);
            let sizes: Vec<usize> = shards.iter().map(BTreeSet::len).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
