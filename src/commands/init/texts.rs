//! The texts that `selftest init` writes. Pure; what comes from the project is quoted as JSON, which
//! YAML reads.

use selftest_checks::scenario::GeneratedCase;
use selftest_config as config;
use selftest_grading::prompts::BUILT_IN as GRADING_PROMPTS;
use selftest_harness::prompts::BUILT_IN as HARNESS_PROMPTS;
use serde_json::json;

use crate::commands::init::found::Found;
use crate::commands::init::questions::Answers;

const WORKFLOW: &str = include_str!("workflow.yml");
const SKILLS_WORKFLOW: &str = include_str!("skills_workflow.yml");

/// Where the first suite goes.
pub(super) const SUITE: &str = "config/suites/first.yaml";

pub(super) const GITIGNORE: &str = ".gitignore";

/// The JSON reports and journals hold every model call: they are kept by CI, not by the repository. The
/// Markdown reports in `docs/reports/selftest` are for people, and stay where they are read.
pub(super) const IGNORED: &[&str] = &["/reports/selftest/", "/.selftest/"];

/// A file to be written.
pub(super) struct NewFile {
    /// From the project's folder.
    pub(super) path: String,
    pub(super) text: String,
    /// Its subject, for people.
    pub(super) about: Option<String>,
}

/// All files but the list of ignored ones.
pub(super) fn files(found: &Found, answers: &Answers, prompts: bool) -> Vec<NewFile> {
    let file = |path: &str, text: String, about: Option<String>| NewFile {
        path: path.to_owned(),
        text,
        about,
    };
    let tests = format!("tests {}", answers.target.describe());
    let mut files = vec![
        file(config::DEFAULT_PATH, configuration(found, answers), Some(tests)),
        file("config/schema.json", format!("{:#}\n", config::schema()), None),
    ];
    let tests_skills = found.skills.is_repository();
    if tests_skills {
        let about = "a task, prompts and near misses: read them, they were made by rules";
        let first = found.skills.first.iter();
        files.extend(first.map(|(path, text)| file(path, text.clone(), Some(about.to_owned()))));
    } else {
        files.push(file(SUITE, suite(found), Some("three first cases".to_owned())));
    }
    if answers.workflow {
        let (text, about) = if tests_skills {
            (skills_workflow(answers), Some("tests the skills that a pull request changes"))
        } else {
            (WORKFLOW.to_owned(), None)
        };
        files.push(file(".github/workflows/selftest.yml", text, about.map(str::to_owned)));
    }
    if prompts {
        let all = HARNESS_PROMPTS.iter().chain(GRADING_PROMPTS);
        files.extend(
            all.map(|(name, text)| file(&format!("prompts/{name}"), (*text).to_owned(), None)),
        );
    }
    files
}

/// The workflow of a repository of skills, with the keys of its agent.
fn skills_workflow(answers: &Answers) -> String {
    let keys = answers.target.keys().iter();
    let secret = |key: &&str| format!("          {key}: ${{{{ secrets.{key} }}}}\n");
    let secrets: String = keys.map(secret).collect();
    if secrets.is_empty() {
        SKILLS_WORKFLOW.replace("        env:\nSECRETS\n", "")
    } else {
        SKILLS_WORKFLOW.replace("SECRETS\n", &secrets)
    }
}

/// The configuration: what is tested, by whom, how strictly.
pub(super) fn configuration(found: &Found, answers: &Answers) -> String {
    let skills = match found.skills.count {
        0 => String::new(),
        _ => "\n# `selftest skills test` tests the skills that have cases, such as evals/evals.json, without\n\
              # each of them, as on the main branch, and as they are here\n"
            .to_owned(),
    };
    format!(
        "# yaml-language-server: $schema=schema.json\n\
         #\n\
         # How selftest tests {name}. `selftest config show` prints every key with its value and where it\n\
         # comes from; schema.json describes them all. Flags win over the environment, which wins over this.\n\
         version: 1\n\
         \n\
         {section}{skills}\n\
         # How strict (0 to 1): a case needs min_score_to_pass + 0.2 * strictness\n\
         strictness: 0.7\n\
         min_score_to_pass: 0.6\n\
         # Seconds for each case\n\
         timeout_seconds: {timeout}\n\
         \n\
         # auto: the best measured model of a running Ollama server, else the tiny embedded one, whose\n\
         # judgements are those of rules: it is seldom sure. Others: ollama/qwen3:1.7b, openai/gpt-4o-mini, embedded/NAME\n\
         generator: {{ model: {judge} }}\n\
         judge: {{ model: {judge} }}\n\
         \n\
         # `selftest --scenarios=2` invents cases by the built-in scenarios; your own go here:\n\
         #scenarios:\n  \
           #- id: refund_policy\n    \
             #description: Asks about the refund policy; must quote the page that it uses\n    \
             #expected_status: COMPLETE\n",
        name = json!(found.name),
        section = answers.target.section(found.skills.count > 0),
        timeout = answers.target.timeout_seconds(),
        judge = json!(answers.judge),
    )
}

/// Three cases about the project, which checks decide without a model: what it is called, what a text
/// of it says, and a request that has to be asked back about.
fn suite(found: &Found) -> String {
    // An agent may read the title as well as the manifest.
    let names = found.title.iter().chain([&found.name]).map(|name| whole(name));
    let name = json!(format!("(?i){}", names.collect::<Vec<_>>().join("|")));
    let reference = found.title.as_ref().unwrap_or(&found.name);
    let reference = json!(format!("It is called {reference}."));
    let known = found.known.as_ref().map_or_else(String::new, known_case);
    format!(
        "\
         # Cases that are the same in every run: `selftest --suite {SUITE}`. Replace them by what\n\
         # your users ask. `expect` holds checks (contains, regex, lines, words, questions, json …), which\n\
         # need no model, and sentences, which a judge decides:\n\
         #   - The answer names the page that it used.\n\
         # This file is the key to the answers: what is tested cannot read its folder.\n\
         version: 1\n\
         cases:\n  \
           - id: names_the_project\n    \
             prompt: What is the project in this folder called? Answer in one short sentence.\n    \
             expect:\n      \
               - regex: {name}\n      \
               - words: {{ max: 60 }}\n    \
             reference: {reference}\n\n\
         {known}  \
           - id: asks_when_unclear\n    \
             prompt: Please change it to the other one.\n    \
             expect:\n      \
               - questions: {{ min: 1, max: 3 }}   # so that the status AWAITING_RESPONSE is expected\n    \
             reference: Which one do you mean?\n"
    )
}

/// Returns a pattern that finds the text where it is no part of another word: a folder may be
/// called `app`.
fn whole(text: &str) -> String {
    let bound = |c: Option<char>| c.filter(char::is_ascii_alphanumeric).map_or("", |_| r"\b");
    format!("{}{}{}", bound(text.chars().next()), escaped(text), bound(text.chars().next_back()))
}

/// A text as a pattern that matches it.
fn escaped(text: &str) -> String {
    let special = |c: char| !c.is_alphanumeric() && c != '_' && c != ' ' && c.is_ascii();
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// A case about a sentence of the project.
fn known_case(case: &GeneratedCase) -> String {
    let checks = case.grounds.checks.iter().map(|check| format!("      - {}\n", json!(check)));
    let reference = case.grounds.reference.as_ref();
    let reference =
        reference.map(|text| format!("    reference: {}\n", json!(text))).unwrap_or_default();
    format!(
        "  - id: knows_the_project\n    prompt: {}\n    expect:\n{}{reference}\n",
        json!(case.prompt),
        checks.collect::<String>()
    )
}
