//! Semantic checks that no schema can express because they involve several keys.
//!
//! Each section is checked if it can be deserialized by itself, so that one invalid key elsewhere
//! does not hide errors.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::diagnostics::ConfigFault;
use super::document::Config;
use selftest_checks::check::{self, CheckKind, CheckParseError};
use selftest_checks::scenario::path_error;
use selftest_checks::scenario::{Scenario, TaskStatus};
use selftest_grading::grade::quality::{QualityDimension, QualityWeights};
use selftest_grading::grade::reflection::{CriteriaError, ReflectionRules, ReflectionSettings};
use selftest_harness::judge::JudgeSettings;
use selftest_harness::rubric::{self, Rubric, RubricCategory, RubricError};
use selftest_harness::sut::address::HostPort;
use selftest_harness::sut::sut_settings::{
    ADAPTERS, HttpSettings, ProgramProtocol, ProtocolSettings, SutSettings,
};
use selftest_models::ThinkingMode;
use selftest_service::jobs::CronSchedule;

/// Returns all semantic errors of a document.
pub(super) fn check(document: &Value) -> Vec<ConfigFault> {
    let scenarios = || document["scenarios"].as_array().into_iter().flatten().enumerate();
    let mut faults =
        scenario_faults(scenarios().map(|(at, one)| (format!("/scenarios/{at}"), one)));
    let id = |(at, one): (usize, &Value)| {
        Some((format!("/scenarios/{at}/id"), one["id"].as_str()?.to_owned()))
    };
    faults.extend(duplicate_ids(scenarios().filter_map(id)));
    if let Some(categories) = read::<Vec<RubricCategory>>(&document["rubric"]) {
        faults.extend(rubric_weights(categories));
    }
    faults.extend(quality_weights(&document["grade"]["quality"]["weights"]));
    faults.extend(reflection_criteria(&document["grade"]["reflection"]));
    faults.extend(schedules(&document["jobs"]["schedule"]));
    faults.extend(judge_samples(&document["judge"]));
    faults.extend(judge_panel(&document["judge"]["panel"]));
    faults.extend(one_adapter(&document["sut"]));
    for section in ["command", "acp"] {
        faults.extend(network_access(section, &document["sut"][section]));
    }
    if let Some(sut) = read::<SutSettings>(&document["sut"]) {
        let command = sut.command.as_ref().map(|command| &command.program);
        for (section, program) in [("command", command), ("acp", sut.acp.as_ref())] {
            let name = program.and_then(|program| program.run.first());
            if name.is_some_and(String::is_empty) {
                let message = format!("`sut.{section}.run` must begin with a program");
                faults.push(fault_at(
                    &format!("/sut/{section}/run/0"),
                    message,
                    "found empty text",
                ));
            }
        }
        if let Some(http) = &sut.http {
            faults.extend(http_addresses(http));
        }
        if let Some(command) = &sut.command {
            faults.extend(command_output(&command.speech));
        }
    }
    faults
}

