//! Persistence of finished calls, by their identity. Each call is stored before its reply is used, and
//! a resumed run takes the replies from the store. Cassettes look up recordings by the same identity.
//!
//! Independent of where calls are stored and of the run they belong to.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ChatModel, ChatReply, ChatRequest, ChatRole, ModelError, PromptMessage};
use selftest_text::digest;

impl ChatRequest {
    /// Returns the identity of the call for a cassette: messages without the nonce, schema,
    /// temperature and token limit. The sampling seed is excluded, so that a recording works for
    /// any run.
    pub fn identity(&self) -> Value {
        let messages: Vec<Value> = self
            .messages
            .iter()
            // The nonce is random per call. With it, no recording would ever be found again.
            .map(|message| json!({ "role": message.role, "text": self.without_nonce(message) }))
            .collect();
        let mut identity = json!({
            "messages": messages,
            "schema": self.schema.as_ref().map(|schema| &*schema.schema),
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
        });
        if let Some(probe) = &self.first_token {
            identity["first_token"] = json!(true);
            if let Some(reply) = &probe.reply {
                identity["likelihood_of"] = json!(reply);
            }
            if !probe.questions.is_empty() {
                identity["questions"] = json!(probe.questions);
            }
        }
        identity
    }

    /// Returns the SHA-256 of [`ChatRequest::identity`] in canonical form. Serialises directly
    /// without building a JSON value, because every call needs it twice and its texts are long.
    pub fn digest(&self) -> String {
        // Fields in alphabetical order: recordings are found by this digest, so that reordering
        // them makes all cassettes and journals unusable.
        let identity = CanonicalRequest {
            first_token: self.first_token.as_ref().map(|_| true),
            likelihood_of: self.first_token.as_ref().and_then(|probe| probe.reply.as_deref()),
            max_tokens: self.sampling.max_tokens,
            messages: self
                .messages
                .iter()
                .map(|message| CanonicalMessage {
                    role: message.role,
                    text: self.without_nonce(message),
                })
                .collect(),
            questions: self.questions(),
            schema: self.schema.as_ref().map(|schema| SortedJson(&schema.schema)),
            temperature: self.sampling.temperature,
        };
        let mut text = Vec::with_capacity(self.estimated_json_bytes());
        // Serialising strings, numbers and JSON values cannot fail.
        let _ = serde_json::to_writer(&mut text, &identity);
        digest::sha256_hex(&text)
    }

    fn without_nonce<'a>(&self, message: &'a PromptMessage) -> Cow<'a, str> {
        match &self.nonce {
            Some(nonce) if message.text.contains(nonce.as_str()) => {
                message.text.replace(nonce.as_str(), "<nonce>").into()
            }
            _ => Cow::Borrowed(&message.text),
        }
    }
}

/// Members of an identity in canonical (alphabetical) order.
#[derive(serde::Serialize)]
struct CanonicalRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    first_token: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    likelihood_of: Option<&'a str>,
    max_tokens: u32,
    messages: Vec<CanonicalMessage<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    questions: &'a [String],
    schema: Option<SortedJson<'a>>,
    temperature: f64,
}

#[derive(serde::Serialize)]
struct CanonicalMessage<'a> {
    role: ChatRole,
    text: Cow<'a, str>,
}

/// A JSON value serialised with sorted object keys.
struct SortedJson<'a>(&'a Value);

impl Serialize for SortedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let mut members: Vec<(&String, &Value)> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &SortedJson(value))?;
                }
                map.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(SortedJson)),
            other => other.serialize(serializer),
        }
    }
}

/// Identity of a call. The seed is derived from run, case and purpose, so identical requests of two
/// cases have different keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallKey {
    /// Full name of the model.
    pub model: String,
    /// SHA-256 of the request without its nonce.
    pub digest: String,
    /// Seed of the sampler.
    pub seed: u64,
}

impl CallKey {
    fn new(model: &dyn ChatModel, request: &ChatRequest) -> Self {
        let seed = request.sampling.seed;
        Self { model: model.id().to_owned(), digest: request.digest(), seed }
    }
}

/// A call that returned a reply.
#[derive(Debug, Serialize)]
pub struct FinishedCall<'a> {
    /// Identity of the call.
    pub key: &'a CallKey,
    /// Reply of the model.
    pub reply: &'a ChatReply,
}

