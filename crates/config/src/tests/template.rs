//! Tests that the commented configuration describes every key correctly.

use std::fmt::Write as _;

use serde_json::json;
use strum::VariantArray as _;

use super::resolved;
use crate::{Config, TEMPLATE, variables};
use selftest_harness::rubric::Rubric;
use selftest_harness::sut::sut_settings::{ChatSettings, HttpSettings};
use selftest_reports::ci::{ReportFileKind, ReportRequest};

/// The template with its optional lines made active, for the adapters that `keep` accepts.
fn uncommented(adapter: &str) -> String {
    let mut text = String::new();
    let mut active = true;
    for line in TEMPLATE.lines() {
        let indent = line.len() - line.trim_start().len();
        let rest = match line[indent..].strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-') => rest,
            _ => &line[indent..],
        };
        match (indent, rest) {
            (2, "identity:") => active = true,
            (2, "example: {}" | "chat:" | "command:" | "acp:" | "http:") => {
                active = rest.trim_end_matches(':') == adapter;
            }
            (0, _) if !rest.is_empty() => active = true,
            _ => {}
        }
        if active {
            let _ = writeln!(text, "{}{rest}", " ".repeat(indent));
        }
    }
    text
}

#[test]
fn the_template_documents_the_true_defaults() {
    let plain = resolved(Some(TEMPLATE), &[], &[]).unwrap();
    assert_eq!(plain.warnings, Vec::<String>::new());
    assert_eq!(plain.config.scenarios, Config::default().scenarios);
    for adapter in ["chat", "command", "acp", "http"] {
        let text = uncommented(adapter);
        let full = resolved(Some(&text), &[], &[]).unwrap_or_else(|errors| panic!("{errors}"));
        // Keys without a default have an example, and a scenario's own values repeat the run's.
        let mut config = full.config;
        assert_eq!(
            (config.concurrency.take(), config.models.concurrency.take()),
            (Some(4), Some(8))
        );
        assert_eq!(config.baseline.take(), Some("config/selftest-baseline.json".into()));
        assert_eq!(config.generator.think.take(), Some(false));
        assert_eq!(config.judge.think.take(), Some(false));
        assert_eq!(config.grade.quality.think.take(), Some(false));
        let alerts = &mut config.grade.alerts;
        assert_eq!(alerts.command.take().unwrap(), ["./notify", "--team"]);
        assert_eq!(alerts.webhook.take().as_deref(), Some("https://example.org/hook"));
        let reflection = &mut config.grade.reflection;
        let agents: Vec<String> = std::mem::take(&mut reflection.agents).into_keys().collect();
        assert_eq!(agents, ["CRITIC", "HAL", "Orchestrator", "SAGE"]);
        assert!(reflection.criteria.schema.take().unwrap().contains_key("required"));
        let hook = std::mem::take(&mut reflection.hook);
        assert_eq!(hook.command.unwrap(), ["./recover", "--rerun"]);
        assert_eq!(hook.webhook.as_deref(), Some("https://example.org/weak"));
        let refresh = &mut config.skills.refresh;
        assert_eq!(refresh.command.take().unwrap(), ["./reload-skills"]);
        assert_eq!(refresh.webhook.take().as_deref(), Some("https://example.org/skills"));
        let prices = std::mem::take(&mut config.prices.models);
        let names: Vec<String> = prices.into_keys().collect();
        assert_eq!(names, ["my-sonnet", "ollama/*", "openai/gpt-4o-mini"]);
        let asked = config.reports.requests();
        let files = asked.iter().filter(|request| request.path().is_some()).count();
        assert_eq!(files, ReportFileKind::VARIANTS.len(), "an example of each kind of file");
        assert!(asked.contains(&ReportRequest::Otlp("http://127.0.0.1:4318".to_owned())));
        config.reports.set_requests(&[]);
        assert_eq!(config.gaps.suite.take(), Some("config/suites/skills.yaml".into()));
        assert_eq!(config.scenarios[1].timeout_seconds, Some(60.0));
        assert_eq!(config.scenarios[1].files, ["README.md"]);
        config.scenarios[1] = plain.config.scenarios[1].clone();
        assert_eq!(config.rubric.take().as_deref(), Some(Rubric::default().categories()));
        match adapter {
            "command" => {
                let command = config.sut.command.take().unwrap();
                assert_eq!(json!(command.speech.protocol), "json_lines");
            }
            "acp" => assert_eq!(config.sut.acp.take().unwrap().run, ["qwen", "--acp"]),
            "http" => {
                let mut http = config.sut.http.take().unwrap();
                assert_eq!(http.token_variable.take().as_deref(), Some("PM_TOKEN"));
                assert_eq!(http.ask.take().unwrap().path, "/chat");
                assert_eq!(http, HttpSettings::default());
            }
            _ => {
                let chat = config.sut.chat.as_mut();
                assert_eq!(chat.and_then(|chat| chat.think.take()), Some(false));
                assert_eq!(config.sut.chat, Some(ChatSettings::default()));
            }
        }
        let identity = config.sut.identity.take().unwrap();
        assert_eq!((identity.files.len(), identity.version.as_deref()), (2, Some("1.4.2")));
        config.sut = plain.config.sut.clone();
        assert_eq!(config, plain.config, "{adapter}");
    }
}

#[test]
fn the_template_mentions_every_key() {
    for (name, pointer) in variables::names() {
        let key = pointer.rsplit('/').next().unwrap();
        assert!(TEMPLATE.contains(&format!("{key}:")), "{name}: {pointer} is not in the template");
    }
}
