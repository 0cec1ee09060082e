//! The criteria of docs/spec/reflections.md, section by section, and what it leaves open.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use selftest_stats::score::{Score, Threshold};

/// Long enough, and with every word of the goal.
const SUMMARY: &str = "The login page now retries; the tests of the page are green";

/// A reflection without any issue.
fn good() -> Value {
    json!({
        "agent": "HAL", "goal": "Retry the login page", "summary": SUMMARY, "confidence": 0.8,
        "tags": ["loop:2", "status:success"],
    })
}

/// The same with other fields; null takes one away.
fn with(changes: Value) -> Map<String, Value> {
    let (Value::Object(mut document), Value::Object(changes)) = (good(), changes) else {
        panic!("not objects")
    };
    for (key, value) in changes {
        if value.is_null() {
            document.remove(&key);
        } else {
            document.insert(key, value);
        }
    }
    document
}

fn unreadable(path: &Path) -> Result<Value, SchemaFileError> {
    let source = std::io::ErrorKind::NotFound.into();
    Err(SchemaFileError::Unreadable { file: path.to_owned(), source })
}

fn rules(settings: &ReflectionSettings) -> ReflectionRules {
    ReflectionRules::new(settings, unreadable).unwrap()
}

fn graded(document: &Map<String, Value>) -> (f64, Vec<&'static str>) {
    let grade = grade_reflection(document, rules(&ReflectionSettings::default()).for_agent(None));
    (grade.score.get(), grade.issues.iter().map(|issue| issue.code.name()).collect())
}

/// docs/spec/reflections.md#scoring: each deduction, and the limits of 0.6, 50 and 1000.
#[test]
fn section_scoring_system() {
    let cases = [
        // Starting score: 1.0
        (json!({}), 1.0, &[][..]),
        // Schema mismatch: -0.3
        (json!({ "tags": "loop:2" }), 0.7, &["schema_mismatch"]),
        // Low confidence (< 0.6): -0.2
        (json!({ "confidence": 0.59 }), 0.8, &["low_confidence"]),
        (json!({ "confidence": 0.6 }), 1.0, &[]),
        // Missing loop reference tag: -0.1
        (json!({ "tags": ["status:success"] }), 0.9, &["loop_tag_missing"]),
        (json!({ "tags": [] }), 0.9, &["loop_tag_missing"]),
        // Summary doesn't align with goal: -0.15
        (json!({ "goal": "Deploy the shop to staging" }), 0.85, &["goal_misaligned"]),
        // Summary too brief (< 50 chars): -0.1
        (json!({ "summary": format!("login {}", "é".repeat(43)) }), 0.9, &["summary_too_brief"]),
        (json!({ "summary": format!("login {}", "é".repeat(44)) }), 1.0, &[]),
        // Summary excessively verbose (> 1000 chars): -0.05
        (json!({ "summary": format!("login {}", "é".repeat(995)) }), 0.95, &["summary_too_long"]),
        (json!({ "summary": format!("login {}", "é".repeat(994)) }), 1.0, &[]),
    ];
    for (changes, score, issues) in cases {
        let (found, named) = graded(&with(changes.clone()));
        assert_eq!((found, named.as_slice()), (score, issues), "{changes}");
    }
}

/// docs/spec/reflections.md#scoring: 1.0 less the sum of all deductions.
#[test]
fn section_scoring_system_deductions_add_up() {
    let worst = with(json!({ "summary": 7, "confidence": 0.1, "tags": "x" }));
    let (score, issues) = graded(&worst);
    // 1.0 - 0.3 - 0.2 - 0.1 - 0.15 - 0.1
    assert_eq!(score, 0.15);
    let expected = [
        "schema_mismatch",
        "low_confidence",
        "loop_tag_missing",
        "goal_misaligned",
        "summary_too_brief",
    ];
    assert_eq!(issues, expected);
    // 1.0 - 0.3 - 0.1 = 0.6, which binary fractions miss by a bit.
    let (score, _) = graded(&with(json!({ "tags": {} })));
    assert_eq!(score, 0.6);
}

/// docs/spec/reflections.md#scoring: below 0.6 a reflection is weak.
#[test]
fn section_scoring_system_weak_is_below() {
    // "Reflections with scores below 0.6 are considered weak".
    let settings = ReflectionSettings::default();
    assert_eq!(settings.weak_threshold.get(), 0.6);
    let is_weak = |changes: Value| {
        grade_reflection(&with(changes), rules(&settings).for_agent(None))
            .is_weak(settings.weak_threshold)
    };
    assert!(!is_weak(json!({ "tags": {} })), "0.6");
    assert!(is_weak(json!({ "tags": {}, "summary": "The login page retries" })), "0.5");
}

