//! Cassettes: replies recorded by request digest and replayed without a model.
//!
//! Each reply is one readable, diffable JSON file, `<digest>-<n>.json`. The n-th call with the same
//! digest gets the n-th recording, so repeats stay distinct. `cassette.json` beside them holds the
//! seed of the run and what is known of its judges: both decide what is asked.
//!
//! The judges of a panel are asked the same. `DIR#MODEL` replays the replies of one model alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::{ModelContext, ProviderEntry, ProviderModel, REMOTE_CALLS};
use super::{ChatModel, ChatReply, ChatRequest, ModelError};
use selftest_text::file::read_bounded;

/// The entry in the table of providers.
pub(crate) const PROVIDER: ProviderEntry = ProviderEntry {
    placeholder: "DIR",
    example: "DIR",
    concurrency: REMOTE_CALLS,
    ..ProviderEntry::new(|context| Box::pin(async move { build(&context) }))
};

fn build(context: &ModelContext<'_>) -> Result<ProviderModel, ModelError> {
    let place = CassettePlace::of(context.folder, context.name);
    let mut cassette = Cassette::open(Path::new(context.name), &place.folder)?;
    if let Some(model) = place.model {
        cassette = cassette.of_model(model)?;
    }
    // A resumed run answers its finished calls from the journal. The cassette never sees them, and
    // without this offset it would hand out their recordings again.
    if let Some(log) = context.call_log {
        let answered = log.answer_counts(Some(cassette.id()));
        cassette = cassette.starting_at(answered);
    }
    Ok(ProviderModel { model: Arc::new(cassette), endpoint: None })
}

/// Separates the folder of a cassette from one of its models.
const MODEL_MARK: char = '#';

/// Where a cassette is, and whose replies are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CassettePlace<'n> {
    /// The folder.
    pub folder: PathBuf,
    /// The model whose replies alone are replayed; `None` for all.
    pub model: Option<&'n str>,
}

impl<'n> CassettePlace<'n> {
    /// Reads the name of a cassette: `DIR` or `DIR#MODEL`, relative to a folder. A folder may have
    /// the mark in its own name.
    pub fn of(base: &Path, name: &'n str) -> Self {
        let whole = Self { folder: base.join(name), model: None };
        if whole.folder.is_dir() {
            return whole;
        }
        let split = |at| Self { folder: base.join(&name[..at]), model: Some(&name[at + 1..]) };
        let places: Vec<Self> = name.match_indices(MODEL_MARK).map(|(at, _)| split(at)).collect();
        // The longest folder: `runs#1` beside `runs` is meant as a whole. Without any, the error names
        // the first.
        let found = places.iter().rev().find(|place| place.folder.is_dir());
        found.or(places.first()).cloned().unwrap_or(whole)
    }
}

/// Number of characters of the digest in a file name.
const DIGEST_LENGTH: usize = 16;
/// Maximum size in bytes of a recording file to read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Name of the file that states what the replies alone do not.
const MANIFEST: &str = "cassette.json";
/// Version of the manifest. Incremented when a key changes its meaning or is removed.
const MANIFEST_VERSION: u32 = 1;

/// Facts of a recorded run that decide which requests are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CassetteManifest {
    version: u32,
    /// Seed of the recorded run.
    pub seed: u64,
    /// True if the harness itself wrote the cases, for the example agent: no model was asked for
    /// them, and none is in the replay.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_templates: bool,
    /// The judge; absent if the run had none, or a panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge: Option<RecordedJudge>,
    /// The judges of a panel; empty if one judge or none decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    panel: Vec<RecordedJudge>,
}

/// The judge of a recorded run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedJudge {
    /// Full name of the model.
    pub model: String,
    /// Digest of its weights, or its name if no digest is available.
    pub weights: String,
    /// See [`ChatModel::supports_logprobs`].
    pub supports_logprobs: bool,
    /// See [`ChatModel::supports_decisions`].
    pub supports_decisions: bool,
    /// See [`ChatModel::supports_scoring`].
    pub supports_scoring: bool,
    /// Its measurement, in the format of the register of judges. Absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

