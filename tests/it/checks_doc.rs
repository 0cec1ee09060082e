//! docs/checks.md: each check on that page comes to what stands behind it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use selftest_checks::check::{
    self, CheckObservation, CommandOutcome, CommandRun, FileChanges, ObservedToolCall, decide,
    distinct_commands,
};

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

/// The contents of the fenced blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let rest = page.split(&begin).skip(1);
    rest.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_check_comes_to_what_the_page_says() {
    let page = page("checks.md");
    let answer = &blocks(&page, "text")[0];
    let yaml = blocks(&page, "yaml");
    let did: Value = serde_yaml::from_str(&yaml[0]).unwrap();
    let calls: Vec<ObservedToolCall> = serde_json::from_value(did["tool_calls"].clone()).unwrap();
    let files: FileChanges = serde_json::from_value(did["files"].clone()).unwrap();
    let mut tried = 0;
    for block in &yaml[1..] {
        let document: Value = serde_yaml::from_str(block).unwrap();
        let checks = check::read_list(&document["checks"]).unwrap();
        let ended = |command: &check::CommandCheck| {
            let end = &did["commands"][command.run.program()];
            let code = i32::try_from(end["code"].as_i64().unwrap()).unwrap();
            let end =
                CommandOutcome::Exited { code, stdout: end["stdout"].as_str().unwrap().to_owned() };
            CommandRun { command: command.clone(), end }
        };
        let runs: Vec<CommandRun> = distinct_commands(&checks).into_iter().map(ended).collect();
        let seen = CheckObservation {
            status: Some(serde_json::from_value(did["status"].clone()).unwrap()),
            output: answer,
            answers: &[answer],
            tool_calls: Some(&calls),
            files: Some(&files),
            turns: did["turns"].as_u64(),
            tokens: did["tokens"].as_u64(),
            duration: did["seconds"].as_f64().map(Duration::from_secs_f64),
            commands: &runs,
        };
        let words: Vec<&str> = block
            .lines()
            .filter_map(|line| line.split_once("  # "))
            .map(|(_, words)| words)
            .collect();
        assert_eq!(words.len(), checks.len(), "each check says what comes of it:\n{block}");
        for (check, words) in checks.iter().zip(words) {
            let found = decide(check, &seen);
            let (outcome, sentence) = words.split_once(": ").unwrap_or((words, ""));
            assert_eq!(found.outcome.to_string(), outcome, "{check:?}: {}", found.sentence);
            assert!(
                sentence.is_empty() || sentence == found.sentence,
                "{words}\n{}",
                found.sentence
            );
            tried += 1;
        }
    }
    let kinds =
        check::CheckKind::NAMES.iter().copied().filter(|kind| !page.contains(&format!("{kind}:")));
    assert_eq!(kinds.collect::<Vec<_>>(), [""; 0], "every kind has an example");
    assert!(tried > 30, "{tried}");
}