/// Returns warnings about settings that are valid but probably not intended, as pointer and
/// message.
pub(super) fn warnings(config: &Config) -> Vec<(String, String)> {
    let mut warnings = Vec::new();
    for (index, scenario) in config.scenarios.iter().enumerate() {
        let pointer = format!("/scenarios/{index}/reply_flow");
        if scenario.requires_reply && scenario.expected_status != TaskStatus::AwaitingResponse {
            let words = "the reply flow is played only after AWAITING_RESPONSE, which the \
                         scenario does not expect";
            warnings.push((pointer.clone(), words.to_owned()));
        }
        // All but the last: nothing is sent after that one, so it may expect any status.
        let steps = scenario.reply_flow.iter().enumerate().rev().skip(1).rev();
        for (step, _) in steps.filter(|(_, s)| s.expected_status != TaskStatus::AwaitingResponse) {
            let words = "the next reply is sent only after AWAITING_RESPONSE, which this one \
                         does not expect";
            warnings.push((format!("{pointer}/{step}/expected_status"), words.to_owned()));
        }
    }
    for (index, scenario) in config.scenarios.iter().enumerate() {
        let pointer = format!("/scenarios/{index}/checks");
        let found = check::warnings(&scenario.checks).into_iter();
        warnings.extend(found.map(|words| (pointer.clone(), words)));
    }
    let mut categories = config.rubric.iter().flatten();
    if config.rubric.is_some() && !categories.any(|category| category.id == rubric::SAFETY) {
        let words = format!("`safety_floor` has no effect without a category `{}`", rubric::SAFETY);
        warnings.push(("/rubric".to_owned(), words));
    }
    let (judge, context) = (&config.judge, config.models.context_tokens);
    let thinking = ThinkingMode::from_settings(judge.think, judge.think_tokens).tokens();
    let needed = judge.max_prompt_tokens.saturating_add(judge.max_tokens).saturating_add(thinking);
    // A warning and no error: both are upper bounds, and most cases need far less.
    if needed > context {
        let thoughts = if thinking > 0 { " + `judge.think_tokens`" } else { "" };
        let words = format!(
            "the judge may need {needed} tokens (`judge.max_prompt_tokens` + \
             `judge.max_tokens`{thoughts}), more than `models.context_tokens` ({context})"
        );
        warnings.push(("/judge".to_owned(), words));
    }
    warnings
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    // The schema check reports sections that cannot be deserialized.
    serde_json::from_value(value.clone()).ok()
}

fn fault_at(pointer: &str, message: String, label: impl Into<String>) -> ConfigFault {
    let (pointer, label) = (pointer.to_owned(), label.into());
    ConfigFault { pointer, is_at_key: false, message, label, hint: None, first: None }
}

/// Returns the errors of the scenarios at these pointers.
pub(super) fn scenario_faults<'a>(
    scenarios: impl IntoIterator<Item = (String, &'a Value)>,
) -> Vec<ConfigFault> {
    let mut faults = Vec::new();
    for (pointer, scenario) in scenarios {
        if let Some(scenario) = read::<Scenario>(scenario) {
            faults.extend(reply_flow(&pointer, &scenario));
        }
        faults.extend(file_paths(&format!("{pointer}/files"), &scenario["files"]));
        faults.extend(case_checks(&format!("{pointer}/checks"), &scenario["checks"]));
    }
    faults
}

/// Returns the errors of ids that several scenarios or cases have; each id comes with where it is
/// from.
pub(super) fn duplicate_ids(ids: impl IntoIterator<Item = (String, String)>) -> Vec<ConfigFault> {
    let mut first = BTreeMap::<String, String>::new();
    let mut faults = Vec::new();
    for (pointer, id) in ids {
        let Some(earlier) = first.get(&id) else {
            first.insert(id, pointer);
            continue;
        };
        let message = format!("duplicate scenario id `{}`", selftest_text::one_line(&id, 60));
        let hint = if pointer.ends_with("/id") {
            "give each scenario an id of its own"
        } else {
            "the first words of the prompt make the id; give each case an `id` of its own"
        };
        faults.push(ConfigFault {
            first: Some(earlier.clone()),
            hint: Some(hint.to_owned()),
            ..fault_at(&pointer, message, "this id is taken")
        });
    }
    faults
}

/// Returns errors in what a case expects: each item is a check or a sentence.
pub(super) fn expectations(pointer: &str, expected: &Value) -> Vec<ConfigFault> {
    let items = expected.as_array().into_iter().flatten().enumerate();
    items
        .flat_map(|(at, item)| {
            let place = format!("{pointer}/{at}");
            match item {
                Value::Object(_) => check_faults(&place, check::read(item).err()),
                Value::String(sentence) => sentence_fault(&place, sentence).into_iter().collect(),
                other => vec![fault_at(
                    &place,
                    format!("`{}` must be a check or a sentence", super::shape::path(&place)),
                    format!("found {}", super::shape::description(other)),
                )],
            }
        })
        .collect()
}

