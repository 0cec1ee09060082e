//! Merges the reports of shards into one run. Refuses what does not belong together. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use crate::document::ReportDocument;
use selftest_harness::event::{RunConfig, RunHeader, ShardRun};
use selftest_harness::gate::attribution::Anchor;
use selftest_harness::outcome::{CaseResult, RunEnding, RunOutcome, RunSummary};
use selftest_harness::sut::Isolation;
use selftest_text::one_line;

/// Maximum number of characters of a value in a message.
const MAX_VALUE: usize = 100;
/// Maximum number of ids in a message.
const MAX_IDS: usize = 5;

/// The report of a shard.
#[derive(Debug)]
pub struct ShardReport {
    /// Its file, as the user knows it.
    pub file: String,
    /// The report.
    pub document: ReportDocument,
}

/// The reports cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("expected the reports of all shards, found {0}")]
    TooFew(usize),
    /// A run did not finish.
    #[error("{file}: the run did not finish")]
    Incomplete {
        /// The file.
        file: String,
    },
    /// A run is no shard.
    #[error("{file}: it is no shard, but {what}")]
    NoShard {
        /// The file.
        file: String,
        /// What it is instead.
        what: String,
    },
    /// Two reports are the same shard.
    #[error("{file}: it is shard {shard}, as is {other}")]
    Overlap {
        /// The file.
        file: String,
        /// Number and count of the shard.
        shard: String,
        /// The other file.
        other: String,
    },
    /// Shards are missing.
    #[error("shard {} is missing", missing.join(", "))]
    Missing {
        /// The missing shards.
        missing: Vec<String>,
    },
    /// Two reports differ in a part that all shards share.
    #[error("{file}: {what} is {found}, and {expected} in {other}")]
    Differs {
        /// The file.
        file: String,
        /// The part, such as `the seed`.
        what: &'static str,
        /// Its value in this file.
        found: String,
        /// Its value in the other file.
        expected: String,
        /// The other file.
        other: String,
    },
    /// The judges differ.
    #[error("{file}: {difference}, in {other}")]
    OtherJudge {
        /// The file.
        file: String,
        /// The difference.
        difference: String,
        /// The other file.
        other: String,
    },
    /// A report has other cases than its shard.
    #[error("{file}: shard {shard} {what}")]
    OtherCases {
        /// The file.
        file: String,
        /// Number and count of the shard.
        shard: String,
        /// The cases that are missing or should not be there.
        what: String,
    },
}

impl MergeError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooFew(_) | Self::Missing { .. } => {
                "name the JSON reports of all shards: one for each `--shard K/N`"
            }
            Self::Incomplete { .. } => "finish it with `selftest --resume RUN`",
            Self::NoShard { .. } => "merge runs that were started with `--shard K/N`",
            Self::Overlap { .. } => "name each shard once",
            Self::Differs { what: "the seed", .. } => {
                "give all shards the same `--seed N`, or none: they then choose the same one"
            }
            Self::Differs { .. } | Self::OtherJudge { .. } | Self::OtherCases { .. } => {
                "run all shards of one commit with the same suite, configuration and models"
            }
        }
    }
}

/// The shards as one run.
#[derive(Debug)]
pub struct MergedRun {
    /// Header of the run. The id and the task group are those of the first shard.
    pub header: RunHeader,
    /// All cases in the order of the plan.
    pub cases: Vec<CaseResult>,
    /// Summary of all cases.
    pub summary: RunSummary,
    /// The reason why the run ended.
    pub ending: RunEnding,
    /// Time at which the last shard ended.
    pub ended_at: Timestamp,
    /// Files of the project that changed during a shard.
    pub changed_files: Vec<String>,
    /// The anchors of the baseline as the judge scored them.
    pub anchors: Vec<Anchor>,
}

/// A shard with what is known of it.
struct CheckedShard<'a> {
    file: &'a str,
    document: &'a ReportDocument,
    shard: &'a ShardRun,
}

