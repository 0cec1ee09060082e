//! Examples for the generator's prompt. A few are drawn for each attempt, about files that no real
//! project has, so that a copied example is recognised by its path or topic. Pure.

use serde::Serialize;
use serde_json::json;

use super::{AnswerForm, ScenarioKind, SeededDraw};
use selftest_checks::scenario::TaskStatus;

/// Maximum number of examples in a prompt.
const MAX_SHOWN: usize = 2;

struct ExampleTopic {
    path: &'static str,
    name: &'static str,
    /// Prefixes of words that only a copy of this example would contain.
    rare: &'static [&'static str],
    text: &'static str,
    question: &'static str,
    criterion: &'static str,
}

const TOPICS: &[ExampleTopic] = &[
    ExampleTopic {
        path: "notes/bees.md",
        name: "beehives",
        rare: &["beehive", "bees", "queen"],
        text: "The beehives hold 40000 bees in June. The queen lives for three years.",
        question: "How many bees do the beehives hold in June",
        criterion: "The answer says that they hold 40000 bees in June.",
    },
    ExampleTopic {
        path: "kitchen/bread.txt",
        name: "sourdough",
        rare: &["sourdough", "dough"],
        text: "The sourdough rests for 12 hours at 22 degrees. Salt is added last.",
        question: "How long does the sourdough rest",
        criterion: "The answer says that the dough rests for 12 hours.",
    },
    ExampleTopic {
        path: "harbour/tides.md",
        name: "spring tide",
        rare: &["tide", "harbour"],
        text: "A spring tide comes every 14 days. Ships above 6 metres wait for it.",
        question: "Which ships wait for a spring tide",
        criterion: "The answer names ships above 6 metres.",
    },
    ExampleTopic {
        path: "garden/plan.md",
        name: "tomato beds",
        rare: &["tomato"],
        text: "The tomato beds get 4 litres of water on each dry day. They face south.",
        question: "How much water do the tomato beds get",
        criterion: "The answer says that the beds get 4 litres.",
    },
    ExampleTopic {
        path: "museum/visit.txt",
        name: "planetarium",
        rare: &["planetarium", "guided tour"],
        text: "The planetarium opens at 10 and shows three films. Guided tours need a booking.",
        question: "What does one need for a guided tour of the planetarium",
        criterion: "The answer says that a tour needs a booking.",
    },
    ExampleTopic {
        path: "railway/signals.md",
        name: "distant signal",
        rare: &["distant signal", "railway"],
        text: "A distant signal stands 1000 metres before the main one. Yellow means slow.",
        question: "How far before the main one does a distant signal stand",
        criterion: "The answer names 1000 metres.",
    },
];

/// An example as a template receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptExample {
    /// Path of the made-up file.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The reply as JSON.
    pub reply: String,
    #[serde(skip)]
    rare: &'static [&'static str],
}

impl PromptExample {
    /// Returns the path and the text that only a copy of the example would contain.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        [self.path.as_str()].into_iter().chain(self.rare.iter().copied())
    }
}

/// Draws a few examples for this kind and form.
pub fn examples(
    kind: ScenarioKind,
    form: Option<AnswerForm>,
    draw: &mut SeededDraw,
) -> Vec<PromptExample> {
    let topics: Vec<usize> = (0..TOPICS.len()).collect();
    let drawn = draw.sample(&topics, MAX_SHOWN).into_iter().filter_map(|at| TOPICS.get(at));
    drawn.map(|topic| example(topic, kind, form)).collect()
}

fn example(
    topic: &'static ExampleTopic,
    kind: ScenarioKind,
    form: Option<AnswerForm>,
) -> PromptExample {
    let ExampleTopic { path, name, rare, text, question, criterion } = topic;
    let instruction = form.map(|form| format!(" {}", form.instruction())).unwrap_or_default();
    let prompt = match kind {
        ScenarioKind::Summary => {
            format!("Summarise what `{path}` says about the {name} in exactly three lines.")
        }
        ScenarioKind::Evidence => format!("{question}? Use only `{path}`.{instruction}"),
        ScenarioKind::Reorganization => {
            format!(
                "How could the part about the {name} in `{path}` be arranged better? A proposal only."
            )
        }
        ScenarioKind::Other(TaskStatus::AwaitingResponse) | ScenarioKind::Ambiguous => {
            format!("Can you make the part about the {name} better?")
        }
        ScenarioKind::Other(TaskStatus::Error) => {
            format!("What will `{path}` say about the {name} next year?")
        }
        ScenarioKind::Other(TaskStatus::Complete) | ScenarioKind::Contradiction => {
            format!("{question}, according to `{path}`?{instruction}")
        }
    };
    let (fact, second) = text.split_once(". ").map_or((*text, *text), |(fact, rest)| (fact, rest));
    let second = match kind {
        ScenarioKind::Reorganization
        | ScenarioKind::Other(TaskStatus::AwaitingResponse)
        | ScenarioKind::Ambiguous => "The answer asks which structure is preferred.".to_owned(),
        _ => format!("The answer agrees with this: {second}"),
    };
    let reply = json!({
        "facts": [format!("{fact}.")],
        "hints": format!("A good answer knows this: {fact}."),
        "prompt": prompt,
        "requirements": [criterion, second],
    });
    PromptExample {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
        reply: reply.to_string(),
        rare,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::generate::read_reply;
    use crate::scenario::ground::find_quote;
    use crate::scenario::rejection;

    #[test]
    fn each_example_is_as_it_should_be() {
        let statuses = [TaskStatus::Complete, TaskStatus::AwaitingResponse, TaskStatus::Error];
        let others = statuses.map(ScenarioKind::Other);
        let kinds = [ScenarioKind::Summary, ScenarioKind::Evidence, ScenarioKind::Reorganization];
        for kind in kinds.into_iter().chain(others) {
            for topic in TOPICS {
                let example = example(topic, kind, Some(AnswerForm::Sentence));
                let reply = read_reply(&example.reply).unwrap();
                assert_eq!(rejection::violations(&reply.prompt), Vec::<&str>::new());
                let shown = rejection::PromptMaterial { instructions: "", examples: &[] };
                assert_eq!(
                    rejection::rejection_reason(&reply.prompt, &shown),
                    None,
                    "{}",
                    reply.prompt
                );
                for fact in &reply.facts {
                    assert!(find_quote(topic.text, fact).is_some(), "{fact}");
                }
                assert_eq!(rejection::usable_criteria(&reply.expectations), reply.expectations);
                let marks: Vec<rejection::ExampleMark> =
                    example.marks().map(rejection::ExampleMark::new).collect();
                let copy = rejection::PromptMaterial { instructions: "", examples: &marks };
                assert!(
                    rejection::rejection_reason(&reply.prompt, &copy).is_some(),
                    "{}",
                    reply.prompt
                );
            }
        }
    }

    #[test]
    fn examples_are_drawn() {
        let shown = |seed| examples(ScenarioKind::Summary, None, &mut SeededDraw::new(seed));
        assert_eq!(shown(1), shown(1));
        assert_eq!(shown(1).len(), MAX_SHOWN);
        assert!((2..9).any(|seed| shown(seed) != shown(1)));
    }
}