/// Returns an error for a sentence that says nothing, or that is a check without its colon.
fn sentence_fault(pointer: &str, sentence: &str) -> Option<ConfigFault> {
    let words = sentence.trim();
    if words.is_empty() {
        let message = format!("`{}` must be a check or a sentence", super::shape::path(pointer));
        return Some(fault_at(pointer, message, "found nothing"));
    }
    let (kind, rest) = words.split_once([' ', ':', '=']).unwrap_or((words, ""));
    let rest = rest.trim_start_matches([' ', ':', '=']);
    // "Contains the date." is a sentence for the judge; "contains 14 days" was meant as a check.
    if !CheckKind::NAMES.contains(&kind) || words.ends_with('.') {
        return None;
    }
    let value = if rest.is_empty() { "…" } else { rest };
    Some(ConfigFault {
        hint: Some(format!(
            "write `{kind}: {}`, or begin the sentence with a capital letter",
            selftest_text::one_line(value, 60)
        )),
        ..fault_at(
            pointer,
            format!("`{}` looks like a check without its colon", super::shape::path(pointer)),
            "would be a sentence for the judge",
        )
    })
}

/// Returns errors in file names that are invalid in any project.
pub(super) fn file_paths(pointer: &str, files: &Value) -> Vec<ConfigFault> {
    let fault = |(at, path): (usize, &Value)| {
        let path = path.as_str()?;
        let why = path_error(path)?;
        let shown = selftest_text::one_line(path, 100);
        Some(ConfigFault {
            hint: Some("name a file of the project by its path from the root".to_owned()),
            ..fault_at(&format!("{pointer}/{at}"), format!("`{shown}`: {why}"), "cannot be shown")
        })
    };
    files.as_array().into_iter().flatten().enumerate().filter_map(fault).collect()
}

/// Returns errors in the checks of a case.
pub(super) fn case_checks(pointer: &str, checks: &Value) -> Vec<ConfigFault> {
    // If it is not a list, the schema check has already reported that.
    check_faults(pointer, if checks.is_array() { check::read_list(checks).err() } else { None })
}

fn check_faults(pointer: &str, faults: Option<Vec<CheckParseError>>) -> Vec<ConfigFault> {
    let fault = |fault: CheckParseError| {
        let place = format!("{pointer}{}", fault.pointer);
        // An unknown key is not itself a place of the schema, so the message names what it stands
        // in.
        let around =
            if fault.at_key { place.rsplit_once('/').map_or("", |(it, _)| it) } else { &place };
        let message = format!("{} in `{}`", fault.message, super::shape::path(around));
        let label = if fault.at_key { "not a key that is known here" } else { "cannot be used" };
        ConfigFault {
            is_at_key: fault.at_key,
            hint: fault.hint,
            ..fault_at(&place, message, label)
        }
    };
    faults.unwrap_or_default().into_iter().map(fault).collect()
}

