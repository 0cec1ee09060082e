//! Examples for the generator's prompt. A few are drawn for each attempt, about files that no real
//! project has, so that a copied example is recognised by its path or topic. Pure.

use serde::Serialize;
use serde_json::json;

use super::draw::Draw;
use super::form::Form;
use super::kind::Kind;
use selftest_checks::scenario::TaskStatus;

/// Maximum number of examples in a prompt.
const MAX_SHOWN: usize = 2;

struct Topic {
    path: &'static str,
    name: &'static str,
    /// Prefixes of words that only a copy of this example would contain.
    rare: &'static [&'static str],
    text: &'static str,
    question: &'static str,
    criterion: &'static str,
}

const TOPICS: &[Topic] = &[
    Topic {
        path: "notes/bees.md",
        name: "beehives",
        rare: &["beehive", "bees", "queen"],
        text: "The beehives hold 40000 bees in June. The queen lives for three years.",
        question: "How many bees do the beehives hold in June",
        criterion: "The answer says that they hold 40000 bees in June.",
    },
    Topic {
        path: "kitchen/bread.txt",
        name: "sourdough",
        rare: &["sourdough", "dough"],
        text: "The sourdough rests for 12 hours at 22 degrees. Salt is added last.",
        question: "How long does the sourdough rest",
        criterion: "The answer says that the dough rests for 12 hours.",
    },
    Topic {
        path: "harbour/tides.md",
        name: "spring tide",
        rare: &["tide", "harbour"],
        text: "A spring tide comes every 14 days. Ships above 6 metres wait for it.",
        question: "Which ships wait for a spring tide",
        criterion: "The answer names ships above 6 metres.",
    },
    Topic {
        path: "garden/plan.md",
        name: "tomato beds",
        rare: &["tomato"],
        text: "The tomato beds get 4 litres of water on each dry day. They face south.",
        question: "How much water do the tomato beds get",
        criterion: "The answer says that the beds get 4 litres.",
    },
    Topic {
        path: "museum/visit.txt",
        name: "planetarium",
        rare: &["planetarium", "guided tour"],
        text: "The planetarium opens at 10 and shows three films. Guided tours need a booking.",
        question: "What does one need for a guided tour of the planetarium",
        criterion: "The answer says that a tour needs a booking.",
    },
    Topic {
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
pub struct Example {
    /// Path of the made-up file.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The reply as JSON.
    pub reply: String,
    #[serde(skip)]
    rare: &'static [&'static str],
}

impl Example {
    /// Returns the path and the words that only a copy of the example would contain.
    pub fn marks(&self) -> impl Iterator<Item = &str> {
        [self.path.as_str()].into_iter().chain(self.rare.iter().copied())
    }
}

/// Draws a few examples for this kind and form.
pub fn examples(kind: Kind, form: Option<Form>, draw: &mut Draw) -> Vec<Example> {
    let topics: Vec<usize> = (0..TOPICS.len()).collect();
    let drawn = draw.sample(&topics, MAX_SHOWN).into_iter().filter_map(|at| TOPICS.get(at));
    drawn.map(|topic| example(topic, kind, form)).collect()
}

fn example(topic: &'static Topic, kind: Kind, form: Option<Form>) -> Example {
    let Topic { path, name, rare, text, question, criterion } = topic;
    let instruction = form.map(|form| format!(" {}", form.instruction())).unwrap_or_default();
    let prompt = match kind {
        Kind::Summary => {
            format!("Summarise what `{path}` says about the {name} in exactly three lines.")
        }
        Kind::Evidence => format!("{question}? Use only `{path}`.{instruction}"),
        Kind::Reorganization => {
            format!(
                "How could the part about the {name} in `{path}` be arranged better? A proposal only."
            )
        }
        Kind::Other(TaskStatus::AwaitingResponse) | Kind::Ambiguous => {
            format!("Can you make the part about the {name} better?")
        }
        Kind::Other(TaskStatus::Error) => {
            format!("What will `{path}` say about the {name} next year?")
        }
        Kind::Other(TaskStatus::Complete) | Kind::Contradiction => {
            format!("{question}, according to `{path}`?{instruction}")
        }
    };
    let (fact, second) = text.split_once(". ").map_or((*text, *text), |(fact, rest)| (fact, rest));
    let second = match kind {
        Kind::Reorganization | Kind::Other(TaskStatus::AwaitingResponse) | Kind::Ambiguous => {
            "The answer asks which structure is preferred.".to_owned()
        }
        _ => format!("The answer agrees with this: {second}"),
    };
    let reply = json!({
        "facts": [format!("{fact}.")],
        "hints": format!("A good answer knows this: {fact}."),
        "prompt": prompt,
        "requirements": [criterion, second],
    });
    Example { path: (*path).to_owned(), text: (*text).to_owned(), reply: reply.to_string(), rare }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::generate::read_reply;
    use crate::scenario::ground::find_quote;
    use crate::scenario::{rejection, safety};

    #[test]
    fn each_example_is_as_it_should_be() {
        let statuses = [TaskStatus::Complete, TaskStatus::AwaitingResponse, TaskStatus::Error];
        let others = statuses.map(Kind::Other);
        let kinds = [Kind::Summary, Kind::Evidence, Kind::Reorganization];
        for kind in kinds.into_iter().chain(others) {
            for topic in TOPICS {
                let example = example(topic, kind, Some(Form::Sentence));
                let reply = read_reply(&example.reply).unwrap();
                assert_eq!(safety::violations(&reply.prompt), Vec::<&str>::new());
                let shown = rejection::Shown { instructions: "", examples: &[] };
                assert_eq!(rejection::fault(&reply.prompt, &shown), None, "{}", reply.prompt);
                for fact in &reply.facts {
                    assert!(find_quote(topic.text, fact).is_some(), "{fact}");
                }
                assert_eq!(rejection::criteria(&reply.expectations), reply.expectations);
                let marks: Vec<rejection::Mark> =
                    example.marks().map(rejection::Mark::new).collect();
                let copy = rejection::Shown { instructions: "", examples: &marks };
                assert!(rejection::fault(&reply.prompt, &copy).is_some(), "{}", reply.prompt);
            }
        }
    }

    #[test]
    fn examples_are_drawn() {
        let shown = |seed| examples(Kind::Summary, None, &mut Draw::new(seed));
        assert_eq!(shown(1), shown(1));
        assert_eq!(shown(1).len(), MAX_SHOWN);
        assert!((2..9).any(|seed| shown(seed) != shown(1)));
    }
}
