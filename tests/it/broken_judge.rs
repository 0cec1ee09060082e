//! A judge that answers badly never passes a case and never fails one.
//!
//! Each entry of the table is the judge's reply to one scenario; all of them run in one
//! process per protocol.

use serde_json::{Value, json};

use crate::model_server::{Call, ModelServer, Reply, Role, generated, verdict};
use crate::report::{Case, Report};
use crate::workspace::{CLEAR, OLLAMA, OPENAI, Workspace, config, scenarios};

/// A reply, why it leaves the case unscored, and how many calls it takes to find that out.
struct Broken {
    name: &'static str,
    reply: Reply,
    reason: &'static str,
    calls: usize,
}

/// Not a verdict: re-asked twice.
fn malformed(name: &'static str, reply: impl Into<Reply>) -> Broken {
    Broken { name, reply: reply.into(), reason: "malformed", calls: 3 }
}

/// Known at once.
fn other(name: &'static str, reason: &'static str, reply: impl Into<Reply>) -> Broken {
    Broken { name, reply: reply.into(), reason, calls: 1 }
}

fn good() -> Value {
    json!({
        "explanation": "Fine.",
        "format_score": 1.0,
        "factuality_score": 1.0,
        "instruction_following_score": 1.0,
        "safety_score": 1.0,
    })
}

/// A good verdict but for one field.
fn with(field: &str, value: Value) -> Value {
    let mut verdict = good();
    verdict[field] = value;
    verdict
}

/// A good verdict with this text in place of a number, which JSON itself may not allow.
fn literal(text: &str) -> String {
    with("format_score", json!("@")).to_string().replace("\"@\"", text)
}

fn table() -> Vec<Broken> {
    let good_text = good().to_string();
    let mut without = good();
    without.as_object_mut().unwrap().remove("safety_score");
    let mut nulls = good();
    for (field, value) in nulls.as_object_mut().unwrap() {
        if field.ends_with("_score") {
            *value = Value::Null;
        }
    }
    let half = &good_text[..good_text.len() / 2];
    vec![
        malformed("empty", ""),
        malformed("white space", " \n\t\n"),
        malformed("prose", "The answer is good, I would say 9 out of 10."),
        malformed("empty object", "{}"),
        malformed("missing field", without),
        malformed("extra field", with("overall_score", json!(1.0))),
        malformed("no explanation", with("explanation", Value::Null)),
        malformed("string number", with("format_score", json!("1.0"))),
        malformed("above one", literal("1.7")),
        malformed("below zero", literal("-3")),
        malformed("NaN", literal("NaN")),
        malformed("overflow", literal("1e999")),
        malformed("Infinity", literal("Infinity")),
        malformed("off the grid", literal("0.92")),
        malformed("boolean score", with("format_score", json!(true))),
        malformed("nested score", with("format_score", json!({ "score": 1.0 }))),
        malformed("nested verdict", json!({ "verdict": good() })),
        malformed("null", "null"),
        malformed("bare true", "true"),
        malformed("bare number", "1"),
        malformed("array", json!([good()])),
        malformed("two objects", format!("{good_text}\n{good_text}")),
        malformed("fenced", format!("```json\n{good_text}\n```")),
        malformed("JSON, then prose", format!("{good_text}\nI hope this helps.")),
        malformed("prose, then JSON", format!("Here is my verdict:\n{good_text}")),
        malformed("half", half),
        malformed("HTML", "<html><body>502 Bad Gateway</body></html>"),
        malformed("duplicate keys", good_text.replacen('{', "{\"format_score\":0.0,", 1)),
        malformed("pass only", json!({ "pass": true })),
        malformed("score only", json!({ "score": 1 })),
        malformed("single quotes", good_text.replace('"', "'")),
        malformed("trailing comma", good_text.replace('}', ",}")),
        malformed("comment", good_text.replace('}', "} // fine")),
        malformed("5 MB of brackets", "[".repeat(5_000_000)),
        malformed(
            "deep nesting",
            with("format_score", json!("@"))
                .to_string()
                .replace("\"@\"", &("[".repeat(20_000) + "]".repeat(20_000).as_str())),
        ),
        malformed("control characters", "\u{1b}[31m\u{0}\u{7}"),
        other("all null", "cant_tell", nulls),
        other("one null", "cant_tell", with("factuality_score", Value::Null)),
        other("cut by the limit", "truncated", Reply::Truncated(half.to_owned())),
        other("whole, but cut by the limit", "truncated", Reply::Truncated(good_text.clone())),
        other(
            "prompt cut by the server",
            "truncated",
            Reply::CutPrompt { prompt_tokens: 256, text: good_text.clone() },
        ),
        other("refusal in prose", "refused", "I'm sorry, but I can't help with that."),
        other("web page", "unavailable", Reply::Html),
        other("empty body", "unavailable", Reply::EmptyBody),
        other("closed mid-reply", "unavailable", Reply::CloseMidway),
        other("error 500", "unavailable", Reply::status(500)),
        other("error 400", "unavailable", Reply::status(400)),
        other(
            "invalid UTF-8",
            "unavailable",
            Reply::Bytes(b"{\"explanation\": \"\xff\xfe\"}".to_vec()),
        ),
    ]
}

