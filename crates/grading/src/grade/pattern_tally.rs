//! Patterns of sessions as mergeable counts. One tally is stored per day, so that the patterns of a
//! month are merged from thirty tallies without reading any session.
//!
//! Merging the tallies of several days gives the same result as a tally of all their sessions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::error_message::TemplateSet;
use super::patterns::{
    ErrorCausePattern, ErrorClassPattern, ErrorCluster, GradePatterns, MAX_EXAMPLES,
    TaskTypePattern, ToolPattern, newest_first,
};
use super::share::{Proportion, TruncatedList, ratio, total};
use super::{
    ErrorCause, ErrorClass, ErrorCount, GradeRecord, OutcomeShares, TaskOutcome, TaskType,
};

/// Maximum number of tools and clusters in a list.
const MAX_LISTED: usize = 20;
/// Maximum number of distinct patterns per cause and tool in a tally.
const MAX_TEMPLATES: usize = 1000;

/// Counts over sessions, which must be added newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PatternTally {
    sessions: u64,
    task_types: BTreeMap<TaskType, TaskCounts>,
    tools: BTreeMap<String, ToolCounts>,
    classes: BTreeMap<ErrorClass, ClassCounts>,
    causes: BTreeMap<ErrorCause, CauseCounts>,
    /// Templates by cause and tool, in order of first occurrence.
    templates: BTreeMap<ErrorCause, BTreeMap<String, Vec<TemplateCounts>>>,
    /// Number of sessions with errors, which are numbered in this order.
    with_errors: u32,
    /// Sessions that may be listed, by their number.
    named: BTreeMap<u32, SessionTitle>,
}