impl RecordedJudge {
    /// Describes a model as a judge.
    pub async fn of(model: &dyn ChatModel, weights: &str, measurement: Option<Value>) -> Self {
        Self {
            model: model.id().to_owned(),
            weights: weights.to_owned(),
            supports_logprobs: model.supports_logprobs().await,
            supports_decisions: model.supports_decisions().await,
            supports_scoring: model.supports_scoring(),
            measurement,
        }
    }
}

impl CassetteManifest {
    /// Creates the manifest of a run with these judges.
    pub fn new(seed: u64, by_templates: bool, mut judges: Vec<RecordedJudge>) -> Self {
        let judge = if judges.len() == 1 { judges.pop() } else { None };
        Self { version: MANIFEST_VERSION, seed, by_templates, judge, panel: judges }
    }

    /// Returns the names under which the judges of a panel are replayed, given that of the cassette;
    /// empty if there was no panel.
    pub fn panel_names(&self, cassette: &str) -> Vec<String> {
        self.panel.iter().map(|judge| format!("{cassette}{MODEL_MARK}{}", judge.model)).collect()
    }

    /// Returns what is known of the judge with this name in the cassette, `None` being the only one.
    pub fn judge(&self, model: Option<&str>) -> Option<&RecordedJudge> {
        match model {
            None => self.judge.as_ref(),
            Some(model) => self.panel.iter().chain(&self.judge).find(|judge| judge.model == model),
        }
    }

    /// Reads the manifest of a cassette. Recordings of earlier versions have none.
    pub fn read(folder: &Path) -> Result<Option<Self>, ModelError> {
        let path = folder.join(MANIFEST);
        let failed = |why: String| ModelError::Engine {
            what: format!("{}: {why}", path.display()),
            hint: Some("record again with --record <dir>".to_owned()),
        };
        let bytes = match read_bounded(&path, MAX_FILE) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| failed(error.to_string()))?,
        };
        let manifest: Self = serde_json::from_slice(&bytes)
            .map_err(|error| failed(format!("it is no manifest of a cassette: {error}")))?;
        if manifest.version != MANIFEST_VERSION {
            let version = manifest.version;
            return Err(failed(format!(
                "it has the version {version}, and this selftest knows {MANIFEST_VERSION} only"
            )));
        }
        Ok(Some(manifest))
    }

    /// Writes the manifest to the folder of a cassette, which is created if it is missing.
    pub fn write(&self, folder: &Path) -> Result<(), ModelError> {
        let path = folder.join(MANIFEST);
        let failed = |why: &dyn std::fmt::Display| {
            ModelError::engine(format!("cannot write {}: {why}", path.display()), None)
        };
        let json = serde_json::to_string_pretty(self).map_err(|error| failed(&error))?;
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        std::fs::write(&path, json + "\n").map_err(|error| failed(&error))
    }
}

#[derive(Serialize, Deserialize)]
struct RecordedCall {
    model: String,
    request: Value,
    reply: ChatReply,
}

/// Number of occurrences of each digest.
type OccurrenceCounts = Mutex<HashMap<String, usize>>;

fn next_occurrence(counts: &OccurrenceCounts, digest: &str) -> usize {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.entry(digest.to_owned()).or_default();
    *count += 1;
    *count
}

fn file_name(digest: &str, occurrence: usize) -> String {
    // A file of a cassette may have any name, such as one whose characters take three bytes.
    format!("{}-{occurrence}.json", &digest[..digest.floor_char_boundary(DIGEST_LENGTH)])
}

/// A model wrapper that writes each reply to a folder.
pub struct RecordingModel {
    inner: Arc<dyn ChatModel>,
    folder: PathBuf,
    counts: Arc<OccurrenceCounts>,
}

/// Numbering of recordings, shared by all recorders of a run.
#[derive(Clone, Default)]
pub struct RecordingCounter(Arc<OccurrenceCounts>);

impl RecordingCounter {
    /// Continues numbering after the given number of recordings for each digest.
    pub fn starting_at(recorded: HashMap<String, usize>) -> Self {
        Self(Arc::new(Mutex::new(recorded)))
    }
}