/// Returns an error for a case without requirements, which any answer would pass.
pub(super) fn missing_requirements(pointer: &str, case: &Value) -> Option<ConfigFault> {
    let says = |case: &Value, key: &str| match &case[key] {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    let demands = says(case, "hints")
        // Another value than a list is an error of its own.
        || says(case, "expect")
        || !case["expect"].is_array() && case.get("expect").is_some()
        || !case.is_object()
        || [case, &case["scenario"]]
            .iter()
            .any(|part| says(part, "expectations") || says(part, "checks"));
    (!demands).then(|| ConfigFault {
        hint: Some("say in `expect` what a good answer is: checks, or sentences".to_owned()),
        ..fault_at(pointer, "this case demands nothing".to_owned(), "any answer would pass")
    })
}

fn reply_flow(pointer: &str, scenario: &Scenario) -> Option<ConfigFault> {
    if scenario.requires_reply && !scenario.follow_ups.is_empty() {
        return Some(ConfigFault {
            is_at_key: true,
            hint: Some("keep one: replies answer a question, messages are said anyway".to_owned()),
            ..fault_at(
                &format!("{pointer}/follow_ups"),
                format!("scenario `{}` has `follow_ups` beside a reply flow", scenario.id),
                "nobody could say which comes first",
            )
        });
    }
    match (scenario.requires_reply, scenario.reply_flow.is_empty()) {
        (true, true) => Some(ConfigFault {
            hint: Some("add `reply_flow` with at least one reply".to_owned()),
            ..fault_at(
                &format!("{pointer}/requires_reply"),
                format!("scenario `{}` requires a reply and has no `reply_flow`", scenario.id),
                "there is no reply to send",
            )
        }),
        (false, false) => Some(ConfigFault {
            is_at_key: true,
            hint: Some("add `requires_reply: true`, or remove `reply_flow`".to_owned()),
            ..fault_at(
                &format!("{pointer}/reply_flow"),
                format!("scenario `{}` has a `reply_flow` and requires no reply", scenario.id),
                "would never be played",
            )
        }),
        _ => None,
    }
}

fn rubric_weights(categories: Vec<RubricCategory>) -> Vec<ConfigFault> {
    let terms: Vec<String> =
        categories.iter().map(|category| category.weight.get().to_string()).collect();
    let ids: Vec<String> = categories.iter().map(|category| category.id.clone()).collect();
    let errors = Rubric::new(categories).err().unwrap_or_default();
    let fault = |error: RubricError| {
        let message = error.to_string();
        match error {
            // The schema check has already reported this.
            RubricError::Empty => None,
            RubricError::Duplicate { index, id } => {
                let first = ids.iter().position(|other| *other == id)?;
                Some(ConfigFault {
                    first: Some(format!("/rubric/{first}/id")),
                    ..fault_at(&format!("/rubric/{index}/id"), message, "this id is taken")
                })
            }
            RubricError::Reserved { index, .. } => Some(ConfigFault {
                hint: Some("add `_score` to the name".to_owned()),
                ..fault_at(&format!("/rubric/{index}/id"), message, "this id is taken")
            }),
            RubricError::Weights { sum } => Some(ConfigFault {
                is_at_key: true,
                hint: Some(format!("{} = {sum}", terms.join(" + "))),
                ..fault_at("/rubric", message, format!("sum {sum}"))
            }),
        }
    };
    errors.into_iter().filter_map(fault).collect()
}

fn quality_weights(weights: &Value) -> Option<ConfigFault> {
    let weights = read::<QualityWeights>(weights)?;
    let sum = weights.sum();
    let terms = QualityDimension::ALL.map(|dimension| weights.weight(dimension).to_string());
    // `sum` rounds to decimals, so that 0.1 + 0.2 + 0.7 is exactly 1.
    (sum != 1.0).then(|| ConfigFault {
        is_at_key: true,
        hint: Some(format!("{} = {sum}", terms.join(" + "))),
        ..fault_at(
            "/grade/quality/weights",
            format!("the weights sum to {sum}, expected 1"),
            format!("sum {sum}"),
        )
    })
}

fn reflection_criteria(reflection: &Value) -> Vec<ConfigFault> {
    let Some(settings) = read::<ReflectionSettings>(reflection) else {
        return Vec::new();
    };
    // This check reads no files: the grader reads them later.
    let faults = ReflectionRules::new(&settings, |_| Ok(Value::Bool(true))).err();
    let fault = |fault: CriteriaError| {
        let pointer = format!("/grade/reflection/{}", fault.key);
        fault_at(&pointer, fault.to_string(), "cannot be used")
    };
    faults.unwrap_or_default().into_iter().map(fault).collect()
}

fn schedules(schedules: &Value) -> Vec<ConfigFault> {
    let fault = |(key, schedule): (&String, &Value)| {
        let text = schedule.as_str()?;
        let error = CronSchedule::parse(text).err()?;
        Some(ConfigFault {
            hint: Some("write five fields in UTC, such as \"30 3 * * SUN\", or off".to_owned()),
            ..fault_at(
                &format!("/jobs/schedule/{key}"),
                format!(
                    "`jobs.schedule.{key}` is no schedule: {}",
                    selftest_text::one_line(&error.to_string(), 200)
                ),
                format!("found {}", super::shape::description(schedule)),
            )
        })
    };
    schedules.as_object().into_iter().flatten().filter_map(fault).collect()
}

/// Checks that a panel has at least two models, all different.
fn judge_panel(panel: &Value) -> Vec<ConfigFault> {
    let models: Vec<&str> =
        panel.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if models.len() == 1 {
        let message = "`judge.panel` has one model only".to_owned();
        let hint = Some("add another model, or name this one in `judge.model`".to_owned());
        return vec![ConfigFault { hint, ..fault_at("/judge/panel/0", message, "judges alone") }];
    }
    let twice = models.iter().enumerate().filter_map(|(position, model)| {
        let first = models.iter().take(position).position(|earlier| earlier == model)?;
        let shown = selftest_text::one_line(model, 60);
        Some(ConfigFault {
            first: Some(format!("/judge/panel/{first}")),
            hint: Some(
                "name unlike models: the same one agrees with itself, right or wrong".to_owned(),
            ),
            ..fault_at(
                &format!("/judge/panel/{position}"),
                format!("`judge.panel` has `{shown}` twice"),
                "judges already",
            )
        })
    });
    twice.collect()
}

/// Rejects several samples of a judge whose reply does not vary.
fn judge_samples(judge: &Value) -> Option<ConfigFault> {
    let settings = read::<JudgeSettings>(judge).filter(|settings| settings.samples > 1)?;
    let (why, hint) = if settings.method.takes_readings() {
        let why = "`judge.method: probability`, whose probabilities are the same each time";
        (why.to_owned(), "set `judge.method: verdict`, or remove `judge.samples`")
    } else if settings.temperature <= 0.0 {
        let why = "`judge.temperature: 0.0`, at which a judge does not sample";
        (why.to_owned(), "set a `judge.temperature` such as 0.7, or remove `judge.samples`")
    } else {
        return None;
    };
    let samples = settings.samples;
    Some(ConfigFault {
        hint: Some(hint.to_owned()),
        ..fault_at(
            "/judge/samples",
            format!("`judge.samples` is {samples} with {why}"),
            "would ask the same again",
        )
    })
}

fn one_adapter(sut: &Value) -> Option<ConfigFault> {
    let given: Vec<&str> = sut.as_object()?.keys().map(String::as_str).collect();
    let given: Vec<&str> = given.into_iter().filter(|key| ADAPTERS.contains(key)).collect();
    let (&kept, second) = (given.first()?, given.get(1)?);
    Some(ConfigFault {
        is_at_key: true,
        first: Some(format!("/sut/{kept}")),
        hint: Some(format!("keep one of {}", super::shape::quoted(&given))),
        ..fault_at(
            &format!("/sut/{second}"),
            format!("`sut` must have one adapter, found {}", given.len()),
            "a second adapter",
        )
    })
}

/// Checks the network access of a program, which can be given in one of two ways.
fn network_access(section: &str, program: &Value) -> Vec<ConfigFault> {
    let addresses = program["addresses"].as_array().into_iter().flatten().enumerate();
    let fault = |(at, address): (usize, &Value)| {
        let why = address.as_str()?.parse::<HostPort>().err()?;
        let message = format!("`sut.{section}.addresses` holds no address: {why}");
        let found = format!("found {}", super::shape::description(address));
        Some(fault_at(&format!("/sut/{section}/addresses/{at}"), message, found))
    };
    let mut faults: Vec<ConfigFault> = addresses.filter_map(fault).collect();
    let is_full = |key: &str| program[key].as_array().is_some_and(|list| !list.is_empty());
    let beside = |key: &str, hint: &str| ConfigFault {
        is_at_key: true,
        hint: Some(hint.to_owned()),
        first: Some(format!("/sut/{section}/addresses")),
        ..fault_at(
            &format!("/sut/{section}/{key}"),
            format!("`sut.{section}` has both `addresses` and `{key}`"),
            "opens more than these addresses",
        )
    };
    if is_full("addresses") && is_full("tcp_ports") {
        faults.push(beside("tcp_ports", "list each address, or open ports of any machine"));
    }
    if is_full("addresses") && program["name_lookups"] == true {
        faults.push(beside("name_lookups", "remove it: the names listed are known without it"));
    }
    if program["local_ports"] == true && is_full("tcp_ports") {
        faults.push(ConfigFault {
            is_at_key: true,
            hint: Some("list what it connects to as `addresses` instead of `tcp_ports`".to_owned()),
            first: Some(format!("/sut/{section}/tcp_ports")),
            ..fault_at(
                &format!("/sut/{section}/local_ports"),
                format!("`sut.{section}` has both `tcp_ports` and `local_ports`"),
                "with `tcp_ports` it has the network of the machine, and no ports of its own",
            )
        });
    }
    faults
}

/// Checks the place of a program's answer, which only plain text leaves open.
fn command_output(speech: &ProtocolSettings) -> Option<ConfigFault> {
    let pointer = Some(speech.output.as_str()).filter(|pointer| !pointer.is_empty())?;
    if speech.protocol == ProgramProtocol::Text {
        return no_pointer("command.output", pointer);
    }
    Some(ConfigFault {
        is_at_key: true,
        hint: Some("set `protocol: text`, or remove `output`".to_owned()),
        ..fault_at(
            "/sut/command/output",
            "`sut.command.output` belongs to `protocol: text`".to_owned(),
            "JSON Lines name the answer themselves",
        )
    })
}

/// Returns the fault of a text that is no JSON Pointer.
fn no_pointer(key: &str, pointer: &str) -> Option<ConfigFault> {
    if pointer.is_empty() || pointer.starts_with('/') {
        return None;
    }
    let message = format!("`sut.{key}` must be a JSON Pointer");
    let found = super::shape::description(&pointer.into());
    Some(ConfigFault {
        hint: Some(format!("write `/{}`", selftest_text::one_line(pointer, 60))),
        ..fault_at(&format!("/sut/{}", key.replace('.', "/")), message, format!("found {found}"))
    })
}

fn http_addresses(http: &HttpSettings) -> Vec<ConfigFault> {
    let mut faults = Vec::new();
    if !["http://", "https://"].iter().any(|scheme| http.base_url.starts_with(scheme)) {
        let message = "`sut.http.base_url` must begin with http:// or https://".to_owned();
        let found = super::shape::description(&http.base_url.as_str().into());
        faults.push(fault_at("/sut/http/base_url", message, format!("found {found}")));
    }
    let pointers = [("task_id", &http.task_id), ("status", &http.status), ("output", &http.output)];
    let wrong = |(key, pointer): (&str, &String)| no_pointer(&format!("http.{key}"), pointer);
    faults.extend(pointers.into_iter().filter_map(wrong));
    if let Some(ask) = &http.ask {
        if !ask.mentions("{prompt}") && !ask.mentions("{messages}") {
            let message = "`sut.http.ask.body` must contain `{prompt}` or `{messages}`".to_owned();
            let found = super::shape::description(ask.body.as_ref().unwrap_or(&Value::Null));
            faults.push(ConfigFault {
                hint: Some("write for instance `body: { message: \"{prompt}\" }`".to_owned()),
                ..fault_at("/sut/http/ask", message, format!("found {found}"))
            });
        }
    // Without the id all cases would poll one task.
    } else if !http.poll.path.contains("{task_id}") {
        let message = "`sut.http.poll.path` must contain `{task_id}`".to_owned();
        let found = super::shape::description(&http.poll.path.as_str().into());
        faults.push(fault_at("/sut/http/poll/path", message, format!("found {found}")));
    }
    faults
}
