//! Grades reflections of agents, from submission to score, and notifies a hook of weak ones: the
//! library interface of docs/spec/reflections.md#functions.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use selftest_grading::grade::reflection::{ReflectionRules, ReflectionSettings};
//! use selftest_service::grader::reflection::ReflectionGrader;
//! use selftest_text::redact::Redactor;
//! use selftest_store::Store;
//!
//! let settings = ReflectionSettings::default();
//! // The defaults name no schema file, so there is nothing to read.
//! let rules = ReflectionRules::new(&settings, |_| Ok(true.into())).expect("valid defaults");
//! let store = Store::open(":memory:").await?;
//! let grader = ReflectionGrader::new(store, settings, rules, Redactor::default());
//!
//! let reflection = serde_json::json!({
//!     "agent": "HAL", "goal": "Build a test project", "summary": "Did stuff",
//!     "confidence": 0.3, "tags": [],
//! });
//! let reflection = reflection.as_object().cloned().unwrap_or_default();
//! grader.submit("demo", reflection, None).await?;
//!
//! let graded = grader.grade_reflection("demo").await?.expect("there is one");
//! assert_eq!((graded.score, graded.weak, graded.loop_count), (0.45, true, 1));
//! assert_eq!(grader.weak_reflections("demo", 10, None).await?.count, 1);
//! # Ok(()) }
//! ```
//!
//! Prints nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::RngExt as _;
use serde_json::{Map, Value, json};

use super::deliver::{receivers, send_all};
use selftest_grading::grade::reflection::{
    AdaptiveThreshold, HISTORY, Reflection, ReflectionRules, ReflectionScore, ReflectionScores,
    ReflectionSettings, ReflectionWeek, StoredReflection, ThresholdProposal, WeakReflections,
    effective_threshold, grade_reflection, trend,
};
use selftest_store::{Cursor, NewReflection, ReflectionQuery, Store, StoreError};
use selftest_text::digest;
use selftest_text::redact::Redactor;

/// Time after which a recovery hook is given up.
const MAX_RECOVERY: Duration = Duration::from_secs(30);

/// Maximum bytes of a reflection as JSON.
pub const MAX_LENGTH: usize = 64 * 1024;

/// Maximum bytes of a project or reflection id.
const MAX_ID: usize = 512;

/// Maximum number of reflections in a trend; the newest are used.
const MAX_TREND: u32 = 100_000;

/// Grades reflections and saves their scores.
#[derive(Debug)]
pub struct ReflectionGrader {
    store: Store,
    settings: ReflectionSettings,
    rules: ReflectionRules,
    redactor: Redactor,
}

/// Result of submitting a reflection.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmittedReflection {
    /// Its score.
    pub score: ReflectionScore,
    /// True if the project did not have it before.
    pub is_new: bool,
}

