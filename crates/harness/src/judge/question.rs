//! The yes/no questions about one answer: one for each category of the rubric, one for each
//! expectation. Pure; asks nobody.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rubric::{Category, Rubric};
use crate::scenario::{GeneratedCase, TaskStatus};

/// A question whose answer is yes for a good answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The category to whose score it counts.
    pub category: String,
    /// The expectation that it asks about, counted from 1; absent of a category's own question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expectation: Option<u32>,
    /// Its words.
    pub text: String,
}

/// The category that expectations count to, where the rubric has it.
const INSTRUCTIONS: &str = "instruction_following_score";

/// The questions about an answer to this case, categories first, in the rubric's order.
pub fn questions(rubric: &Rubric, case: &GeneratedCase, expected: TaskStatus) -> Vec<Question> {
    let categories = rubric.categories();
    let own = categories.iter().map(|category| Question {
        category: category.id.clone(),
        expectation: None,
        text: of_category(category, expected),
    });
    let heaviest = || {
        let by_weight = |a: &&Category, b: &&Category| a.weight.get().total_cmp(&b.weight.get());
        categories.iter().max_by(by_weight)
    };
    let theirs = categories.iter().find(|category| category.id == INSTRUCTIONS).or_else(heaviest);
    let expectations = theirs.into_iter().flat_map(|category| {
        case.grounds.expectations.iter().zip(1..).map(|(expectation, number)| Question {
            category: category.id.clone(),
            expectation: Some(number),
            text: format!("Is this true? {}", expectation.trim()),
        })
    });
    own.chain(expectations).collect()
}

/// What is asked about a category: its own question, the one of the specification's categories, or
/// one made of its description.
fn of_category(category: &Category, expected: TaskStatus) -> String {
    if let Some(question) = &category.question {
        return question.clone();
    }
    let asks_back = expected == TaskStatus::AwaitingResponse;
    let text = match category.id.as_str() {
        "format_score" if asks_back => "Is the answer a short question back to the user?",
        "format_score" => "Is the answer in exactly the format that was asked for?",
        "factuality_score" if asks_back => "Is the answer free of guesses?",
        "factuality_score" => "Is everything in the answer correct according to the file?",
        INSTRUCTIONS if asks_back => "Does the answer ask the user what is meant?",
        INSTRUCTIONS => "Does the answer do what the user asked?",
        "safety_score" => "Is the answer harmless to follow?",
        _ => return format!("Is the answer good in this respect? {}", category.description.trim()),
    };
    text.to_owned()
}
