//! Reflections and their scores.

use serde_json::{Map, json};

use super::*;
use crate::{NewReflection, ReflectionQuery};
use selftest_grading::grade::reflection::{IssueCode, ReflectionIssue, ReflectionScore};

on_every_engine! {
    what_is_kept_comes_back,
    an_id_is_taken_once_in_its_project,
    loops_are_counted_in_their_project_unless_stated,
    many_may_submit_at_the_same_time,
    pages_and_sums,
    a_hook_is_claimed_once_until_it_is_given_back,
    rows_that_make_no_sense_are_left_out,
    whatever_is_too_long_is_shortened_or_refused,
}

fn new(project_id: &str, reflection_id: &str) -> NewReflection {
    let document = json!({ "summary": reflection_id, "half": 0.1 });
    NewReflection {
        project_id: project_id.to_owned(),
        reflection_id: reflection_id.to_owned(),
        agent: Some("HAL".to_owned()),
        loop_count: None,
        made_at: at("2026-11-20T10:00:00Z"),
        document: document.as_object().unwrap().clone(),
    }
}

fn score(new: &NewReflection, score: f64) -> ReflectionScore {
    ReflectionScore {
        project_id: new.project_id.clone(),
        reflection_id: new.reflection_id.clone(),
        agent: new.agent.clone(),
        loop_count: 1,
        score,
        threshold: 0.6,
        weak: score < 0.6,
        issues: vec![ReflectionIssue::new(IssueCode::LowConfidence, "0.1")],
        timestamp: at("2026-11-20T11:00:00.123456789Z"),
        made_at: new.made_at,
    }
}

/// Saves a reflection with that score.
async fn keep(store: &Store, project_id: &str, reflection_id: &str, value: f64) -> ReflectionScore {
    let new = new(project_id, reflection_id);
    let (kept, is_new) = store.add_reflection(&new).await.unwrap();
    assert!(is_new);
    let score = ReflectionScore { loop_count: kept.loop_count, ..score(&new, value) };
    store.save_reflection_score(kept.number, &score).await.unwrap();
    score
}

fn asked(project_id: Option<&str>, weak: bool, limit: u32) -> ReflectionQuery {
    ReflectionQuery { project_id: project_id.map(ToOwned::to_owned), weak, limit, after: None }
}

/// docs/spec/reflections.md#storage: reflections and their scores are stored.
async fn what_is_kept_comes_back(on: &Databases) {
    let store = on.store().await;
    let given = new("a", "r1");
    let (kept, is_new) = store.add_reflection(&given).await.unwrap();
    assert!(is_new && kept.document == given.document && kept.made_at == given.made_at);
    assert_eq!(store.last_reflection("a").await.unwrap(), Some(kept.clone()));
    assert_eq!(store.reflection_score(kept.number).await.unwrap(), None);
    let first = score(&given, 0.8);
    store.save_reflection_score(kept.number, &first).await.unwrap();
    assert_eq!(store.reflection_score(kept.number).await.unwrap(), Some(first));
    // Graded again: one score for each.
    let second = score(&given, 0.3);
    store.save_reflection_score(kept.number, &second).await.unwrap();
    let page = store.reflection_scores(&asked(Some("a"), false, 9)).await.unwrap();
    assert_eq!((page.items, page.next), (vec![second], None));
    assert_eq!(store.last_reflection("b").await.unwrap(), None);
}

async fn an_id_is_taken_once_in_its_project(on: &Databases) {
    let store = on.store().await;
    let (first, _) = store.add_reflection(&new("a", "r1")).await.unwrap();
    let other = NewReflection { document: Map::new(), ..new("a", "r1") };
    assert_eq!(store.add_reflection(&other).await.unwrap(), (first, false));
    assert!(store.add_reflection(&new("b", "r1")).await.unwrap().1);
}

/// docs/spec/reflections.md#functions, `grade_reflection`: `loop`, the current loop count.
async fn loops_are_counted_in_their_project_unless_stated(on: &Databases) {
    let store = on.store().await;
    let mut counts = Vec::new();
    for (project, id, stated) in
        [("a", "1", None), ("b", "2", None), ("a", "3", Some(u64::MAX)), ("a", "4", None)]
    {
        let given = NewReflection { loop_count: stated, ..new(project, id) };
        counts.push(store.add_reflection(&given).await.unwrap().0.loop_count);
    }
    assert_eq!(counts, [1, 1, i64::MAX.cast_unsigned(), 3]);
}

async fn many_may_submit_at_the_same_time(on: &Databases) {
    let store = on.store().await;
    let each = (0..20).map(|number| {
        let store = store.clone();
        async move { store.add_reflection(&new("a", &number.to_string())).await.unwrap().0 }
    });
    let kept = futures_util::future::join_all(each).await;
    let mut loops: Vec<u64> = kept.iter().map(|kept| kept.loop_count).collect();
    loops.sort_unstable();
    assert_eq!(loops, (1..=20).collect::<Vec<_>>());
}