impl RecordingModel {
    /// Creates a recorder and its folder.
    pub fn new(
        inner: Arc<dyn ChatModel>,
        folder: &Path,
        numbering: &RecordingCounter,
    ) -> Result<Self, ModelError> {
        std::fs::create_dir_all(folder).map_err(|error| {
            ModelError::engine(
                format!("cannot create the cassette {}: {error}", folder.display()),
                None,
            )
        })?;
        Ok(Self { inner, folder: folder.to_owned(), counts: Arc::clone(&numbering.0) })
    }

    fn write(&self, request: &ChatRequest, reply: &ChatReply) -> Result<(), ModelError> {
        let digest = request.digest();
        let path = self.folder.join(file_name(&digest, next_occurrence(&self.counts, &digest)));
        let recording = RecordedCall {
            model: self.inner.id().to_owned(),
            request: request.identity(),
            reply: reply.clone(),
        };
        let failed = |error: &dyn std::fmt::Display| {
            ModelError::engine(format!("cannot write {}: {error}", path.display()), None)
        };
        let json = serde_json::to_string_pretty(&recording).map_err(|error| failed(&error))?;
        std::fs::write(&path, json + "\n").map_err(|error| failed(&error))
    }
}

impl ChatModel for RecordingModel {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            // Errors are not recorded: a replay would repeat an outage of that day.
            let reply = self.inner.chat(request).await?;
            self.write(request, &reply)?;
            Ok(reply)
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
        Some(Arc::clone(&self.inner))
    }
}

/// A model that replays a folder of recordings.
pub struct Cassette {
    id: String,
    folder: PathBuf,
    recordings: HashMap<String, RecordedCall>,
    counts: OccurrenceCounts,
    manifest: Option<CassetteManifest>,
    judge: Option<RecordedJudge>,
}