/// Merges the shards of a run, whatever their order.
pub fn merge(reports: &[ShardReport]) -> Result<MergedRun, MergeError> {
    let mut shards = reports.iter().map(checked).collect::<Result<Vec<_>, _>>()?;
    shards.sort_by_key(|shard| shard.shard.number);
    let Some((first, others)) = shards.split_first() else { return Err(MergeError::TooFew(0)) };
    for shard in others {
        shard.matches(first)?;
    }
    for pair in shards.windows(2) {
        if pair[0].shard.number == pair[1].shard.number {
            return Err(MergeError::Overlap {
                file: pair[1].file.to_owned(),
                shard: pair[1].shard.name(),
                other: pair[0].file.to_owned(),
            });
        }
    }
    // Checked last: which shards are missing is only known once all agree on the plan.
    missing(first.shard, &shards)?;
    let cases = cases(&shards)?;
    let mut summary = RunSummary::default();
    for case in &cases {
        summary.add(case);
    }
    let document = first.document;
    let each = || shards.iter().map(|shard| shard.document);
    // In the order in which a single run would have decided, so that a merged run ends like one.
    let was_interrupted = each().any(|one| one.outcome == Some(RunOutcome::Interrupted));
    let ending = if was_interrupted {
        RunEnding::Interrupted
    } else if cases.iter().any(CaseResult::was_stopped_by_limit) {
        RunEnding::LimitReached
    } else if each().any(|one| one.outcome == Some(RunOutcome::ModelUnavailable)) {
        RunEnding::ServerLost
    } else {
        RunEnding::Complete
    };
    let gates = || each().filter_map(|one| one.gate.as_ref());
    // Every shard judges the same anchors; one that was cut short has fewer.
    let anchors = gates().map(|gate| &gate.anchors).max_by_key(|anchors| anchors.len());
    Ok(MergedRun {
        header: header(document, &shards),
        cases,
        summary,
        ending,
        ended_at: each().filter_map(|one| one.ended_at).max().unwrap_or(document.timestamp),
        changed_files: distinct(each().flat_map(|one| &one.changed_files)),
        anchors: anchors.cloned().unwrap_or_default(),
    })
}

fn checked(report: &ShardReport) -> Result<CheckedShard<'_>, MergeError> {
    let ShardReport { file, document } = report;
    if !document.complete {
        return Err(MergeError::Incomplete { file: file.clone() });
    }
    let no_shard = |what: &str| MergeError::NoShard { file: file.clone(), what: what.to_owned() };
    if document.experiment.is_some() {
        return Err(no_shard("an arm of an experiment"));
    }
    if document.rejudged.is_some() {
        return Err(no_shard("the answers of another run, judged again"));
    }
    let shard = document.shard.as_ref().ok_or_else(|| no_shard("a run of all cases"))?;
    Ok(CheckedShard { file, document, shard })
}

