//! Asking a model for a reply of a given form: one call, and re-asks when the reply is malformed.
//!
//! Knows neither what is asked nor what a reply means; a reply that cannot be read is no reply.

use super::UnscoredReason;
use super::verdict::Unreadable;
use crate::model::{CallRecord, ChatModel, ChatRequest, Finish, Message, call};
use crate::text;

/// Most bytes of a malformed reply that the model sees again.
const SHOWN_AGAIN: usize = 2000;

/// How far asking goes.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// How often a malformed reply is asked for again.
    pub max_reasks: u32,
    /// The setting that bounds a reply, for messages, such as `judge.max_tokens`.
    pub max_tokens_key: &'a str,
}

/// Why there is no reply that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    /// Which kind.
    pub reason: UnscoredReason,
    /// What exactly was wrong, in one line.
    pub detail: String,
}

/// Asks until a reply can be read. `seed` gives the sampling seed of a call, counted from 0;
/// `read` reads a complete reply; every call is added to `calls`. Cut, refused and absent replies
/// are final: asking again would not help, or would cost as much as the retries of the provider.
pub async fn ask<T>(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    what: Limits<'_>,
    seed: impl Fn(u32) -> u64,
    read: impl Fn(&str) -> Result<T, Unreadable>,
    calls: &mut Vec<CallRecord>,
) -> Result<T, Unasked> {
    let conversation = request.messages.clone();
    let mut ask_number = 0;
    loop {
        request.sampling.seed = seed(ask_number);
        let (record, reply) = call(model, &request).await;
        calls.push(record);
        let reply =
            reply.map_err(|error| unasked(UnscoredReason::Unavailable, &error.to_string()))?;
        if reply.prompt_was_cut(&request) {
            let detail = "the server counted fewer tokens than the prompt has: it cut the prompt";
            return Err(unasked(UnscoredReason::Truncated, detail));
        }
        let faults = match reply.finish {
            Finish::Length => {
                let (key, limit) = (what.max_tokens_key, request.sampling.max_tokens);
                let detail = format!("the reply ended at a limit ({key} is {limit})");
                return Err(unasked(UnscoredReason::Truncated, &detail));
            }
            Finish::Refusal(words) => return Err(unasked(UnscoredReason::Refused, &words)),
            Finish::Other(word) => vec![format!("the reply ended with `{word}`")],
            Finish::Stop => match read(&reply.text) {
                Ok(read) => return Ok(read),
                Err(Unreadable::Refused(words)) => {
                    return Err(unasked(UnscoredReason::Refused, &words));
                }
                Err(Unreadable::Malformed(faults)) => faults,
            },
        };
        if ask_number >= what.max_reasks {
            return Err(unasked(UnscoredReason::Malformed, &faults.join("; ")));
        }
        ask_number += 1;
        let name = request.schema.as_ref().map_or("reply", |schema| schema.name);
        request.messages.clone_from(&conversation);
        request.messages.push(Message::assistant(text::clip(&reply.text, SHOWN_AGAIN)));
        request.messages.push(Message::user(reask(name, &faults)));
    }
}

/// What the model is told of a malformed reply.
fn reask(name: &str, faults: &[String]) -> String {
    let faults: Vec<String> = faults.iter().take(10).map(|fault| format!("- {fault}")).collect();
    format!(
        "That reply is not a valid {name}:\n{}\nReply again with one JSON object that satisfies the schema, and nothing else.",
        faults.join("\n")
    )
}

fn unasked(reason: UnscoredReason, detail: &str) -> Unasked {
    Unasked { reason, detail: text::one_line(detail, 600) }
}