/// docs/spec/reflections.md#criteria: schema compliance.
#[test]
fn section_grading_criteria_1_schema_compliance() {
    for (changes, part) in [
        (json!({ "confidence": "0.8" }), "/confidence"),
        (json!({ "confidence": 80 }), "/confidence"),
        (json!({ "goal": null }), "\"goal\" is a required property"),
        (json!({ "summary": [SUMMARY] }), "/summary"),
        (json!({ "tags": ["loop:2", 7] }), "/tags/1"),
    ] {
        let document = with(changes.clone());
        let grade =
            grade_reflection(&document, rules(&ReflectionSettings::default()).for_agent(None));
        let issue = &grade.issues[0];
        assert_eq!((issue.code, issue.deduction), (IssueCode::SchemaMismatch, 0.3), "{changes}");
        assert!(issue.text.contains(part), "{}", issue.text);
    }
    // Unknown fields are no error.
    assert_eq!(graded(&with(json!({ "mood": { "deep": [1] } }))).0, 1.0);
}

/// docs/spec/reflections.md#criteria: the expected schema is a setting.
#[test]
fn section_grading_criteria_1_the_schema_is_configured() {
    let Value::Object(schema) = json!({ "required": ["mood"] }) else { panic!() };
    let criteria = ReflectionCriteria { schema: Some(schema), ..ReflectionCriteria::default() };
    let settings = ReflectionSettings { criteria, ..ReflectionSettings::default() };
    assert_eq!(
        grade_reflection(&with(json!({})), rules(&settings).for_agent(None)).score.get(),
        0.7
    );
    let moody = with(json!({ "mood": 1, "tags": "loop 2" }));
    assert_eq!(grade_reflection(&moody, rules(&settings).for_agent(None)).score.get(), 1.0);
}

/// docs/spec/reflections.md#criteria: confidence.
#[test]
fn section_grading_criteria_2_a_missing_confidence_is_no_confidence() {
    // Other than specified (docs/spec/reflections.md#where-the-program-differs-and-why): it is
    // reported as missing, not as 1.0. By itself it costs nothing; the built-in schema asks for it,
    // so that leaving it out is no way around a low one.
    let (score, issues) = graded(&with(json!({ "confidence": null })));
    assert_eq!((score, issues), (0.7, vec!["schema_mismatch", "confidence_missing"]));
    for value in [json!("high"), json!(85), json!(-1), json!(true)] {
        let (_, issues) = graded(&with(json!({ "confidence": value })));
        assert!(issues.contains(&"confidence_missing"), "{value}");
        assert!(!issues.contains(&"low_confidence"), "{value}");
    }
    let Value::Object(anything) = json!({}) else { panic!() };
    let criteria = ReflectionCriteria { schema: Some(anything), ..ReflectionCriteria::default() };
    let settings = ReflectionSettings { criteria, ..ReflectionSettings::default() };
    let grade =
        grade_reflection(&with(json!({ "confidence": null })), rules(&settings).for_agent(None));
    assert_eq!((grade.score.get(), grade.issues.len()), (1.0, 1));
    assert_eq!(grade.issues[0].deduction, 0.0);
}

