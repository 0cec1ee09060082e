//! How often tasks in each state had succeeded, on labelled sessions: the precision of a state and
//! its lift over the share of all.

use std::collections::BTreeMap;

use serde::Serialize;

use super::estimate::LabelledGrade;
use super::outcome::StateName;
use super::share::{Proportion, rounded};

/// Success of labelled sessions by state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateTable {
    /// Share of all labelled sessions that succeeded: what saying nothing would give.
    pub all: Proportion,
    /// The states that occur.
    pub states: Vec<StateRow>,
}

/// Success of the labelled sessions in a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateRow {
    /// The state.
    pub state: StateName,
    /// Share of its sessions that succeeded.
    pub succeeded: Proportion,
    /// Difference from the share of all, -1.0 to 1.0.
    pub lift: f64,
}

/// Counts successes by the state that each session itself shows. Results from elsewhere are left
/// out: they are labels.
pub fn state_table(labelled: &[LabelledGrade<'_>]) -> StateTable {
    let mut counts: BTreeMap<StateName, (u64, u64)> = BTreeMap::new();
    for one in labelled {
        let details = &one.grade.details;
        let count = counts.entry(details.own_state.unwrap_or(details.state).name()).or_default();
        count.0 += u64::from(one.success);
        count.1 += 1;
    }
    let successes = counts.values().map(|count| count.0).sum();
    let all = Proportion::new(successes, labelled.len() as u64);
    let row = |(state, (successes, of)): (StateName, (u64, u64))| {
        let succeeded = Proportion::new(successes, of);
        let lift = succeeded.rate.unwrap_or_default() - all.rate.unwrap_or_default();
        StateRow { state, succeeded, lift: rounded(lift) }
    };
    StateTable { all, states: counts.into_iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::grade_record::sample;
    use crate::grade::{OutcomeState, TestScope};

    #[test]
    fn a_state_is_compared_with_all() {
        let counts = Some(crate::grade::TestCounts { passed: 3, ..Default::default() });
        let mut whole = sample("a");
        whole.details.state = OutcomeState::TestsPassed { scope: TestScope::Whole, counts };
        let claimed = sample("b");
        let label = |grade, success| LabelledGrade { grade, success, task: "t" };
        let table = state_table(&[label(&whole, true), label(&claimed, false)]);
        assert_eq!((table.all.count, table.all.of), (1, 2));
        let rows: Vec<(StateName, f64)> =
            table.states.iter().map(|row| (row.state, row.lift)).collect();
        assert_eq!(rows, [(StateName::WholeSuitePassed, 0.5), (StateName::Unknown, -0.5)]);
        assert_eq!(state_table(&[]).states, []);
    }
}