/// A finished call read back from a journal. Its reply is parsed only on demand: most are never
/// needed, because their cases are finished.
#[derive(Debug, Deserialize)]
pub struct StoredCall {
    /// Identity of the call.
    pub key: CallKey,
    /// Reply in JSON.
    pub reply: Box<RawValue>,
}

/// Stores finished calls.
pub trait CallSink: Send + Sync {
    /// Stores a call durably before returning. On failure, the implementation reports the problem
    /// elsewhere, because the reply itself is still usable.
    fn record(&self, call: &FinishedCall<'_>);
}

tokio::task_local! {
    /// Number of the run that the current task works for.
    static RUN: usize;
}

/// Assigns the calls made by `work` to one of several runs that share their models, numbered from
/// 0. Calls outside of such a scope belong to the first run, as do those of tasks that `work`
/// spawns.
pub fn for_run<F: Future>(run: usize, work: F) -> impl Future<Output = F::Output> {
    RUN.scope(run, work)
}

/// Calls of one or several runs that share their models, such as the arms of an experiment.
/// Contains the finished calls of an interrupted run, and a keeper for new ones.
///
/// Two runs may make the same call, and each gets its own reply.
#[derive(Default)]
pub struct CallLog {
    first: RunLog,
    others: Vec<RunLog>,
}

/// Calls of one run.
#[derive(Default)]
struct RunLog {
    /// Set late: the journal's header names the models' weights, so that the models are asked
    /// before it can be created.
    sink: OnceLock<Arc<dyn CallSink>>,
    /// Calls made before a keeper was set.
    pending: Mutex<Vec<(CallKey, ChatReply)>>,
    finished: Mutex<HashMap<CallKey, VecDeque<Box<RawValue>>>>,
}

impl CallLog {
    /// Creates a log with these finished calls; each answers one request.
    pub fn with_calls(calls: Vec<StoredCall>) -> Self {
        Self { first: RunLog::with_calls(calls), others: Vec::new() }
    }

    /// Adds another run with its own calls.
    #[must_use]
    pub fn with_run(mut self, calls: Vec<StoredCall>) -> Self {
        self.others.push(RunLog::with_calls(calls));
        self
    }

    /// Sets the keeper of a run, and passes it the calls that were already made. Later keepers are
    /// ignored.
    pub fn set_sink(&self, run: usize, keeper: Arc<dyn CallSink>) {
        self.run_log(run).set_sink(keeper);
    }

    fn run_log(&self, run: usize) -> &RunLog {
        run.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }

    /// Returns the log of the current run.
    fn current_run(&self) -> &RunLog {
        self.run_log(RUN.try_with(|run| *run).unwrap_or(0))
    }

    /// Returns how often each request was answered, by digest, for all models or only this one.
    /// Recordings are numbered by it.
    pub(crate) fn answer_counts(&self, model: Option<&str>) -> HashMap<String, usize> {
        let mut answered = HashMap::new();
        for log in std::iter::once(&self.first).chain(&self.others) {
            let finished = log.finished.lock().unwrap_or_else(PoisonError::into_inner);
            let own =
                finished.iter().filter(|(key, _)| model.is_none_or(|model| model == key.model));
            for (key, replies) in own {
                *answered.entry(key.digest.clone()).or_default() += replies.len();
            }
        }
        answered
    }
}

impl RunLog {
    fn with_calls(calls: Vec<StoredCall>) -> Self {
        let mut finished = HashMap::<CallKey, VecDeque<_>>::new();
        for call in calls {
            finished.entry(call.key).or_default().push_back(call.reply);
        }
        Self { finished: Mutex::new(finished), ..Self::default() }
    }

    fn set_sink(&self, keeper: Arc<dyn CallSink>) {
        // Locked while the early calls are stored, so that later ones follow them.
        let mut early = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let keeper = self.sink.get_or_init(|| keeper);
        for (key, reply) in early.drain(..) {
            keeper.record(&FinishedCall { key: &key, reply: &reply });
        }
    }