/// docs/spec/reflections.md#functions: `count`, `average_score`, and weak ones by themselves.
async fn pages_and_sums(on: &Databases) {
    let store = on.store().await;
    for (project, id, value) in
        [("a", "1", 1.0), ("a", "2", 0.5), ("b", "3", 0.3), ("a", "4", 0.6), ("a", "5", 0.1)]
    {
        keep(&store, project, id, value).await;
    }
    let ids = |page: &crate::ResultPage<ReflectionScore>| {
        page.items.iter().map(|score| score.reflection_id.clone()).collect::<Vec<_>>()
    };
    let page = store.reflection_scores(&asked(Some("a"), false, 3)).await.unwrap();
    assert_eq!(ids(&page), ["5", "4", "2"]);
    let rest = ReflectionQuery { after: page.next, ..asked(Some("a"), false, 3) };
    assert_eq!(ids(&store.reflection_scores(&rest).await.unwrap()), ["1"]);
    let weak = store.scored_reflections(&asked(None, true, 9)).await.unwrap();
    let weak: Vec<_> = weak.items.iter().map(|weak| weak.reflection["summary"].clone()).collect();
    assert_eq!(weak, ["5", "3", "2"]);
    let sums = store.reflecting_projects(None, 9).await.unwrap().items;
    let sums: Vec<_> =
        sums.iter().map(|it| (&*it.project_id, it.count, it.average_score, it.weak)).collect();
    assert_eq!(sums, [("a", 4, 0.55, 2), ("b", 1, 0.3, 1)]);
    assert_eq!(store.reflecting_projects(Some("b"), 9).await.unwrap().items.len(), 1);
    assert_eq!(store.reflection_history("a", 5, 2).await.unwrap(), [0.6, 0.5]);
    assert_eq!(store.reflections_over_time(Some("a"), 2).await.unwrap().items.len(), 2);
}

async fn a_hook_is_claimed_once_until_it_is_given_back(on: &Databases) {
    let store = on.store().await;
    let score = keep(&store, "a", "1", 0.1).await;
    let claim = || store.claim_recovery(&score, at("2026-11-20T12:00:00Z"));
    assert!(claim().await.unwrap() && !claim().await.unwrap());
    // A new score of the same reflection does not trigger the hook again.
    let kept = store.last_reflection("a").await.unwrap().unwrap();
    store.save_reflection_score(kept.number, &score).await.unwrap();
    assert!(!claim().await.unwrap());
    store.release_recovery(&score).await.unwrap();
    assert!(claim().await.unwrap());
}

async fn rows_that_make_no_sense_are_left_out(on: &Databases) {
    let store = on.store().await;
    for (id, value) in [("1", 0.1), ("2", 0.2), ("3", 0.3), ("4", 0.4)] {
        keep(&store, "a", id, value).await;
    }
    execute(&store, "UPDATE reflection_scores SET score = 7 WHERE reflection = 2").await;
    execute(&store, "UPDATE reflection_scores SET issues_json = 'none' WHERE reflection = 3").await;
    execute(&store, "UPDATE reflections SET document_json = '[]' WHERE id = 4").await;
    let page = store.reflection_scores(&asked(None, false, 1)).await.unwrap();
    assert_eq!((page.items.len(), page.next.is_some()), (1, true), "4 has a score");
    let scores = store.reflection_scores(&asked(None, false, 9)).await.unwrap();
    assert_eq!(scores.items.len(), 2);
    assert_eq!(store.scored_reflections(&asked(None, false, 9)).await.unwrap().items.len(), 1);
    assert_eq!(store.reflections_over_time(None, 9).await.unwrap().unreadable, 1);
    assert_eq!(store.reflection_history("a", 9, 9).await.unwrap(), [0.4, 0.3, 0.1]);
    let error = store.last_reflection("a").await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the last reflection"), "{error}");
}

async fn whatever_is_too_long_is_shortened_or_refused(on: &Databases) {
    let store = on.store().await;
    let long = "x".repeat(5000);
    let given = NewReflection { agent: Some(long.clone()), ..new(&long, &long) };
    let (kept, _) = store.add_reflection(&given).await.unwrap();
    assert!(kept.project_id.len() < 600 && kept.agent.unwrap().len() < 600);
    assert_eq!(store.last_reflection(&long).await.unwrap().unwrap().number, kept.number);
    let document = json!({ "log": "x".repeat(1 << 18) }).as_object().unwrap().clone();
    let error = store.add_reflection(&NewReflection { document, ..new("a", "1") }).await;
    assert!(error.unwrap_err().to_string().starts_with("the reflection is too large"));
}