/// ID and title of a listed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SessionTitle {
    id: String,
    title: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TaskCounts {
    sessions: u64,
    completed: u64,
    efficiency: u64,
    quality: u64,
    outcomes: BTreeMap<TaskOutcome, u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct ToolCounts {
    calls: u64,
    errors: u64,
    sessions: u64,
    sessions_with_errors: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ClassCounts {
    sessions: u64,
    tools: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CauseCounts {
    sessions: u64,
    tools: BTreeMap<String, u64>,
    example: String,
    /// Numbers of the newest sessions.
    newest: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TemplateCounts {
    template: String,
    class: ErrorClass,
    count: u64,
    example: String,
    /// Numbers of all its sessions. They are kept so that merging two templates counts shared
    /// sessions once.
    sessions: Vec<u32>,
}

fn add(to: &mut u64, count: u64) {
    *to = to.saturating_add(count);
}

impl PatternTally {
    /// Builds the tally of records ordered newest first.
    pub fn from_records<'a>(newest_first: impl IntoIterator<Item = &'a GradeRecord>) -> Self {
        let mut tally = Self::default();
        for record in newest_first {
            tally.add(record);
        }
        tally
    }

    /// Adds a session that is no newer than those before it. Ignores sessions that are not tasks.
    pub fn add(&mut self, record: &GradeRecord) {
        if !record.is_task() {
            return;
        }
        self.sessions += 1;
        let counts = self.task_types.entry(record.details.task_type).or_default();
        counts.sessions += 1;
        counts.completed += u64::from(record.task_completed);
        counts.efficiency += u64::from(record.tool_calls_efficient.get());
        counts.quality += u64::from(record.response_quality.get());
        *counts.outcomes.entry(record.outcome).or_default() += 1;
        for (tool, used) in &record.details.tools {
            let counts = self.tools.entry(tool.clone()).or_default();
            add(&mut counts.calls, used.all_calls());
            add(&mut counts.errors, used.errors);
            counts.sessions += 1;
            counts.sessions_with_errors += u64::from(used.errors > 0);
        }
        self.add_errors(record);
    }

    fn add_errors(&mut self, record: &GradeRecord) {
        let errors = &record.details.errors;
        for error in errors {
            let counts = self.classes.entry(error.class).or_default();
            add(counts.tools.entry(error.tool.clone()).or_default(), error.count);
        }
        // Only sessions with errors are numbered: the numbers stand in lists of sessions with
        // errors.
        if errors.iter().all(|error| error.count == 0) {
            return;
        }
        let number = self.with_errors;
        self.with_errors += 1;
        let mut is_named = false;
        let (mut classes, mut causes) = (Vec::new(), Vec::new());
        for error in errors.iter().filter(|error| error.count > 0) {
            if !classes.contains(&error.class) {
                classes.push(error.class);
                self.classes.entry(error.class).or_default().sessions += 1;
            }
            let counts = self.causes.entry(error.cause).or_insert_with(|| CauseCounts {
                sessions: 0,
                tools: BTreeMap::new(),
                example: error.example.clone(),
                newest: Vec::new(),
            });
            add(counts.tools.entry(error.tool.clone()).or_default(), error.count);
            if !causes.contains(&error.cause) {
                causes.push(error.cause);
                counts.sessions += 1;
                if counts.newest.len() < MAX_EXAMPLES {
                    counts.newest.push(number);
                    is_named = true;
                }
            }
            is_named |= self.add_template(error, number);
        }
        if is_named {
            let (id, title) = (record.session_id.clone(), record.task_summary.clone());
            self.named.insert(number, SessionTitle { id, title: title.unwrap_or_default() });
        }
    }

    /// Returns true if the session is among the newest of its template.
    fn add_template(&mut self, error: &ErrorCount, number: u32) -> bool {
        let tools = self.templates.entry(error.cause).or_default();
        let known = tools.entry(error.tool.clone()).or_default();
        let at = known.iter().position(|one| one.template == error.template);
        let at = at.unwrap_or_else(|| {
            if known.len() < MAX_TEMPLATES {
                known.push(TemplateCounts {
                    template: error.template.clone(),
                    class: error.class,
                    count: 0,
                    example: error.example.clone(),
                    sessions: Vec::new(),
                });
            }
            known.len() - 1
        });
        let counts = &mut known[at];
        add(&mut counts.count, error.count);
        // Beyond `MAX_TEMPLATES`, different templates share the last entry.
        // Sessions come one after the other, so the last number is the only one that can repeat.
        if counts.sessions.last() != Some(&number) {
            counts.sessions.push(number);
        }
        counts.sessions.len() <= MAX_EXAMPLES
    }

    /// Merges the tally of an earlier period.
    pub fn merge_earlier(&mut self, earlier: Self) {
        let before = self.with_errors;
        self.sessions += earlier.sessions;
        self.with_errors += earlier.with_errors;
        for (task_type, counts) in earlier.task_types {
            self.task_types.entry(task_type).or_default().append(&counts);
        }
        for (tool, counts) in earlier.tools {
            self.tools.entry(tool).or_default().append(counts);
        }
        for (class, counts) in earlier.classes {
            let sum = self.classes.entry(class).or_default();
            sum.sessions += counts.sessions;
            append_tools(&mut sum.tools, counts.tools);
        }
        for (cause, counts) in earlier.causes {
            // Numbers count from the newest session, so those of an earlier day follow after all of
            // this one.
            let newest = counts.newest.iter().map(|number| before + number);
            let sum = self.causes.entry(cause).or_insert_with(|| CauseCounts {
                sessions: 0,
                tools: BTreeMap::new(),
                example: counts.example.clone(),
                newest: Vec::new(),
            });
            sum.sessions += counts.sessions;
            append_tools(&mut sum.tools, counts.tools);
            // This tally is the newer one, so its examples stay and only free places are filled.
            sum.newest.extend(newest.take(MAX_EXAMPLES.saturating_sub(sum.newest.len())));
        }
        for (cause, tools) in earlier.templates {
            let own = self.templates.entry(cause).or_default();
            for (tool, templates) in tools {
                append_templates(own.entry(tool).or_default(), templates, before);
            }
        }
        let named = earlier.named.into_iter().map(|(number, named)| (before + number, named));
        self.named.extend(named);
        // Names of merged days would otherwise grow with every day.
        self.drop_unlisted_names();
    }

    /// Drops the names of sessions that are no longer among the newest of any cause or template.
    fn drop_unlisted_names(&mut self) {
        let of_causes = self.causes.values().flat_map(|counts| &counts.newest);
        let templates = self.templates.values().flat_map(BTreeMap::values).flatten();
        let of_templates = templates.flat_map(|counts| counts.sessions.iter().take(MAX_EXAMPLES));
        let shown: BTreeSet<u32> = of_causes.chain(of_templates).copied().collect();
        self.named.retain(|number, _| shown.contains(number));
    }

    /// Returns the IDs and requests of the newest of some sessions.
    fn list_sessions(
        &self,
        newest_first: &[u32],
        sessions: u64,
    ) -> (TruncatedList<String>, Vec<String>) {
        let newest = newest_first.iter().take(MAX_EXAMPLES);
        let named: Vec<&SessionTitle> =
            newest.filter_map(|number| self.named.get(number)).collect();
        let left_out = sessions.saturating_sub(named.len() as u64);
        let items = named.iter().map(|named| named.id.clone()).collect();
        let titles = named.iter().map(|named| named.title.clone()).collect();
        (TruncatedList { items, left_out }, titles)
    }

    /// Returns the patterns of these sessions.
    pub fn patterns(&self) -> GradePatterns {
        GradePatterns {
            sessions: self.sessions,
            task_types: self.task_types(),
            tools: TruncatedList::new(self.tools(), MAX_LISTED),
            error_classes: self.error_classes(),
            error_causes: self.error_causes(),
            clusters: TruncatedList::new(self.clusters(), MAX_LISTED),
        }
    }

    pub(super) fn task_types(&self) -> Vec<TaskTypePattern> {
        let pattern = |(task_type, counts): (&TaskType, &TaskCounts)| {
            let sessions = counts.sessions;
            // Matches the formula of `score_of`.
            let completion = 5 * counts.completed + sessions.saturating_sub(counts.completed);
            let points = counts.efficiency + counts.quality + completion;
            let of_outcome = |outcome| counts.outcomes.get(&outcome).copied().unwrap_or_default();
            Some(TaskTypePattern {
                task_type: *task_type,
                sessions,
                outcomes: OutcomeShares::from_counts(of_outcome, sessions),
                completion_rate: Proportion::new(counts.completed, sessions),
                avg_tool_efficiency: ratio(counts.efficiency, sessions)?,
                avg_response_quality: ratio(counts.quality, sessions)?,
                score: ratio(points, 3 * sessions)?,
            })
        };
        let mut patterns: Vec<TaskTypePattern> =
            self.task_types.iter().filter_map(pattern).collect();
        patterns.sort_by(|a, b| a.score.total_cmp(&b.score));
        patterns
    }

    pub(super) fn tools(&self) -> Vec<ToolPattern> {
        let pattern = |(tool, counts): (&String, &ToolCounts)| ToolPattern {
            tool: tool.clone(),
            calls: counts.calls,
            errors: counts.errors,
            error_rate: ratio(counts.errors, counts.calls),
            sessions: counts.sessions,
            sessions_with_errors: counts.sessions_with_errors,
        };
        let mut tools: Vec<ToolPattern> = self.tools.iter().map(pattern).collect();
        // The sort is stable, so ties stay ordered by name.
        tools.sort_by_key(|pattern| Reverse(pattern.errors));
        tools
    }

    fn errors(&self) -> u64 {
        let classes = self.classes.values();
        total(classes.flat_map(|counts| counts.tools.values().copied()))
    }

    fn error_classes(&self) -> Vec<ErrorClassPattern> {
        let all = self.errors();
        let pattern = |(class, counts): (&ErrorClass, &ClassCounts)| {
            let (tools, count) = rank_by_errors(&counts.tools);
            let share = ratio(count, all).filter(|_| count > 0)?;
            let sessions = counts.sessions;
            Some(ErrorClassPattern { class: *class, count, share, sessions, tools })
        };
        let mut patterns: Vec<ErrorClassPattern> =
            self.classes.iter().filter_map(pattern).collect();
        patterns.sort_by_key(|pattern| Reverse(pattern.count));
        patterns
    }

    pub(super) fn error_causes(&self) -> Vec<ErrorCausePattern> {
        let all = self.errors();
        let pattern = |(cause, counts): (&ErrorCause, &CauseCounts)| {
            let (tools, count) = rank_by_errors(&counts.tools);
            let (sessions, titles) = self.list_sessions(&counts.newest, counts.sessions);
            Some(ErrorCausePattern {
                cause: *cause,
                count,
                share: ratio(count, all)?,
                advice: cause.advice().map(str::to_owned),
                example: counts.example.clone(),
                titles,
                sessions,
                tools,
            })
        };
        let mut patterns: Vec<ErrorCausePattern> = self.causes.iter().filter_map(pattern).collect();
        patterns.sort_by_key(|pattern| Reverse(pattern.count));
        patterns
    }

    fn clusters(&self) -> Vec<ErrorCluster> {
        let mut clusters = Vec::new();
        for (cause, tools) in &self.templates {
            for (tool, counts) in tools {
                // Similar templates of one cause and tool are merged.
                let mut known = TemplateSet::default();
                let mut members: BTreeMap<usize, Vec<&TemplateCounts>> = BTreeMap::new();
                for one in counts {
                    members.entry(known.add(&one.template)).or_default().push(one);
                }
                for (number, members) in members {
                    let sessions = members.iter().flat_map(|one| one.sessions.iter().copied());
                    let mut sessions: Vec<u32> = sessions.collect();
                    // Numbers count from the newest session, so the newest come first.
                    sessions.sort_unstable();
                    sessions.dedup();
                    let (sessions, titles) = self.list_sessions(&sessions, sessions.len() as u64);
                    clusters.push(ErrorCluster {
                        // Each group has the template that made it, so it is not empty.
                        class: members[0].class,
                        cause: *cause,
                        template: known.text(number),
                        tool: tool.clone(),
                        count: total(members.iter().map(|one| one.count)),
                        example: members[0].example.clone(),
                        titles,
                        sessions,
                    });
                }
            }
        }
        // The sort is stable, so ties stay ordered by cause and tool.
        clusters.sort_by_key(|cluster| Reverse(cluster.count));
        clusters
    }
}

impl GradePatterns {
    /// Returns the patterns of records in any order.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a GradeRecord>) -> Self {
        PatternTally::from_records(newest_first(records)).patterns()
    }
}

impl TaskCounts {
    fn append(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.completed += other.completed;
        self.efficiency += other.efficiency;
        self.quality += other.quality;
        for (outcome, count) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += count;
        }
    }
}

impl ToolCounts {
    fn append(&mut self, other: Self) {
        add(&mut self.calls, other.calls);
        add(&mut self.errors, other.errors);
        self.sessions += other.sessions;
        self.sessions_with_errors += other.sessions_with_errors;
    }
}

fn append_tools(to: &mut BTreeMap<String, u64>, other: BTreeMap<String, u64>) {
    for (tool, count) in other {
        add(to.entry(tool).or_default(), count);
    }
}

/// Merges templates of an earlier period, whose session numbers are shifted by `before`.
fn append_templates(to: &mut Vec<TemplateCounts>, earlier: Vec<TemplateCounts>, before: u32) {
    for mut one in earlier {
        for number in &mut one.sessions {
            *number += before;
        }
        let at = to.iter().position(|known| known.template == one.template);
        // Beyond the limit the last entry takes the rest, as within a day.
        let full = (to.len() >= MAX_TEMPLATES).then(|| to.len() - 1);
        let Some(at) = at.or(full) else {
            to.push(one);
            continue;
        };
        let known = &mut to[at];
        add(&mut known.count, one.count);
        known.sessions.extend(one.sessions);
        // Several templates beyond the limit may have been merged into the last one.
        if !known.sessions.is_sorted_by(|a, b| a < b) {
            known.sessions.sort_unstable();
            known.sessions.dedup();
        }
    }
}

/// Returns the tools ordered by number of errors, and the total number of errors.
fn rank_by_errors(counts: &BTreeMap<String, u64>) -> (TruncatedList<String>, u64) {
    let mut tools: Vec<(&String, u64)> =
        counts.iter().map(|(tool, count)| (tool, *count)).collect();
    tools.sort_by_key(|(_, count)| Reverse(*count));
    let tools = tools.into_iter().map(|(tool, _)| tool.clone()).collect();
    (TruncatedList::new(tools, MAX_EXAMPLES), total(counts.values().copied()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grade::fixture::record;

    /// A session of a few tools, causes and templates, some of which are alike.
    fn session() -> impl Strategy<Value = GradeRecord> {
        let error = (0..3_usize, 0..3_usize, 0..6_usize, 0..3_u64);
        let errors = prop::collection::vec(error, 0..5);
        (0..4_u32, any::<bool>(), 1..=5_u8, 1..=5_u8, errors).prop_map(
            |(day, completed, efficiency, quality, errors)| {
                let task_type = TaskType::ALL[usize::from(efficiency) % TaskType::ALL.len()];
                let mut made = record("?", task_type, completed, efficiency, quality);
                made = made.at(&format!("2026-11-1{day}T12:00:00Z")).used("bash", 2);
                for (tool, class, template, count) in errors {
                    let tool = ["bash", "read", "edit"][tool];
                    let words = [
                        "no module alpha in scope",
                        "no module beta in scope",
                        "no module alpha in sight",
                        "no such thing at all",
                        "denied",
                        "",
                    ][template];
                    made = made.failed(tool, ErrorClass::ALL[class], count, words);
                    let error = made.details.errors.last_mut().unwrap();
                    words.clone_into(&mut error.template);
                    error.cause = ErrorCause::ALL[class];
                }
                made
            },
        )
    }

    proptest! {
        #[test]
        fn days_put_together_say_what_all_sessions_say(
            mut records in prop::collection::vec(session(), 0..60)
        ) {
            for (number, record) in records.iter_mut().enumerate() {
                record.session_id = format!("s{number}");
                record.task_summary = Some(format!("request {number}"));
            }
            let all = newest_first(&records);
            let days: Vec<PatternTally> = all
                .chunk_by(|a, b| a.details.counts_at == b.details.counts_at)
                .map(|day| PatternTally::from_records(day.iter().copied()))
                .collect();
            let kept: Vec<PatternTally> = days
                .iter()
                .map(|day| serde_json::from_str(&serde_json::to_string(day).unwrap()).unwrap())
                .collect();
            prop_assert_eq!(&kept, &days);
            let mut together = PatternTally::default();
            for day in kept {
                together.merge_earlier(day);
            }
            prop_assert_eq!(together, PatternTally::from_records(all.iter().copied()));
        }
    }

    #[test]
    fn a_session_with_two_templates_of_one_cluster_counts_once() {
        let one = record("a", TaskType::General, true, 3, 3)
            .failed("bash", ErrorClass::Timeout, 1, "no module alpha in scope")
            .failed("bash", ErrorClass::Timeout, 1, "no module beta in scope");
        let found = PatternTally::from_records([&one]).patterns();
        let cluster = &found.clusters.items[0];
        assert_eq!((cluster.count, cluster.sessions.total()), (2, 1));
    }

    #[test]
    fn few_sessions_are_named_however_many_there_are() {
        let mut tally = PatternTally::default();
        for number in 0..500 {
            let id = format!("s{number}");
            let failed = record(&id, TaskType::General, true, 3, 3);
            tally.add(&failed.failed("bash", ErrorClass::Timeout, 1, "timed out"));
        }
        assert_eq!(tally.named.len(), MAX_EXAMPLES);
        let found = tally.patterns();
        assert_eq!(found.error_causes[0].sessions.total(), 500);
        assert_eq!(found.clusters.items[0].titles.len(), MAX_EXAMPLES);
    }
}
