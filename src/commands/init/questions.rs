//! At most three questions to somebody at a terminal, each with an answer that Enter gives. Pure:
//! who prints and reads is the command.

use selftest_text::escape::terminal;

use super::target::Target;
use crate::commands::init::found::Found;

/// Most choices that one question offers.
const MAX_CHOICES: usize = 9;

/// Most bytes of a choice.
const MAX_LINE: usize = 120;

/// The choices by which the files are written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) target: Target,
    /// The model that invents and judges.
    pub(super) judge: String,
    pub(super) workflow: bool,
}

impl Answers {
    /// The answers without asking.
    pub(super) fn without_asking(found: &Found) -> Self {
        let target = found.targets().into_iter().next();
        let target = target.unwrap_or(Target::Assistant { model: None });
        Self { target, judge: "auto".to_owned(), workflow: true }
    }
}

/// One question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Targets, the likeliest first.
    Target(Vec<Target>),
    /// Which model judges.
    Judge(Vec<String>),
    /// Whether to write the CI workflow.
    Workflow,
}

/// The questions that are worth asking: none whose answer is known.
pub(super) fn questions(found: &Found) -> Vec<Question> {
    let mut asked = Vec::new();
    let mut targets = found.targets();
    targets.truncate(MAX_CHOICES);
    if targets.len() > 1 {
        asked.push(Question::Target(targets));
    }
    let served = found.ollama.iter().flat_map(|ollama| &ollama.models);
    let mut judges: Vec<String> = vec!["auto".to_owned()];
    judges.extend(served.map(|name| format!("ollama/{name}")));
    if found.has_openai_key {
        judges.push("openai/gpt-4o-mini".to_owned());
    }
    judges.truncate(MAX_CHOICES);
    if judges.len() > 1 {
        asked.push(Question::Judge(judges));
    }
    asked.push(Question::Workflow);
    asked
}

impl Question {
    /// The text of the question.
    pub(super) fn text(&self) -> String {
        let choices = |title: &str, choices: Vec<String>| {
            let mut text = format!("\n{title}\n");
            for (choice, number) in choices.iter().zip(1..) {
                text += &format!("  {number}  {}\n", terminal(choice, MAX_LINE));
            }
            text + "Number [1]: "
        };
        match self {
            Self::Target(targets) => {
                choices("What should be tested?", targets.iter().map(Target::describe).collect())
            }
            Self::Judge(models) => {
                let mut models = models.clone();
                models[0] += ": the best measured local model";
                choices("Which model should judge?", models)
            }
            Self::Workflow => "\nWrite a workflow for GitHub Actions? [Y/n]: ".to_owned(),
        }
    }

    /// Takes an answer; what cannot be understood is the same as Enter.
    pub(super) fn answered(&self, line: &str, answers: &mut Answers) {
        let line = line.trim();
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match self {
            Self::Target(targets) => {
                if let Some(target) = number.and_then(|number| targets.get(number)) {
                    answers.target = target.clone();
                }
            }
            Self::Judge(models) => {
                if let Some(model) = number.and_then(|number| models.get(number)) {
                    answers.judge.clone_from(model);
                }
            }
            Self::Workflow => {
                answers.workflow = !matches!(line.to_ascii_lowercase().as_str(), "n" | "no");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found::Ollama;
    use super::super::target::Agent;
    use super::*;

    fn found() -> Found {
        let models = vec!["big".to_owned(), "small".to_owned()];
        Found {
            agents: vec![Agent::ClaudeCode, Agent::Aider],
            ollama: Some(Ollama { base: "http://127.0.0.1:11434".to_owned(), models }),
            has_openai_key: true,
            ..Found::default()
        }
    }

    #[test]
    fn at_most_three_and_none_whose_answer_is_known() {
        assert_eq!(questions(&found()).len(), 3);
        assert_eq!(questions(&Found::default()), [Question::Workflow]);
    }

    #[test]
    fn enter_and_nonsense_keep_what_is_likeliest() {
        let found = found();
        for lines in [["", "", ""], ["0", "99", "what"], ["-1", "x", "\u{1b}[A"]] {
            let mut answers = Answers::without_asking(&found);
            for (question, line) in questions(&found).iter().zip(lines) {
                question.answered(line, &mut answers);
            }
            assert_eq!(answers, Answers::without_asking(&found), "{lines:?}");
        }
        let mut answers = Answers::without_asking(&found);
        for (question, line) in questions(&found).iter().zip(["2\n", " 3 ", "N"]) {
            question.answered(line, &mut answers);
        }
        let target = Target::Agent(Agent::Aider);
        assert_eq!(answers, Answers { target, judge: "ollama/small".to_owned(), workflow: false });
    }

    #[test]
    fn choices_are_numbered() {
        let text: String = questions(&found()).iter().map(Question::text).collect();
        insta::assert_snapshot!("questions", text);
    }
}