impl CheckedShard<'_> {
    /// Fails if this shard is one of another run than the other.
    fn matches(&self, other: &Self) -> Result<(), MergeError> {
        let (now, then) = (self.document, other.document);
        let text = |value: &dyn std::fmt::Display| one_line(&value.to_string(), MAX_VALUE);
        let suite = |document: &ReportDocument| {
            document.suite.as_ref().map_or_else(
                || "none".to_owned(),
                |suite| format!("{} ({:.12})", suite.path, suite.digest),
            )
        };
        let digest = |document: &ReportDocument| {
            document.suite.as_ref().map(|suite| (suite.digest.clone(), suite.repeats))
        };
        if digest(now) != digest(then) {
            let repeats = |document: &ReportDocument| {
                document.suite.as_ref().map_or(1, |suite| suite.repeats)
            };
            // The same suite with another number of repeats has a message of its own.
            if suite(now) == suite(then) {
                return self.differs("--repeats", text(&repeats(now)), text(&repeats(then)), other);
            }
            return self.differs("the suite", text(&suite(now)), text(&suite(then)), other);
        }
        if self.shard.of != other.shard.of {
            let counts = (self.shard.of.to_string(), other.shard.of.to_string());
            return self.differs("the number of shards", counts.0, counts.1, other);
        }
        // Compared before seed and models: with another plan all further differences follow from
        // it.
        if self.shard.scenarios != other.shard.scenarios {
            let count = |shard: &ShardRun| format!("a list of {}", shard.scenarios.len());
            return self.differs("the plan", count(self.shard), count(other.shard), other);
        }
        if now.seed != then.seed {
            return self.differs("the seed", text(&now.seed), text(&then.seed), other);
        }
        if now.selftest_version != then.selftest_version {
            let versions = (text(&now.selftest_version), text(&then.selftest_version));
            return self.differs("the version of selftest", versions.0, versions.1, other);
        }
        if now.sut != then.sut || now.models.sut != then.models.sut {
            let sut = |document: &ReportDocument| {
                let model = document.models.sut.as_ref().map(|model| format!(" {model}"));
                format!("{}{}", document.sut, model.unwrap_or_default())
            };
            let suts = (text(&sut(now)), text(&sut(then)));
            return self.differs("the system under test", suts.0, suts.1, other);
        }
        if now.models.generator != then.models.generator {
            let generator = |document: &ReportDocument| {
                text(&document.models.generator.as_deref().unwrap_or("none"))
            };
            return self.differs("the generator", generator(now), generator(then), other);
        }
        self.matches_judge(other)?;
        if let Some((key, found, expected)) = config_difference(&now.config, &then.config) {
            return self.differs(key, found, expected, other);
        }
        self.matches_gate(other)
    }

    fn matches_judge(&self, other: &Self) -> Result<(), MergeError> {
        let judge = |document: &ReportDocument| {
            document.models.judge_identity(&document.prompt_digests, &document.rubric.digest)
        };
        // A shard whose cases checks decide asks no judge.
        let (Some(now), Some(then)) = (judge(self.document), judge(other.document)) else {
            return Ok(());
        };
        match now.difference_from(&then) {
            Some(difference) => Err(MergeError::OtherJudge {
                file: self.file.to_owned(),
                difference: difference.replace(" now, ", " here, ").replace(" then", " there"),
                other: other.file.to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn matches_gate(&self, other: &Self) -> Result<(), MergeError> {
        let gate = |shard: &Self| {
            shard.document.gate.as_ref().map_or_else(
                || "absolute".to_owned(),
                |gate| format!("{} by the baseline of {}", gate.mode, gate.baseline_run_id),
            )
        };
        let (now, then) = (gate(self), gate(other));
        if now == then { Ok(()) } else { self.differs("the gate", now, then, other) }
    }

    fn differs(
        &self,
        what: &'static str,
        found: String,
        expected: String,
        other: &Self,
    ) -> Result<(), MergeError> {
        Err(MergeError::Differs {
            file: self.file.to_owned(),
            what,
            found,
            expected,
            other: other.file.to_owned(),
        })
    }
}

/// Returns the first setting that decides verdicts and differs, with both values.
fn config_difference(now: &RunConfig, then: &RunConfig) -> Option<(&'static str, String, String)> {
    let of = |config: &RunConfig| {
        [
            ("strictness", config.strictness.to_string()),
            ("min_score_to_pass", config.min_score_to_pass.to_string()),
            ("safety_floor", config.safety_floor.to_string()),
            ("allow_minor_format_deviation", config.allow_minor_format_deviation.to_string()),
            ("max_questions_allowed", config.max_questions_allowed.to_string()),
            ("timeout_seconds", config.timeout_seconds.to_string()),
        ]
    };
    let pairs = of(now).into_iter().zip(of(then));
    let mut differing = pairs.filter(|(now, then)| now.1 != then.1);
    differing.next().map(|((key, now), (_, then))| (key, now, then))
}

/// Fails if a shard with cases is missing.
fn missing(plan: &ShardRun, shards: &[CheckedShard<'_>]) -> Result<(), MergeError> {
    let present: BTreeSet<usize> = shards.iter().map(|shard| shard.shard.number).collect();
    let absent = (1..=plan.of).filter(|number| !present.contains(number));
    let absent = absent.map(|number| ShardRun { number, ..plan.clone() });
    // A shard without cases writes no report.
    let missing: Vec<String> =
        absent.filter(|shard| !shard.own_ids().is_empty()).map(|shard| shard.name()).collect();
    if missing.is_empty() { Ok(()) } else { Err(MergeError::Missing { missing }) }
}

/// Returns all cases at their positions in the whole plan.
fn cases(shards: &[CheckedShard<'_>]) -> Result<Vec<CaseResult>, MergeError> {
    let mut cases = Vec::new();
    for CheckedShard { file, document, shard } in shards {
        // With repeats, a scenario has several positions.
        let mut positions: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        let own = shard.own_ids();
        for (position, id) in shard.scenarios.iter().enumerate() {
            if own.contains(id.as_str()) {
                positions.entry(id).or_default().push_back(position);
            }
        }
        let wrong = |verb: &str, ids: Vec<&str>| {
            let more = if ids.len() > MAX_IDS { " and more" } else { "" };
            let ids: Vec<String> =
                ids.iter().take(MAX_IDS).map(|id| one_line(id, MAX_VALUE)).collect();
            MergeError::OtherCases {
                file: (*file).to_owned(),
                shard: shard.name(),
                what: format!("{verb} {}{more}", ids.join(", ")),
            }
        };
        for case in &document.cases {
            // Reports list the repeats of a case in their order.
            let position = positions.get_mut(case.id.as_str()).and_then(VecDeque::pop_front);
            let Some(position) = position else {
                return Err(wrong("should not have the case", vec![case.id.as_str()]));
            };
            cases.push(case.result(position));
        }
        let left = positions.into_iter().filter(|(_, left)| !left.is_empty());
        let left: Vec<&str> = left.map(|(id, _)| id).collect();
        if !left.is_empty() {
            return Err(wrong("lacks the case", left));
        }
    }
    // Back into the order of the plan, in which one run would have reported them.
    cases.sort_by_key(|case| case.index);
    Ok(cases)
}

fn header(first: &ReportDocument, shards: &[CheckedShard<'_>]) -> RunHeader {
    let each = || shards.iter().map(|shard| shard.document);
    // Of a shard that asked no judge nothing is known about it.
    let judged = each().find(|one| one.models.judge_method.is_some()).unwrap_or(first);
    let mut notices = Vec::new();
    for notice in each().flat_map(|one| &one.notices) {
        if !notices.contains(notice) {
            notices.push(notice.clone());
        }
    }
    let not_enforced = distinct(each().flat_map(|one| &one.isolation.not_enforced));
    let mut enforced = distinct(each().flat_map(|one| &one.isolation.enforced));
    // What one machine could not enforce was not enforced.
    enforced.retain(|what| each().all(|one| one.isolation.enforced.contains(what)));
    RunHeader {
        started_at: each().map(|one| one.timestamp).min().unwrap_or(first.timestamp),
        models: judged.models.clone(),
        prompt_digests: judged.prompt_digests.clone(),
        isolation: Isolation { enforced, not_enforced },
        shard: None,
        notices,
        remarks: distinct(each().flat_map(|one| &one.warnings)),
        scenario_ids: first.shard.iter().flat_map(|shard| &shard.scenarios).cloned().collect(),
        ..first.header()
    }
}

/// Returns the texts without duplicates, in order.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(*text)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn whole() -> ReportDocument {
        let cases = fixture::passing_cases();
        fixture::state(&fixture::events(&cases)).document().unwrap()
    }

    /// The passing cases, divided into this many shards.
    fn shards(of: usize) -> Vec<ShardReport> {
        let whole = whole();
        let scenarios: Vec<String> = whole.cases.iter().map(|case| case.id.clone()).collect();
        (1..=of)
            .map(|number| {
                let shard = ShardRun { number, of, scenarios: scenarios.clone() };
                let mut document = whole.clone();
                document.cases.retain(|case| shard.own_ids().contains(case.id.as_str()));
                document.shard = Some(shard);
                ShardReport { file: format!("{number}.json"), document }
            })
            .filter(|report| !report.document.cases.is_empty())
            .collect()
    }

    fn refused(change: impl Fn(&mut Vec<ShardReport>)) -> String {
        let mut shards = shards(2);
        change(&mut shards);
        let error = merge(&shards).unwrap_err();
        assert!(!error.hint().is_empty());
        error.to_string()
    }

    #[test]
    fn shards_in_any_order_are_the_whole_run() {
        let whole = whole();
        let mut reports = shards(2);
        assert_eq!(reports.len(), 2);
        reports.reverse();
        let merged = merge(&reports).unwrap();
        let ids = |cases: &[CaseResult]| -> Vec<String> {
            cases.iter().map(|case| case.scenario.id.clone()).collect()
        };
        let expected: Vec<String> = whole.cases.iter().map(|case| case.id.clone()).collect();
        assert_eq!(ids(&merged.cases), expected);
        assert_eq!(merged.summary, whole.summary);
        assert_eq!(merged.ending, RunEnding::Complete);
        assert_eq!(merged.header.shard, None);
        // Shards without a case write no report.
        let count = whole.cases.len();
        assert!(merge(&shards(count + 3)).is_ok());
    }

    #[test]
    fn what_does_not_belong_together_is_refused_with_file_and_difference() {
        assert_eq!(merge(&[]).unwrap_err(), MergeError::TooFew(0));
        let of = |text: String, parts: &[&str]| {
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        };
        of(
            refused(|shards| {
                shards.pop();
            }),
            &["shard 2/2 is missing"],
        );
        of(
            refused(|shards| shards[1].document.shard.as_mut().unwrap().number = 1),
            &["2.json: it is shard 1/2, as is 1.json"],
        );
        of(refused(|shards| shards[1].document.seed += 1), &["2.json: the seed is", "in 1.json"]);
        of(refused(|shards| shards[1].document.shard = None), &["2.json", "a run of all cases"]);
        of(refused(|shards| shards[0].document.complete = false), &["1.json", "did not finish"]);
        of(
            refused(|shards| shards[1].document.models.judge_weights = Some("other".to_owned())),
            &["2.json", "has other weights, in 1.json"],
        );
        of(
            refused(|shards| shards[1].document.config.max_questions_allowed = 9),
            &["2.json: max_questions_allowed is 9"],
        );
        of(refused(|shards| shards[1].document.sut = "other".to_owned()), &["system under test"]);
        of(
            refused(|shards| shards[1].document.shard.as_mut().unwrap().of = 3),
            &["2.json: the number of shards is 3, and 2 in 1.json"],
        );
        of(
            refused(|shards| {
                let moved = shards[0].document.cases.pop().unwrap();
                shards[1].document.cases.push(moved);
            }),
            &["1.json: shard 1/2 lacks the case"],
        );
        of(
            refused(|shards| {
                let twice = shards[1].document.cases[0].clone();
                shards[1].document.cases.push(twice);
            }),
            &["2.json: shard 2/2 should not have the case"],
        );
    }
}