impl Cassette {
    /// Reads all recordings of a folder.
    pub fn open(name: &Path, folder: &Path) -> Result<Self, ModelError> {
        let failed = |what: String| ModelError::Engine {
            what,
            hint: Some("record one with --record <dir>".to_owned()),
        };
        let entries = std::fs::read_dir(folder).map_err(|error| {
            failed(format!("cannot read the cassette {}: {error}", folder.display()))
        })?;
        let mut recordings = HashMap::new();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            let (true, Some(name)) = (is_json, path.file_name().and_then(|name| name.to_str()))
            else {
                continue;
            };
            if name == MANIFEST {
                continue;
            }
            // An error and not skipped: a damaged file would look like a request that was never
            // made.
            let recording = read_bounded(&path, MAX_FILE)
                .ok()
                .and_then(|bytes| serde_json::from_slice::<RecordedCall>(&bytes).ok())
                .ok_or_else(|| failed(format!("{} is not a recording", path.display())))?;
            recordings.insert(name.to_owned(), recording);
        }
        let manifest = CassetteManifest::read(folder)?;
        // Where rules and checks decide everything, no model is asked.
        if recordings.is_empty() && manifest.is_none() {
            return Err(failed(format!("the cassette {} is empty", folder.display())));
        }
        Ok(Self {
            id: format!("cassette/{}", name.display()),
            folder: folder.to_owned(),
            recordings,
            counts: OccurrenceCounts::default(),
            judge: manifest.as_ref().and_then(|manifest| manifest.judge(None)).cloned(),
            manifest,
        })
    }

    /// Keeps the replies of one model, numbered anew in their order.
    fn of_model(self, model: &str) -> Result<Self, ModelError> {
        let mut own: Vec<(String, usize, RecordedCall)> = Vec::new();
        let mut models = std::collections::BTreeSet::new();
        for (name, call) in self.recordings {
            models.insert(call.model.clone());
            let numbered = name.strip_suffix(".json").and_then(|stem| stem.rsplit_once('-'));
            let numbered = numbered.and_then(|(digest, number)| {
                number.parse().ok().map(|number: usize| (digest.to_owned(), number))
            });
            if let Some((digest, number)) = numbered.filter(|_| call.model == model) {
                own.push((digest, number, call));
            }
        }
        let judge =
            self.manifest.as_ref().and_then(|manifest| manifest.judge(Some(model))).cloned();
        if own.is_empty() && judge.is_none() {
            let models: Vec<String> = models.into_iter().collect();
            return Err(ModelError::Engine {
                what: format!(
                    "the cassette {} has no reply of {}",
                    self.folder.display(),
                    selftest_text::one_line(model, 100)
                ),
                hint: Some(format!("it has those of {}", models.join(", "))),
            });
        }
        // The judges of a panel were asked in turn, so that each has gaps in its numbers.
        own.sort_by_key(|(_, number, _)| *number);
        let counts = OccurrenceCounts::default();
        let renumbered = own
            .into_iter()
            .map(|(digest, _, call)| (file_name(&digest, next_occurrence(&counts, &digest)), call));
        Ok(Self { recordings: renumbered.collect(), judge, ..self })
    }

    /// Continues after the given number of calls for each digest.
    #[must_use]
    pub fn starting_at(self, answered: HashMap<String, usize>) -> Self {
        Self { counts: Mutex::new(answered), ..self }
    }

    fn replay(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let digest = request.digest();
        // The same question may have other answers each time: they come back in the order in which
        // they were given.
        let occurrence = next_occurrence(&self.counts, &digest);
        if let Some(recording) = self.recordings.get(&file_name(&digest, occurrence)) {
            return Ok(recording.reply.clone());
        }
        // A reading is not sampled. Cases that run side by side may take it more often than it was
        // recorded.
        let first = self.recordings.get(&file_name(&digest, 1)).map(|recording| &recording.reply);
        if let Some(reply) = first.filter(|reply| reply.is_reading()) {
            return Ok(reply.clone());
        }
        let difference = if occurrence > 1
            && self.recordings.contains_key(&file_name(&digest, occurrence - 1))
        {
            format!("it was recorded {} times and is asked for once more", occurrence - 1)
        } else {
            self.nearest_difference(&request.identity())
        };
        Err(ModelError::NotRecorded { folder: self.folder.display().to_string(), difference })
    }

    /// Describes the first difference from the most similar recording.
    fn nearest_difference(&self, wanted: &Value) -> String {
        let leaves = flatten_scalars(wanted);
        let nearest = self
            .recordings
            .iter()
            .map(|(name, recording)| {
                (name, describe_difference(&leaves, &self::flatten_scalars(&recording.request)))
            })
            // Ties are broken by name, because the order of a `HashMap` is random.
            .min_by_key(|(name, (missing, _))| (*missing, (*name).clone()));
        match nearest {
            Some((name, (_, first))) => format!("the nearest is {name}, where {first}"),
            None => "the cassette is empty".to_owned(),
        }
    }
}

impl ChatModel for Cassette {
    fn id(&self) -> &str {
        &self.id
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move { self.replay(request) })
    }

    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        let tells = match &self.judge {
            Some(judge) => judge.supports_logprobs,
            None => self.recordings.values().any(|one| one.reply.first_token.is_some()),
        };
        Box::pin(async move { tells })
    }

    fn supports_decisions(&self) -> BoxFuture<'_, bool> {
        let decides = match &self.judge {
            Some(judge) => judge.supports_decisions,
            None => self.recordings.values().any(|one| one.reply.decisions.is_some()),
        };
        Box::pin(async move { decides })
    }

    fn supports_scoring(&self) -> bool {
        match &self.judge {
            Some(judge) => judge.supports_scoring,
            None => self.recordings.values().any(|one| one.reply.likelihood.is_some()),
        }
    }

    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        // The same weights under another name are the same judge.
        Box::pin(async { self.judge.as_ref().map(|judge| judge.weights.clone()) })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Flattens the scalars of a JSON value, keyed by JSON pointer.
fn flatten_scalars(value: &Value) -> Vec<(String, String)> {
    fn walk(value: &Value, path: String, into: &mut Vec<(String, String)>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    walk(value, format!("{path}/{key}"), into);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    walk(value, format!("{path}/{index}"), into);
                }
            }
            Value::String(text) => into.push((path, text.clone())),
            scalar => into.push((path, scalar.to_string())),
        }
    }
    let mut into = Vec::new();
    walk(value, String::new(), &mut into);
    into
}