/// Error for a reflection without a score.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// The document is too long.
    #[error("the reflection has {bytes} bytes of JSON, expected at most {MAX_LENGTH}")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// An id is empty, too long or contains NUL.
    #[error("{what} must be a text of 1 to {MAX_ID} bytes without NUL")]
    Id {
        /// The id in question.
        what: &'static str,
    },
    /// Another reflection has this id.
    #[error("the project has another reflection with the id {reflection_id:?}")]
    Taken {
        /// The id.
        reflection_id: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReflectionGrader {
    /// Creates a grader with these rules, which come from the settings.
    pub fn new(
        store: Store,
        settings: ReflectionSettings,
        rules: ReflectionRules,
        redactor: Redactor,
    ) -> Self {
        Self { store, settings, rules, redactor }
    }

    /// Saves a reflection of a project and grades it.
    ///
    /// Secrets are redacted first. A reflection without an id gets a random one, so that an agent
    /// that submits the same text twice is counted twice. If it comes from a file, given by its
    /// position `place`, the id is derived from content and position instead, so that reading a
    /// file twice counts it once. A reflection that already exists keeps its score.
    pub async fn submit(
        &self,
        project_id: &str,
        document: Map<String, Value>,
        place: Option<usize>,
    ) -> Result<SubmittedReflection, ReflectionError> {
        let (document, reflection) = self.read(project_id, document)?;
        let reflection_id = match &reflection.reflection_id {
            Some(id) => id.clone(),
            None => match place {
                Some(place) => {
                    // By content and place in its file, so that submitting the file again adds
                    // nothing.
                    digest::json_sha256_hex(json!([project_id, place, document]))[..32].into()
                }
                None => digest::hex(&rand::rng().random::<[u8; 16]>()),
            },
        };
        check_id("the id of the reflection", &reflection_id)?;
        let new = NewReflection {
            project_id: project_id.to_owned(),
            reflection_id,
            loop_count: self.stated_loop(&reflection),
            made_at: made_at(&reflection, selftest_clock::now()),
            agent: reflection.agent,
            document,
        };
        let (kept, is_new) = self.store.add_reflection(&new).await?;
        // The same id with the same content is a retry. With other content two reflections share an
        // id.
        if !is_same_document(&kept.document, &new.document) {
            return Err(ReflectionError::Taken { reflection_id: new.reflection_id });
        }
        Ok(SubmittedReflection { score: self.grade_kept(kept).await?, is_new })
    }

    /// Returns the score that a reflection would get, without saving anything.
    pub async fn preview(
        &self,
        project_id: &str,
        document: Map<String, Value>,
    ) -> Result<ReflectionScore, ReflectionError> {
        let (document, reflection) = self.read(project_id, document)?;
        let now = selftest_clock::now();
        let others = self.store.reflecting_projects(Some(project_id), 1).await?.items;
        let kept = StoredReflection {
            // After all stored ones, as it would be if it were submitted now.
            number: i64::MAX,
            project_id: project_id.to_owned(),
            loop_count: self
                .stated_loop(&reflection)
                .unwrap_or_else(|| 1 + others.first().map_or(0, |project| project.count)),
            made_at: made_at(&reflection, now),
            reflection_id: reflection.reflection_id.unwrap_or_else(|| "-".to_owned()),
            agent: reflection.agent,
            document,
        };
        Ok(self.score(kept, now).await?)
    }

    /// Grades the last reflection of a project and saves the score; `None` for a project without
    /// any. Grading it again gives a new score only if the criteria have changed.
    pub async fn grade_reflection(
        &self,
        project_id: &str,
    ) -> Result<Option<ReflectionScore>, StoreError> {
        match self.store.last_reflection(project_id).await? {
            Some(kept) => self.grade_kept(kept).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns a page of a project's scores.
    pub async fn reflection_scores(
        &self,
        project_id: &str,
        limit: u32,
        after: Option<Cursor>,
    ) -> Result<ReflectionScores, StoreError> {
        let asked =
            ReflectionQuery { project_id: Some(project_id.to_owned()), weak: false, limit, after };
        let page = self.store.reflection_scores(&asked).await?;
        let project = self.store.reflecting_projects(Some(project_id), 1).await?.items.pop();
        Ok(ReflectionScores {
            project_id: project_id.to_owned(),
            reflection_scores: page.items,
            count: project.as_ref().map_or(0, |project| project.count),
            average_score: project.map(|project| project.average_score),
            next: page.next.map(|next| next.to_string()),
        })
    }

    /// Returns a page of a project's weak reflections with their documents.
    pub async fn weak_reflections(
        &self,
        project_id: &str,
        limit: u32,
        after: Option<Cursor>,
    ) -> Result<WeakReflections, StoreError> {
        let asked =
            ReflectionQuery { project_id: Some(project_id.to_owned()), weak: true, limit, after };
        let page = self.store.scored_reflections(&asked).await?;
        let project = self.store.reflecting_projects(Some(project_id), 1).await?.items.pop();
        Ok(WeakReflections {
            project_id: project_id.to_owned(),
            weak_reflections: page.items,
            count: project.map_or(0, |project| project.weak),
            next: page.next.map(|next| next.to_string()),
        })
    }

    /// Returns scores by week, of one project or of all.
    pub async fn trend(&self, project_id: Option<&str>) -> Result<Vec<ReflectionWeek>, StoreError> {
        Ok(trend(&self.store.reflections_over_time(project_id, MAX_TREND).await?.items))
    }

    /// Returns the threshold that a project's scores suggest; `None` if there are too few.
    pub async fn proposal(
        &self,
        project_id: &str,
    ) -> Result<Option<ThresholdProposal>, StoreError> {
        let past = self.store.reflection_history(project_id, i64::MAX, HISTORY).await?;
        Ok(ThresholdProposal::from_scores(&past))
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ReflectionSettings {
        &self.settings
    }

    /// Returns the database.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Sends a weak reflection to the configured recovery hook, once. After a failure it is sent
    /// again by the next call. Returns the error messages.
    pub async fn notify_recovery_hook(
        &self,
        score: &ReflectionScore,
    ) -> Result<Vec<String>, StoreError> {
        let hook = &self.settings.hook;
        let is_wanted = score.weak && (hook.command.is_some() || hook.webhook.is_some());
        // Claim first, because another process may be grading the same reflection.
        if !is_wanted || !self.store.claim_recovery(score, selftest_clock::now()).await? {
            return Ok(Vec::new());
        }
        let kept = self.store.reflection(&score.project_id, &score.reflection_id).await?;
        let mut body = json!({ "kind": "selftest.weak_reflection" });
        if let (Some(body), Value::Object(score)) = (body.as_object_mut(), json!(score)) {
            body.extend(score);
            body.insert("reflection".to_owned(), json!(kept.map(|kept| kept.document)));
        }
        let (command, webhook) = (hook.command.as_deref(), hook.webhook.as_deref());
        let receivers = receivers("recovery", command, webhook, MAX_RECOVERY);
        let faults = send_all(&receivers, &body).await;
        if !faults.is_empty() {
            // Lets the next call try again.
            self.store.release_recovery(score).await?;
        }
        Ok(faults)
    }

    /// Redacts a document and extracts its fields.
    fn read(
        &self,
        project_id: &str,
        mut document: Map<String, Value>,
    ) -> Result<(Map<String, Value>, Reflection), ReflectionError> {
        check_id("the id of the project", project_id)?;
        let bytes = json!(document).to_string().len();
        if bytes > MAX_LENGTH {
            return Err(ReflectionError::TooLong { bytes });
        }
        self.redactor.apply_object(&mut document);
        let reflection = Reflection::from_document(&document);
        Ok((document, reflection))
    }

    fn stated_loop(&self, reflection: &Reflection) -> Option<u64> {
        let rules = self.rules.for_agent(reflection.agent.as_deref());
        reflection.loop_count.or_else(|| rules.loop_number(&reflection.tags))
    }

    async fn grade_kept(&self, kept: StoredReflection) -> Result<ReflectionScore, StoreError> {
        let number = kept.number;
        let score = self.score(kept, selftest_clock::now()).await?;
        if let Some(before) = self.store.reflection_score(number).await? {
            // An unchanged score keeps its original timestamp.
            let same = ReflectionScore { timestamp: before.timestamp, ..score.clone() };
            if same == before {
                return Ok(before);
            }
        }
        self.store.save_reflection_score(number, &score).await?;
        Ok(score)
    }

    async fn score(
        &self,
        kept: StoredReflection,
        now: Timestamp,
    ) -> Result<ReflectionScore, StoreError> {
        // Later reflections do not influence the threshold of this one.
        let past = match self.settings.adaptive {
            AdaptiveThreshold::Propose => Vec::new(),
            AdaptiveThreshold::Apply => {
                self.store.reflection_history(&kept.project_id, kept.number, HISTORY).await?
            }
        };
        let threshold = effective_threshold(&self.settings, &past);
        let grade = grade_reflection(&kept.document, self.rules.for_agent(kept.agent.as_deref()));
        Ok(ReflectionScore {
            score: grade.score.get(),
            threshold: threshold.get(),
            weak: grade.is_weak(threshold),
            project_id: kept.project_id,
            reflection_id: kept.reflection_id,
            agent: kept.agent,
            loop_count: kept.loop_count,
            issues: grade.issues,
            timestamp: now,
            made_at: kept.made_at,
        })
    }
}

fn check_id(what: &'static str, id: &str) -> Result<(), ReflectionError> {
    let is_good = !id.is_empty() && id.len() <= MAX_ID && !id.contains('\0');
    if is_good { Ok(()) } else { Err(ReflectionError::Id { what }) }
}

/// Returns the creation time given by the agent, unless it is in the future. A clock up to a day
/// ahead is accepted.
fn made_at(reflection: &Reflection, now: Timestamp) -> Timestamp {
    // A day of tolerance for clocks that are ahead; later dates would lead every list.
    let latest = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
    reflection.made_at.filter(|made_at| *made_at <= latest).unwrap_or(now)
}

/// Compares with the new document after a round trip through text, which changes the last bit of
/// some numbers.
fn is_same_document(kept: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    // Compared after writing and reading, as the stored one was: numbers may change their type.
    let text = Value::Object(new.clone()).to_string();
    serde_json::from_str::<Map<String, Value>>(&text).is_ok_and(|new| new == *kept)
}
