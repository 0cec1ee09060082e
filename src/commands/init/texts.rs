//! The texts that `selftest init` writes. Pure; what comes from the project is quoted as JSON, which
//! YAML reads.

use selftest_config as config;
use selftest_grading::prompts::BUILT_IN as GRADING_PROMPTS;
use selftest_harness::prompts::BUILT_IN as HARNESS_PROMPTS;
use serde_json::json;

use crate::commands::init::found::Found;
use crate::commands::init::questions::Answers;

const WORKFLOW: &str = include_str!("workflow.yml");

/// Where the first suite goes.
pub(super) const SUITE: &str = "config/suites/first.yaml";

pub(super) const GITIGNORE: &str = ".gitignore";

/// Reports hold every model call: they are kept by CI, not by the repository.
pub(super) const IGNORED: &[&str] =
    &["/reports/selftest/", "/docs/reports/selftest/", "/.selftest/"];

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
        file(SUITE, suite(found), Some("two first cases".to_owned())),
    ];
    if answers.workflow {
        let text = WORKFLOW.replace("@version@", env!("CARGO_PKG_VERSION"));
        files.push(file(".github/workflows/selftest.yml", text, None));
    }
    if prompts {
        let all = HARNESS_PROMPTS.iter().chain(GRADING_PROMPTS);
        files.extend(
            all.map(|(name, text)| file(&format!("prompts/{name}"), (*text).to_owned(), None)),
        );
    }
    files
}

/// The configuration: what is tested, by whom, how strictly.
fn configuration(found: &Found, answers: &Answers) -> String {
    let skills = match found.skills {
        0 => String::new(),
        _ => "\n# The skills in .claude/skills have cases of their own where they have an evals.json:\n\
              #   selftest --suite .claude/skills\n"
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
         # auto: the best measured model of a running Ollama server, else the tiny embedded one, which\n\
         # invents requests but cannot judge. Others: ollama/qwen3:1.7b, openai/gpt-4o-mini, embedded/NAME\n\
         generator: {{ model: {judge} }}\n\
         judge: {{ model: {judge} }}\n\
         \n\
         # `selftest --scenarios=2` invents cases by the built-in scenarios; your own go here:\n\
         #scenarios:\n  \
           #- id: refund_policy\n    \
             #description: Asks about the refund policy; must quote the page that it uses\n    \
             #expected_status: COMPLETE\n",
        name = json!(found.name),
        section = answers.target.section(),
        timeout = answers.target.timeout_seconds(),
        judge = json!(answers.judge),
    )
}

/// Two authored cases: checks that need no model, expectations that a judge decides.
fn suite(found: &Found) -> String {
    let files = found.about.map(|file| format!("    files: [{file}]\n")).unwrap_or_default();
    let name = json!(found.name);
    format!(
        "\
         # Cases that are the same in every run: `selftest --suite {SUITE}`. Replace them by what\n\
         # your users ask. The key to the answers is in here: what is tested cannot read this folder.\n\
         version: 1\n\
         cases:\n  \
           - scenario:\n      \
               id: names_the_project\n      \
               description: Asks what the project is called\n      \
               expected_status: COMPLETE\n    \
             prompt: What is the project in this folder called? Answer in one short sentence.\n\
         {files}    \
             # Decided without a model; one that fails fails the case\n    \
             checks:\n      \
               - contains: {name}\n      \
               - words: {{ max: 60 }}\n    \
             # Yes/no criteria for the judge, each about one thing\n    \
             expectations:\n      \
               - The answer says what the project is called.\n\n  \
           - scenario:\n      \
               id: asks_when_unclear\n      \
               description: A request that nobody can carry out without asking back\n      \
               expected_status: AWAITING_RESPONSE\n    \
             prompt: Please change it to the other one.\n    \
             checks:\n      \
               - questions: {{ min: 1, max: 3 }}\n    \
             expectations:\n      \
               - The answer asks what is meant.\n"
    )
}