/// docs/spec/reflections.md#criteria: tags, above all a reference to a loop.
#[test]
fn section_grading_criteria_3_loop_references() {
    for tag in ["loop:2", "loop_3", "Loop-4", "loop 5", "#loop6", "LOOP:planning"] {
        assert_eq!(graded(&with(json!({ "tags": ["x", tag] }))).0, 1.0, "{tag}");
    }
    for tag in ["loop", "loop:", "loophole", "the loop:2", "feedback-loop"] {
        assert_eq!(graded(&with(json!({ "tags": [tag] }))).0, 0.9, "{tag}");
    }
    let rules = rules(&ReflectionSettings::default());
    let loop_of = |tags: &[&str]| {
        rules.for_agent(None).loop_number(&tags.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(loop_of(&["step:9", "loop_12", "loop:3"]), Some(12));
    assert_eq!(loop_of(&["loop:planning"]), None);
}

/// docs/spec/reflections.md#criteria: goal alignment.
#[test]
fn section_grading_criteria_4_goal_alignment() {
    // One of four words is a quarter.
    let goal = "login deploy shop staging";
    assert_eq!(graded(&with(json!({ "goal": goal }))).0, 1.0);
    assert_eq!(graded(&with(json!({ "goal": format!("{goal} cluster") }))).0, 0.85);
    // Without a goal nothing is compared, and nothing is made up.
    for goal in [json!(""), json!("do it")] {
        assert_eq!(graded(&with(json!({ "goal": goal }))), (1.0, vec!["goal_missing"]));
    }
    let (_, issues) = graded(&with(json!({ "summary": "" })));
    assert_eq!(issues, ["goal_misaligned", "summary_too_brief"]);
}

/// docs/spec/reflections.md#criteria: length.
#[test]
fn section_grading_criteria_5_white_space_is_no_clarity() {
    let spaced = format!("login{}", " ".repeat(100));
    assert_eq!(graded(&with(json!({ "summary": spaced }))).1, ["summary_too_brief"]);
}

/// docs/spec/reflections.md#agent-specific-grading.
#[test]
fn section_future_enhancements_agent_specific_grading() {
    // The agents of docs/spec/reflections.md.
    let confidence = |least| AgentCriteria {
        min_confidence: Some(Score::new(least).unwrap()),
        ..AgentCriteria::default()
    };
    let agents = BTreeMap::from([
        ("HAL".to_owned(), confidence(0.7)),
        ("SAGE".to_owned(), AgentCriteria { summary_min_chars: Some(200), ..confidence(0.5) }),
        ("CRITIC".to_owned(), confidence(0.9)),
        (
            "Orchestrator".to_owned(),
            AgentCriteria { tag_pattern: Some("^step".to_owned()), ..AgentCriteria::default() },
        ),
    ]);
    let settings = ReflectionSettings { agents, ..ReflectionSettings::default() };
    let rules = rules(&settings);
    let score = |agent| grade_reflection(&with(json!({})), rules.for_agent(agent)).score.get();
    assert_eq!(score(Some("hal")), 1.0);
    assert_eq!(score(Some("SAGE")), 0.9);
    assert_eq!(score(Some("Critic")), 0.8);
    assert_eq!(score(Some("orchestrator")), 0.9);
    assert_eq!((score(Some("nobody")), score(None)), (1.0, 1.0));
}

#[test]
fn criteria_that_cannot_be_used_are_all_named() {
    let Value::Object(schema) = json!({ "type": "elephant" }) else { panic!() };
    let criteria = ReflectionCriteria {
        tag_pattern: "(".to_owned(),
        summary_min_chars: 2000,
        schema: Some(schema),
        ..ReflectionCriteria::default()
    };
    let own = AgentCriteria {
        tag_pattern: Some("ok".to_owned()),
        summary_min_chars: Some(1),
        schema_file: Some("hal.json".into()),
        ..AgentCriteria::default()
    };
    let agents = BTreeMap::from([("HAL".to_owned(), own)]);
    let settings = ReflectionSettings { criteria, agents, ..ReflectionSettings::default() };
    let faults = ReflectionRules::new(&settings, unreadable).unwrap_err();
    let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(words.join("\n"));
}

#[test]
fn a_schema_reaches_for_nothing_outside() {
    for reference in ["file:///etc/passwd", "https://example.org/schema.json"] {
        let Value::Object(schema) = json!({ "$ref": reference }) else { panic!() };
        let criteria = ReflectionCriteria { schema: Some(schema), ..ReflectionCriteria::default() };
        let settings = ReflectionSettings { criteria, ..ReflectionSettings::default() };
        let faults = ReflectionRules::new(&settings, |_| Ok(json!(true))).unwrap_err();
        assert_eq!(faults[0].key, "criteria/schema");
    }
}

/// docs/spec/reflections.md#scoring: six deductions, and no other.
#[test]
fn codes_have_one_name_each() {
    for &code in IssueCode::ALL {
        assert_eq!(json!(code), code.name());
    }
    let total: u32 = IssueCode::ALL.iter().map(|code| u32::from(code.hundredths())).sum();
    // The six of the specification.
    assert_eq!(total, 30 + 20 + 10 + 15 + 10 + 5);
}

#[test]
fn issues_say_it_in_words() {
    let worst = with(json!({
        "goal": "Deploy the shop", "summary": "Did stuff", "confidence": 0.3, "tags": ["done"],
        "extra": "<script>",
    }));
    let grade = grade_reflection(&worst, rules(&ReflectionSettings::default()).for_agent(None));
    let words: Vec<String> =
        grade.issues.iter().map(|issue| format!("-{} {}", issue.deduction, issue.text)).collect();
    insta::assert_snapshot!(words.join("\n"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_has_a_score_that_its_issues_explain(
        fields in proptest::collection::vec(any_json(), 6),
        threshold in 0.0..=1.0f64,
    ) {
        let keys = ["goal", "summary", "confidence", "tags", "loop", "agent"];
        let document = keys.iter().map(ToString::to_string).zip(fields).collect();
        let rules = rules(&ReflectionSettings::default());
        let grade = grade_reflection(&document, rules.for_agent(None));
        let lost: f64 = grade.issues.iter().map(|issue| issue.deduction).sum();
        prop_assert!((grade.score.get() - (1.0 - lost).max(0.0)).abs() < 1e-9);
        let threshold = Threshold::new(threshold).unwrap();
        prop_assert_eq!(grade.is_weak(threshold), !grade.score.reaches(threshold));
        for issue in &grade.issues {
            prop_assert!(issue.text.len() < 1000 && !issue.text.contains('\n'), "{}", issue.text);
        }
    }
}
