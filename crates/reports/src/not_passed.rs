//! The cases of a run that did not pass and should be rerun. Pure.

use std::collections::BTreeMap;

use crate::document::ReportDocument;

/// Case IDs in the order of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnpassedCases {
    /// Failed, without a verdict or not run, with a known prompt.
    pub with_prompt: Vec<String>,
    /// The same without a prompt: not generated, or never started.
    pub without_prompt: Vec<String>,
}

impl UnpassedCases {
    /// Collects each case with a planned trial that did not pass.
    pub fn of(report: &ReportDocument) -> Self {
        let mut planned: Vec<(&str, usize)> = Vec::new();
        let mut positions = BTreeMap::new();
        for id in &report.scenarios {
            let position = *positions.entry(id.as_str()).or_insert_with(|| {
                planned.push((id, 0));
                planned.len() - 1
            });
            planned[position].1 += 1;
        }
        let mut found = Self::default();
        for (id, trials) in planned {
            let mut cases = report.cases.iter().filter(|case| case.id == id);
            if cases.clone().filter(|case| case.pass == Some(true)).count() >= trials {
                continue;
            }
            let known = cases.any(|case| case.generated().is_some());
            let list = if known { &mut found.with_prompt } else { &mut found.without_prompt };
            list.push(id.to_owned());
        }
        found
    }

    /// Returns true if every case passed.
    pub fn is_empty(&self) -> bool {
        self.with_prompt.is_empty() && self.without_prompt.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::CaseStatus;

    #[test]
    fn whatever_is_no_pass_is_run_again() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let mut report: ReportDocument = serde_json::from_str(&text).unwrap();
        let found = UnpassedCases::of(&report);
        assert_eq!(found.without_prompt, ["generation"]);
        let passed = |id: &String| {
            report.cases.iter().any(|case| case.id == *id && case.status == CaseStatus::Passed)
        };
        assert!(!found.with_prompt.is_empty() && !found.with_prompt.iter().any(passed));
        let passes = report.cases.iter().filter(|case| case.pass == Some(true)).count();
        assert_eq!(found.with_prompt.len() + 1 + passes, report.cases.len());
        // One case that the run was killed before, and one with a missing repeat.
        report.scenarios.push("later".to_owned());
        let first = report.cases.iter().find(|case| case.pass == Some(true)).unwrap().id.clone();
        report.scenarios.push(first.clone());
        let found = UnpassedCases::of(&report);
        assert_eq!(found.without_prompt, ["generation", "later"]);
        assert!(found.with_prompt.contains(&first));
    }
}