/// Replies that only one of the protocols has a word for.
fn of_openai() -> Vec<Broken> {
    vec![
        other("refusal field", "refused", Reply::Refusal("I can't judge this.".to_owned())),
        other("content filter", "refused", Reply::Filtered(String::new())),
    ]
}

fn of_ollama() -> Vec<Broken> {
    let thinking = good().to_string();
    vec![malformed("verdict in the thinking", Reply::Thinking { thinking, text: String::new() })]
}

/// Runs one scenario per entry. The number of the entry travels from the description of the
/// scenario through the generated prompt to the judge.
fn run(model: &str, table: &[Broken]) {
    let replies: Vec<Reply> = table.iter().map(|broken| broken.reply.clone()).collect();
    let server = ModelServer::script()
        .generator(|call| {
            let mut case = generated(call);
            let number = number_after("Request number ", &call.text());
            let prompt = case["prompt"].as_str().unwrap();
            case["prompt"] = format!("{prompt} Add sample {number}.").into();
            case
        })
        .judge(move |call: &Call| replies[number_after("Add sample ", &call.text())].clone())
        .start();
    let run = Workspace::new()
        .config(config(model, &scenarios(table.len())))
        .server(&server)
        .args(["--full"])
        .run()
        .exit(3);

    let report = run.report();
    let count = table.len() as u64;
    assert_eq!(report.counts(), [count, 0, 0, count]);
    assert!(report.summary()["pass_rate"].is_null(), "{report}");
    let faults: Vec<String> = table
        .iter()
        .enumerate()
        .filter_map(|(number, broken)| fault(&report, number, broken))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn number_after(mark: &str, text: &str) -> usize {
    let (_, rest) = text.rsplit_once(mark).unwrap_or_else(|| panic!("no `{mark}` in {text}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// The faults in the report of one entry, so that a failure names all of them.
fn fault(report: &Report, number: usize, broken: &Broken) -> Option<String> {
    let case = report.case_of(&format!("case-{number}"));
    let raw_is_kept = match &broken.reply {
        Reply::Text(text) => kept(&case, text),
        Reply::Json(value) => case
            .raw_replies()
            .iter()
            .all(|raw| serde_json::from_str::<Value>(raw).is_ok_and(|raw| raw == *value)),
        _ => true,
    };
    let facts = [
        ("pass is not null", case.pass().is_some()),
        ("it is not unscored", case.status() != "unscored"),
        ("it has an overall score", case.overall().is_some()),
        ("wrong reason", case.unscored_reason() != Some(broken.reason)),
        ("wrong number of calls", case.judge_calls().len() != broken.calls),
        ("the raw reply is not kept", !raw_is_kept),
    ];
    let wrong: Vec<&str> =
        facts.iter().filter(|(_, wrong)| *wrong).map(|(what, _)| *what).collect();
    (!wrong.is_empty()).then(|| {
        let (name, reason, calls) = (broken.name, case.unscored_reason(), case.judge_calls().len());
        format!("{name}: {} (reason {reason:?}, {calls} calls)", wrong.join(", "))
    })
}

/// Whether every call of the judge keeps the reply as it came, or the start of a huge one.
fn kept(case: &Case<'_>, text: &str) -> bool {
    let start = &text[..text.len().min(60_000)];
    let raw = case.raw_replies();
    raw.len() == case.judge_calls().len() && raw.iter().all(|reply| reply.starts_with(start))
}

#[test]
fn over_the_openai_protocol_no_broken_reply_decides_a_case() {
    let mut table = table();
    table.extend(of_openai());
    run(OPENAI, &table);
}

#[test]
fn over_the_ollama_protocol_no_broken_reply_decides_a_case() {
    let mut table = table();
    table.extend(of_ollama());
    run(OLLAMA, &table);
}

#[test]
fn the_battery_is_not_too_small() {
    assert!(table().len() >= 30);
}

#[test]
fn a_reask_that_helps_gives_a_verdict() {
    let server = ModelServer::script()
        .judge(|call| if call.number < 2 { Reply::from("{}") } else { verdict(call, 0.9).into() })
        .start();
    let report = Workspace::simple(&server).run().exit(0).report();
    let case = report.case();
    assert_eq!(case.pass(), Some(true));
    assert_eq!(case.judge_calls().len(), 3);
    assert_eq!(case.raw_replies()[..2], ["{}", "{}"]);
}

#[test]
fn a_reask_tells_the_judge_what_was_wrong() {
    let server = ModelServer::script()
        .judge(|call| {
            if call.number == 0 {
                with("format_score", json!(0.92)).into()
            } else {
                Reply::from(verdict(call, 0.9))
            }
        })
        .start();
    let _ = Workspace::simple(&server).run().exit(0);
    let calls = server.calls(Role::Judge);
    assert!(calls[1].last_message().contains("format_score"), "{}", calls[1].last_message());
}

#[test]
fn max_reasks_is_a_setting() {
    let server = ModelServer::script().judge(|_| "{}").start();
    let yaml = config(OPENAI, CLEAR).replace("judge: {", "judge: { max_reasks: 0,");
    let report = Workspace::new().config(yaml).server(&server).run().exit(3).report();
    assert_eq!(report.case().judge_calls().len(), 1);
}

#[test]
fn one_unscored_case_among_passed_ones_is_inconclusive() {
    let server = ModelServer::script()
        .judge(
            |call| {
                if call.number == 0 { "null".into() } else { Reply::from(verdict(call, 0.9)) }
            },
        )
        .start();
    let yaml = config(OPENAI, &scenarios(3)).replace("judge: {", "judge: { max_reasks: 0,");
    let report = Workspace::new().config(yaml).server(&server).run().exit(3).report();
    assert_eq!(report.counts(), [3, 2, 0, 1]);
    assert_eq!(report.summary()["pass_rate"], 1.0);
}

#[test]
fn a_failed_case_outweighs_an_unscored_one() {
    let server = ModelServer::script()
        .judge(
            |call| {
                if call.number == 0 { "null".into() } else { Reply::from(verdict(call, 0.1)) }
            },
        )
        .start();
    let yaml = config(OPENAI, &scenarios(2)).replace("judge: {", "judge: { max_reasks: 0,");
    let report = Workspace::new().config(yaml).server(&server).run().exit(1).report();
    assert_eq!(report.counts(), [2, 0, 1, 1]);
}
