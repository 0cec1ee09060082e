//! Tests of reading, grading and combining.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::built_in_template;
use super::grade::schema_in_prompt;
use super::*;
use crate::grade::QualityGrade;
use selftest_models::fence::FenceNonce;
use selftest_models::prompts::PromptLibrary;
use selftest_models::structured::ReplyError;
use selftest_sessions::OmissionCounts;
use selftest_text::digest;

const TRANSCRIPT: &str = "Session of demo.\n4 events: 1 user prompts.\n[1 user] Fix the   parser\n  on empty input\n\
    [2 call edit] path: src/parser.rs <|end|>\n[3 result failed exit 101] error: 2 failed\n\
    [4 user] ok!\n";

/// The SHA-256 of the rubric for each version that there was.
const RUBRIC_DIGESTS: [(u32, &str); 1] =
    [(1, "dd8297168d08cfb7f1c7168bea70ae964320394bde5ea8340e4ab6259639b404")];

#[test]
fn a_changed_rubric_has_a_new_version() {
    let dimensions = QualityDimension::ALL.map(|dimension| json!(dimension.description()));
    let rubric = json!([built_in_template(), dimensions, schema_in_prompt()]);
    let found = digest::json_sha256_hex(rubric);
    let recorded = RUBRIC_DIGESTS.iter().find(|(version, _)| *version == RUBRIC_VERSION);
    assert_eq!(
        recorded.map(|(_, digest)| *digest),
        Some(found.as_str()),
        "prompts/{TEMPLATE}, the anchors or the schema have changed. Grades by the old rubric must \
         not be mixed with those by the new one: raise RUBRIC_VERSION in \
         src/grade/quality/mod.rs and add ({}, \"{found}\") to RUBRIC_DIGESTS here. Only where \
         version {RUBRIC_VERSION} was never released may its digest be replaced instead.",
        RUBRIC_VERSION + 1,
    );
}

fn library(own: Option<&str>) -> PromptLibrary {
    let folder = tempfile::tempdir().unwrap();
    if let Some(own) = own {
        std::fs::create_dir_all(folder.path().join("prompts/grade")).unwrap();
        std::fs::write(folder.path().join("prompts").join(TEMPLATE), own).unwrap();
    }
    let mut library = PromptLibrary::new(folder.path(), crate::prompts::BUILT_IN);
    assert!(library.load(TEMPLATE).unwrap());
    library
}

#[test]
fn the_whole_prompt() {
    let library = library(None);
    let nonce = FenceNonce::random();
    let prompt = render(&library, TRANSCRIPT, &nonce).unwrap();
    assert!(!prompt.system.contains(nonce.as_str()), "the prefix must stay the same");
    assert_eq!(prompt.system, render(&library, "other", &FenceNonce::random()).unwrap().system);
    let user = prompt.user.replace(nonce.as_str(), "<nonce>");
    insta::assert_snapshot!(format!("{}\n=====\n{user}", prompt.system));
}

#[test]
fn an_edited_prompt_is_another_rubric() {
    assert_eq!(rubric_version(&library(None)), RUBRIC_VERSION);
    assert_eq!(rubric_version(&library(Some(built_in_template()))), RUBRIC_VERSION);
    assert_eq!(
        rubric_version(&PromptLibrary::new(std::path::Path::new("."), crate::prompts::BUILT_IN)),
        RUBRIC_VERSION
    );
    let of = |text: &str| rubric_version(&library(Some(text)));
    let kind = of("Be kind.\n<!-- case -->\n{{ transcript }}");
    assert_eq!(kind, of("Be kind.\n<!-- case -->\n{{ transcript }}"));
    assert_ne!(kind, of("Be strict.\n<!-- case -->\n{{ transcript }}"));
    assert!((FIRST_OWN_VERSION..1 << 31).contains(&kind));
    assert_eq!(rubric_name(1), "rubric 1");
    assert_eq!(rubric_name(FIRST_OWN_VERSION + 0x2f), "the project's own rubric 0000002f");
}

fn part(evidence: &str, score: &Value) -> Value {
    json!({ "evidence": evidence, "reasoning": "It was so.", "score": score })
}

fn good() -> Value {
    json!({
        "problem_solved": part("Fix the parser on empty input", &json!(0.7)),
        "tests_added": part("", &Value::Null),
        "code_clean": part("[2 call edit] path: src/parser.rs <|end|>", &json!(1)),
        "edge_cases_handled": part("error: 2 failed", &json!(0.05)),
        "summary": "The parser was fixed.",
    })
}

fn read(reply: &str) -> Result<QualityReading, ReplyError> {
    QualityReader::new().read(reply, TRANSCRIPT)
}

fn scores(reading: &QualityReading) -> [Option<f64>; 4] {
    reading.dimensions.each_ref().map(|part| part.score.map(f64::from))
}