    fn record(&self, key: CallKey, reply: &ChatReply) {
        if self.sink.get().is_none() {
            let mut early = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            // Checked again under the lock: a keeper may have been set in the meantime.
            if self.sink.get().is_none() {
                return early.push((key, reply.clone()));
            }
        }
        // Outside of the lock: writing to disk must not hold up other calls.
        if let Some(keeper) = self.sink.get() {
            keeper.record(&FinishedCall { key: &key, reply });
        }
    }

    /// Returns the reply of a finished call. An unreadable reply is requested again.
    fn take_reply(&self, key: &CallKey) -> Option<ChatReply> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        // In the order in which the calls were made.
        let reply = finished.get_mut(key)?.pop_front()?;
        serde_json::from_str(reply.get()).ok()
    }
}

/// A model wrapper that records its finished calls.
pub struct JournaledModel {
    inner: Arc<dyn ChatModel>,
    log: Arc<CallLog>,
}

impl JournaledModel {
    /// Wraps a model with a log.
    pub fn new(inner: Arc<dyn ChatModel>, log: Arc<CallLog>) -> Self {
        Self { inner, log }
    }
}

impl ChatModel for JournaledModel {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let key = CallKey::new(&*self.inner, request);
            let (log, request_digest) = (self.log.current_run(), Some(key.digest.clone()));
            if let Some(reply) = log.take_reply(&key) {
                return Ok(ChatReply { request_digest, ..reply });
            }
            let reply = self.inner.chat(request).await?;
            // Stored before the reply is used, so that a resumed run does not repeat the call.
            log.record(key, &reply);
            Ok(ChatReply { request_digest, ..reply })
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        self.inner.check()
    }

    fn supports_lazy_check(&self) -> bool {
        self.inner.supports_lazy_check()
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        self.inner.context_limit()
    }

    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        self.inner.fingerprint()
    }

    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        self.inner.supports_logprobs()
    }

    fn supports_decisions(&self) -> BoxFuture<'_, bool> {
        self.inner.supports_decisions()
    }

    fn supports_scoring(&self) -> bool {
        self.inner.supports_scoring()
    }

    fn redact(&self, text: &Arc<str>) -> Arc<str> {
        self.inner.redact(text)
    }

    fn unrecorded(&self) -> Option<Arc<dyn ChatModel>> {
        self.inner.unrecorded()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        FinishReason, FirstTokenProbe, PromptMessage, ReplySchema, SamplingParameters, ThinkingMode,
    };

    /// Counts the requests.
    #[derive(Default)]
    struct Counting(Mutex<u32>);

    impl ChatModel for Counting {
        fn id(&self) -> &'static str {
            "counting"
        }
        fn chat<'a>(
            &'a self,
            request: &'a ChatRequest,
        ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
            let mut asked = self.0.lock().unwrap();
            *asked += 1;
            let text = format!("{} {asked}", request.messages[0].text);
            let reply = ChatReply::plain(text, FinishReason::Stop);
            Box::pin(async move { Ok(reply) })
        }
        fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[derive(Default)]
    struct Keeper(Mutex<Vec<String>>);

    impl CallSink for Keeper {
        fn record(&self, call: &FinishedCall<'_>) {
            self.0.lock().unwrap().push(serde_json::to_string(call).unwrap());
        }
    }

    fn request(text: &str, seed: u64) -> ChatRequest {
        ChatRequest {
            messages: vec![PromptMessage::user(text)],
            schema: None,
            sampling: SamplingParameters { temperature: 0.0, max_tokens: 9, seed },
            context_tokens: 1024,
            think: ThinkingMode::Off,
            nonce: None,
            first_token: None,
        }
    }

    #[tokio::test]
    async fn kept_calls_are_answered_once_each_and_by_their_seed() {
        let keeper = Arc::new(Keeper::default());
        let log = Arc::new(CallLog::default());
        let model = JournaledModel::new(Arc::new(Counting::default()), Arc::clone(&log));
        for (text, seed) in [("a", 1), ("a", 2), ("a", 2)] {
            model.chat(&request(text, seed)).await.unwrap();
            // The first call is made before a keeper is set.
            log.set_sink(0, Arc::clone(&keeper) as Arc<dyn CallSink>);
        }
        let kept = keeper.0.lock().unwrap().clone();
        let kept: Vec<StoredCall> =
            kept.iter().map(|one| serde_json::from_str(one).unwrap()).collect();

        let inner = Arc::new(Counting::default());
        let log = Arc::new(CallLog::with_calls(kept));
        let digest = request("a", 0).digest();
        assert_eq!(log.answer_counts(Some("counting"))[&digest], 3);
        assert!(log.answer_counts(Some("other")).is_empty());
        let model = JournaledModel::new(Arc::clone(&inner) as Arc<dyn ChatModel>, log);
        let mut replies = Vec::new();
        for seed in [2, 1, 2, 2] {
            replies.push(model.chat(&request("a", seed)).await.unwrap().text);
        }
        assert_eq!(replies, ["a 2", "a 1", "a 3", "a 1"], "the last one was asked for anew");
        assert_eq!(*inner.0.lock().unwrap(), 1);
    }

    #[tokio::test]
    async fn runs_that_share_a_model_have_calls_of_their_own() {
        let keepers = [Arc::new(Keeper::default()), Arc::new(Keeper::default())];
        let log = Arc::new(CallLog::default().with_run(Vec::new()));
        for (run, keeper) in keepers.iter().enumerate() {
            log.set_sink(run, Arc::clone(keeper) as Arc<dyn CallSink>);
        }
        let model = JournaledModel::new(Arc::new(Counting::default()), log);
        for run in [0, 1] {
            for_run(run, model.chat(&request("a", 1))).await.unwrap();
        }
        model.chat(&request("outside", 1)).await.unwrap();
        let kept = keepers.map(|keeper| -> Vec<StoredCall> {
            let kept = keeper.0.lock().unwrap();
            kept.iter().map(|one| serde_json::from_str(one).unwrap()).collect()
        });
        assert_eq!(kept.each_ref().map(Vec::len), [2, 1]);

        let inner = Arc::new(Counting::default());
        let [first, second] = kept;
        let log = Arc::new(CallLog::with_calls(first).with_run(second));
        assert_eq!(log.answer_counts(None)[&request("a", 0).digest()], 2);
        let model = JournaledModel::new(Arc::clone(&inner) as Arc<dyn ChatModel>, log);
        let mut replies = Vec::new();
        for run in [1, 0, 1] {
            replies.push(for_run(run, model.chat(&request("a", 1))).await.unwrap().text);
        }
        assert_eq!(replies, ["a 2", "a 1", "a 1"], "the last one was asked for anew");
        assert_eq!(*inner.0.lock().unwrap(), 1);
    }

    fn request_with(text: &str, schema: Option<Value>) -> ChatRequest {
        ChatRequest {
            messages: vec![PromptMessage::system("Judge <7f> \"it\"."), PromptMessage::user(text)],
            schema: schema.map(|schema| ReplySchema { name: "x", schema: Arc::new(schema) }),
            sampling: SamplingParameters { temperature: 0.2, max_tokens: 9, seed: 4 },
            context_tokens: 1024,
            think: ThinkingMode::Off,
            nonce: None,
            first_token: None,
        }
    }

    proptest! {
        #[test]
        fn the_digest_is_that_of_the_identity(
            text in ".{0,40}",
            name in "[a-zé\"]{1,4}",
            number in any::<f64>(),
            temperature in any::<f64>(),
            first in any::<bool>(),
            reply in proptest::option::of(".{0,9}"),
            has_nonce in any::<bool>(),
        ) {
            let schema = json!({ "z": [{ "b": null, "a": number }], name: { "y": 1, "x": true } });
            for schema in [None, Some(schema)] {
                let mut request = request_with(&text, schema);
                request.sampling.temperature = temperature;
                let reply = reply.clone();
                request.first_token = first.then(|| FirstTokenProbe { reply, ..FirstTokenProbe::default() });
                request.nonce = has_nonce.then(|| "7f".to_owned());
                prop_assert_eq!(request.digest(), digest::json_sha256_hex(request.identity()));
            }
        }
    }

    #[test]
    fn a_nonce_does_not_count_and_a_word_does() {
        let with = |nonce: &str| ChatRequest {
            nonce: Some(nonce.to_owned()),
            ..request_with(&format!("[BEGIN {nonce}]"), None)
        };
        assert_eq!(with("0a0b0c0d").digest(), with("01020304").digest());
        assert_ne!(request_with("a", None).digest(), request_with("b", None).digest());
    }
}