/// Returns the size of the difference (bytes after the common start of each differing leaf) and a
/// description of the first one.
fn describe_difference(
    wanted: &[(String, String)],
    recorded: &[(String, String)],
) -> (usize, String) {
    let mut cost = 0;
    let mut first = None;
    for (path, wanted) in wanted {
        let recorded =
            recorded.iter().find(|(other, _)| other == path).map(|(_, text)| text.as_str());
        if recorded == Some(wanted.as_str()) {
            continue;
        }
        let recorded = recorded.unwrap_or_default();
        let same = wanted.bytes().zip(recorded.bytes()).take_while(|(a, b)| a == b).count();
        // Shows some context before the difference.
        let start = wanted.floor_char_boundary(same.saturating_sub(20));
        let recorded_start = recorded.floor_char_boundary(start);
        cost += wanted.len().max(recorded.len()) - same;
        first.get_or_insert_with(|| {
            format!(
                "{path} was `{}` and is `{}`",
                selftest_text::one_line(&recorded[recorded_start..], 80),
                selftest_text::one_line(&wanted[start..], 80)
            )
        });
    }
    (cost, first.unwrap_or_else(|| "nothing in the request differs, but its shape".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FinishReason, PromptMessage, SamplingParameters, ThinkingMode};

    struct Echo;
    impl ChatModel for Echo {
        fn id(&self) -> &'static str {
            "echo"
        }
        fn chat<'a>(
            &'a self,
            request: &'a ChatRequest,
        ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
            Box::pin(async move {
                let text = format!("{} {}", request.messages[0].text, request.sampling.seed);
                Ok(ChatReply::plain(text, FinishReason::Stop))
            })
        }
        fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
            Box::pin(async { Ok(()) })
        }
    }

    fn request(text: &str, seed: u64, nonce: Option<&str>) -> ChatRequest {
        ChatRequest {
            messages: vec![PromptMessage::user(text)],
            schema: None,
            sampling: SamplingParameters { temperature: 0.0, max_tokens: 9, seed },
            context_tokens: 1024,
            think: ThinkingMode::Off,
            nonce: nonce.map(str::to_owned),
            first_token: None,
        }
    }

    #[tokio::test]
    async fn recorded_replies_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let recorder =
            RecordingModel::new(Arc::new(Echo), folder.path(), &RecordingCounter::default())
                .unwrap();
        for (text, seed, nonce) in [("a", 1, None), ("a", 2, None), ("n1 b", 3, Some("n1"))] {
            recorder.chat(&request(text, seed, nonce)).await.unwrap();
        }
        let cassette = Cassette::open(Path::new("c"), folder.path()).unwrap();
        assert_eq!(cassette.chat(&request("a", 7, None)).await.unwrap().text, "a 1");
        assert_eq!(cassette.chat(&request("a", 8, None)).await.unwrap().text, "a 2");
        let other_nonce = request("n2 b", 9, Some("n2"));
        assert_eq!(cassette.chat(&other_nonce).await.unwrap().text, "n1 b 3");
        let again = cassette.chat(&request("a", 9, None)).await.unwrap_err();
        assert!(again.to_string().contains("recorded 2 times"), "{again}");
    }

    /// A model with a name of its own that answers as [`Echo`] does.
    struct Named(&'static str);
    impl ChatModel for Named {
        fn id(&self) -> &str {
            self.0
        }
        fn chat<'a>(
            &'a self,
            request: &'a ChatRequest,
        ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
            let text = format!("{} {}", self.0, request.sampling.seed);
            Box::pin(async move { Ok(ChatReply::plain(text, FinishReason::Stop)) })
        }
        fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn models_that_are_asked_the_same_are_told_apart() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("c");
        let numbering = RecordingCounter::default();
        let mut judges = Vec::new();
        for (name, seed) in [("o/a", 1), ("o/b", 2), ("o/b", 3), ("o/a", 4)] {
            let recorder = RecordingModel::new(Arc::new(Named(name)), &folder, &numbering).unwrap();
            recorder.chat(&request("score it", seed, None)).await.unwrap();
            judges.push(RecordedJudge::of(&Named(name), &format!("weights of {name}"), None).await);
        }
        let manifest = CassetteManifest::new(7, false, judges[..2].to_vec());
        manifest.write(&folder).unwrap();
        let names = manifest.panel_names("cassette/c");
        assert_eq!(names, ["cassette/c#o/a", "cassette/c#o/b"]);
        for (name, replies) in [("o/b", ["o/b 2", "o/b 3"]), ("o/a", ["o/a 1", "o/a 4"])] {
            let name_in_cassette = format!("c#{name}");
            let place = CassettePlace::of(base.path(), &name_in_cassette);
            assert_eq!((&place.folder, place.model), (&folder, Some(name)));
            let cassette = Cassette::open(Path::new(&name_in_cassette), &place.folder).unwrap();
            let cassette = cassette.of_model(name).unwrap();
            assert_eq!(cassette.id(), format!("cassette/c#{name}"));
            assert_eq!(cassette.fingerprint().await.unwrap(), format!("weights of {name}"));
            for reply in replies {
                let said = cassette.chat(&request("score it", 9, None)).await.unwrap();
                assert_eq!(said.text, reply);
            }
        }
        // Files have any name.
        let recorded = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let recorded = recorded.into_iter().find(|path| !path.ends_with(MANIFEST)).unwrap();
        std::fs::copy(recorded, folder.join("語語語語語語-1.json")).unwrap();
        let renamed = Cassette::open(Path::new("c"), &folder).unwrap();
        assert!(renamed.of_model("o/a").is_ok());
        let whole = Cassette::open(Path::new("c"), &folder).unwrap();
        assert_eq!(whole.fingerprint().await, None, "a panel is no judge");
        let error = whole.of_model("o/c").err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("the cassette {} has no reply of o/c", folder.display())
        );
        assert!(format!("{error:?}").contains("it has those of o/a, o/b"));
        std::fs::create_dir(base.path().join("c#d")).unwrap();
        let own = CassettePlace::of(base.path(), "c#d");
        assert_eq!((own.folder, own.model), (base.path().join("c#d"), None));
        let one = CassettePlace::of(base.path(), "c#d#o/a");
        assert_eq!((one.folder, one.model), (base.path().join("c#d"), Some("o/a")));
    }

    #[tokio::test]
    async fn a_manifest_is_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(CassetteManifest::read(folder.path()).unwrap(), None);
        let judge = RecordedJudge::of(&Echo, "w", Some(serde_json::json!({ "auc": 0.9 }))).await;
        let manifest = CassetteManifest::new(7, true, vec![judge]);
        manifest.write(folder.path()).unwrap();
        assert_eq!(CassetteManifest::read(folder.path()).unwrap(), Some(manifest));
        let cassette = Cassette::open(Path::new("c"), folder.path()).unwrap();
        assert_eq!(cassette.fingerprint().await.as_deref(), Some("w"));
        assert!(!cassette.supports_scoring());
        for (text, why) in [("{}", "version"), (r#"{"version": 9, "seed": 1}"#, "version 9")] {
            std::fs::write(folder.path().join(MANIFEST), text).unwrap();
            let error = CassetteManifest::read(folder.path()).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(MANIFEST), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_does_not_end_is_not_read() {
        for name in [MANIFEST, "0123456789abcdef-1.json"] {
            let folder = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink("/dev/zero", folder.path().join(name)).unwrap();
            let error = Cassette::open(Path::new("c"), folder.path()).err().unwrap().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[tokio::test]
    async fn a_missing_recording_shows_the_difference() {
        let folder = tempfile::tempdir().unwrap();
        let recorder =
            RecordingModel::new(Arc::new(Echo), folder.path(), &RecordingCounter::default())
                .unwrap();
        recorder.chat(&request("say hello to Ann", 1, None)).await.unwrap();
        recorder.chat(&request("zzz", 1, None)).await.unwrap();
        let cassette = Cassette::open(Path::new("c"), folder.path()).unwrap();
        let error = cassette.chat(&request("say hello to Bob", 1, None)).await.unwrap_err();
        let words = error.to_string();
        assert!(
            words.contains("say hello to Ann") && words.contains("say hello to Bob"),
            "{words}"
        );
    }
}