#[test]
fn a_good_reply_is_read() {
    let reading = read(&good().to_string()).unwrap();
    assert_eq!(scores(&reading), [Some(0.7), None, Some(1.0), Some(0.05)]);
    assert_eq!(reading.unsupported_count(), 0);
    assert_eq!(reading.summary, "The parser was fixed.");
    let dimensions: Vec<_> = reading.dimensions.iter().map(|part| part.dimension).collect();
    assert_eq!(dimensions, QualityDimension::ALL);
    // 0.4 · 0.7 + 0.2 · 1 + 0.2 · 0.05 = 0.49, of 0.8.
    assert_eq!(reading.overall(&QualityWeights::default()), Some(0.6125));
}

#[test]
fn a_score_needs_a_quote_of_the_transcript() {
    for (quote, holds) in [
        ("Fix  the\nparser", true),
        ("path: src/parser.rs", true),
        ("path: src/parser.rs < |end| >", true),
        ("ok!", true),
        ("[4 user] ok!", true),
        ("ok", false),
        ("parser", false),
        ("", false),
        (" \n", false),
        ("fix the parser", false),
        ("Fix the … input", false),
        ("all 214 tests pass", false),
        ("error: 2 failed", true),
        ("parser on empty input path: src/parser.rs", true),
        // The transcript's own words.
        ("Session of demo.", false),
        ("4 events: 1 user prompts", false),
        ("[2 call edit]", false),
        ("result failed exit 101", false),
    ] {
        let mut reply = good();
        reply["problem_solved"] = part(quote, &json!(0.9));
        let reading = read(&reply.to_string()).unwrap();
        let part = &reading.dimensions[0];
        assert_eq!((part.score.is_some(), part.unsupported), (holds, !holds), "{quote:?}");
        reply["problem_solved"]["score"] = Value::Null;
        let reading = read(&reply.to_string()).unwrap();
        assert!(!reading.dimensions[0].unsupported, "{quote:?}");
    }
}

#[test]
fn broken_replies_are_malformed() {
    let whole = good().to_string();
    for (from, to) in [
        ("0.7", "\"0.7\""),
        ("0.7", "0.33"),
        ("0.7", "1.7"),
        ("0.7", "-0.05"),
        ("0.7", "NaN"),
        ("0.7", "true"),
        ("0.7", "[0.7]"),
        ("\"score\":0.7", "\"grade\":0.7"),
        (",\"score\":0.7", ""),
        ("\"score\":0.7", "\"score\":0.7,\"score\":0.7"),
        ("\"score\":0.7", "\"score\":0.7,\"sure\":1"),
        ("\"summary\":\"The parser was fixed.\"", "\"overall\":0.5"),
        ("\"summary\":", "\"overall\":0.5,\"summary\":"),
        ("\"summary\":", "\"summary\":\"\",\"summary\":"),
        ("\"The parser was fixed.\"", "null"),
        ("\"It was so.\"", "7"),
        ("{\"problem", "Here it is: {\"problem"),
        ("{\"problem", "```json\n{\"problem"),
        ("fixed.\"}", "fixed.\""),
        ("fixed.\"}", "fixed.\"} I hope this helps."),
    ] {
        let broken = whole.replacen(from, to, 1);
        assert_ne!(broken, whole, "{from}");
        assert!(matches!(read(&broken), Err(ReplyError::Malformed(_))), "{broken}");
    }
    for field in ["problem_solved", "tests_added", "code_clean", "edge_cases_handled", "summary"] {
        let mut without = good();
        without.as_object_mut().unwrap().remove(field);
        let Err(ReplyError::Malformed(faults)) = read(&without.to_string()) else {
            panic!("{field}")
        };
        assert!(faults.join("\n").contains(field), "{faults:?}");
    }
    for field in ["/summary", "/code_clean/evidence", "/code_clean/reasoning"] {
        let mut long = good();
        *long.pointer_mut(field).unwrap() = json!("é".repeat(201));
        assert!(matches!(read(&long.to_string()), Err(ReplyError::Malformed(_))), "{field}");
    }
    let deep = "{\"problem_solved\":".repeat(9999);
    for broken in ["", "It is good: 0.9.", "{}", "[]", "null", "0.9", deep.as_str()] {
        assert!(matches!(read(broken), Err(ReplyError::Malformed(_))), "{broken:.40}");
    }
    assert!(matches!(read("I'm sorry, but I can't grade this."), Err(ReplyError::Refused(_))));
}

#[test]
fn both_schemas_accept_the_same() {
    let mut off_grid = good();
    off_grid["code_clean"]["score"] = json!(0.33);
    for schema in [reply_schema(), schema_in_prompt()] {
        let schema = selftest_schema::Schema::compile(&schema).unwrap();
        assert!(schema.is_valid(&good()));
        assert!(!schema.is_valid(&off_grid));
    }
}

#[test]
fn the_overall_score_needs_two_dimensions() {
    let weights = QualityWeights::default();
    let mut reply = good();
    for field in ["code_clean", "edge_cases_handled"] {
        reply[field]["score"] = Value::Null;
    }
    let one = read(&reply.to_string()).unwrap();
    assert_eq!(scores(&one), [Some(0.7), None, None, None]);
    assert_eq!(one.overall(&weights), None);
    reply["problem_solved"]["score"] = Value::Null;
    let none = read(&reply.to_string()).unwrap();
    assert_eq!((scores(&none), none.overall(&weights)), ([None; 4], None));
    let grade = none.into_grade(about(), &weights);
    assert_eq!((grade.problem_solved, grade.overall), (None, None));
}

const LEFT_OUT: OmissionCounts = OmissionCounts {
    events: 9,
    user_prompts: 1,
    answers: 2,
    tool_calls: 3,
    results: 4,
    shortened: 5,
};

fn about() -> QualityContext<'static> {
    QualityContext {
        session_id: "s1",
        model: "ollama/small:1b",
        ts: Timestamp::UNIX_EPOCH,
        left_out: &LEFT_OUT,
        transcript_tokens: 812,
        rubric_version: FIRST_OWN_VERSION + 7,
    }
}

#[test]
fn a_grade_keeps_why() {
    let mut reply = good();
    reply["code_clean"]["evidence"] = json!("never said by anyone");
    reply["summary"] = json!(format!("Line one\n\u{1b}[31m{}", "é".repeat(180)));
    let reading = read(&reply.to_string()).unwrap();
    let grade = reading.into_grade(about(), &QualityWeights::default());
    assert_eq!((grade.session_id.as_str(), grade.model.as_str()), ("s1", "ollama/small:1b"));
    assert_eq!((grade.rubric_version, grade.ts), (FIRST_OWN_VERSION + 7, Timestamp::UNIX_EPOCH));
    assert_eq!((grade.code_clean, grade.edge_cases), (None, Some(0.05)));
    let reasoning = grade.reasoning.unwrap();
    assert!(reasoning.starts_with("Line one [31mé") && reasoning.chars().count() <= 200);
    let details = grade.details.unwrap();
    assert_eq!(details["weights"]["edge_cases_handled"], 0.2);
    assert_eq!(details["dimensions"]["code_clean"]["unsupported"], true);
    assert_eq!(details["dimensions"]["code_clean"]["evidence"], "never said by anyone");
    assert_eq!(details["dimensions"]["tests_added"]["unsupported"], false);
    assert_eq!(details["unsupported"], 1);
    assert_eq!(details["left_out"]["tool_calls"], 3);
    assert_eq!(
        (&details["transcript_tokens"], &details["prompt_edited"]),
        (&json!(812), &json!(true))
    );
}

fn grade(model: &str, version: u32, day: i64, solved: Option<f64>) -> QualityGrade {
    let reading = read(&good().to_string()).unwrap();
    QualityGrade {
        model: model.to_owned(),
        rubric_version: version,
        ts: Timestamp::from_second(day * 86400).unwrap(),
        problem_solved: solved,
        ..reading.into_grade(about(), &QualityWeights::default())
    }
}

#[test]
fn several_models_are_one_mean_and_a_spread() {
    assert_eq!(combine_grades(&[]), None);
    let combined = combine_grades(&[
        grade("a", 2, 9, Some(0.9)),
        // Not the latest of its model, and not the latest version.
        grade("a", 2, 1, Some(0.0)),
        grade("b", 1, 20, Some(0.1)),
        grade("c", 2, 3, Some(0.6)),
        grade("d", 2, 3, None),
    ])
    .unwrap();
    assert_eq!((combined.rubric_version, combined.models), (2, 3));
    let solved = ScoreSpread { mean: 0.75, spread: 0.3, models: 2 };
    assert_eq!(combined.problem_solved, Some(solved));
    assert_eq!(combined.tests_added, None);
    assert_eq!(combined.edge_cases, Some(ScoreSpread { mean: 0.05, spread: 0.0, models: 3 }));
    assert_eq!(json!(combined)["overall"]["models"], 3);
}

proptest! {
    #[test]
    fn noise_is_never_a_grade(reply in "\\PC*", transcript in "\\PC*") {
        prop_assert!(QualityReader::new().read(&reply, &transcript).is_err());
    }

    #[test]
    fn a_cut_reply_is_never_a_grade(cut in any::<usize>()) {
        let whole = good().to_string();
        let end = whole.floor_char_boundary(cut % whole.len());
        prop_assert!(read(&whole[..end]).is_err());
    }

    #[test]
    fn whatever_is_quoted_is_in_the_transcript(quote in "[a-z \n<|>\\[\\]é]{0,12}", transcript in "[ac-z \n<|>\\[\\]é]{0,60}") {
        let mut reply = good();
        reply["problem_solved"] = part(&quote, &json!(0.5));
        let shown = format!("[1 user] {}", transcript.replace('\n', "\n  "));
        let reading = QualityReader::new().read(&reply.to_string(), &shown).unwrap();
        let [first, ..] = &reading.dimensions;
        prop_assert!(first.unsupported != first.score.is_some());
        let whole = part(&transcript.chars().take(150).collect::<String>(), &json!(0.5));
        reply["problem_solved"] = whole.clone();
        let long_enough = whole["evidence"].as_str().unwrap().split_whitespace().map(str::len).sum::<usize>() >= 16;
        let reading = QualityReader::new().read(&reply.to_string(), &shown).unwrap();
        prop_assert!(!long_enough || reading.dimensions[0].score.is_some());
    }
}
