//! `selftest judge model list|pull|path`, and the bar that shows a fetch.

use clap::Subcommand;
use selftest_app::{AppError, Project};
use selftest_models::locator::FetchObserver as _;
use selftest_models::model_settings::ModelSettings;
use selftest_models::ollama::{OllamaServer, base_address};
use selftest_models::{ModelError, model_files};
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{FetchBar, print};

/// Actions on model files.
#[derive(Debug, Subcommand)]
pub enum ModelAction {
    /// List local models and those that can be fetched
    List {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Fetch weights: a known name, an https:// address, or hf:owner/repo/file.gguf
    Pull {
        /// The model to fetch
        source: String,
        /// Expected SHA-256 of the file, in hexadecimal
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
    },
    /// Print the path of a model's file
    Path {
        /// Name, as in embedded/NAME
        #[arg(default_value = selftest_models::model_files::DEFAULT_MODEL)]
        name: String,
    },
}

pub(super) async fn execute(action: ModelAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    match action {
        ModelAction::List { json } => list(&project, json).await,
        ModelAction::Pull { source, sha256 } => pull(&project, &source, sha256.as_deref()).await,
        ModelAction::Path { name } => {
            match model_files::locate(&name, &project.environment.models)? {
                model_files::LocatedWeights::File(file) => {
                    print(&format!("{}\n", file.display()))?;
                    Ok(Exit::Passed)
                }
                model_files::LocatedWeights::NotFetched(entry) => {
                    let what = format!("the weights of {} are not here", entry.name);
                    let hint =
                        format!("fetch them with `selftest judge model pull {}`", entry.name);
                    Err(ModelError::Engine { what, hint: Some(hint) }.into())
                }
            }
        }
    }
}

async fn pull(project: &Project, source: &str, sha256: Option<&str>) -> Result<Exit, AppError> {
    let environment = &project.environment.models;
    let bar = FetchBar::new(project.environment.ci);
    let progress = |progress| bar.progress(progress);
    // A name of the catalogue comes with its address and digest; anything else is an address.
    let known =
        model_files::CatalogueEntry::find(source.strip_prefix("embedded/").unwrap_or(source));
    let file = match known {
        Some(entry) => match model_files::locate(entry.name, environment)? {
            model_files::LocatedWeights::File(file) => file,
            model_files::LocatedWeights::NotFetched(entry) => {
                if !environment.offline {
                    bar.announce(&entry.announcement());
                }
                model_files::fetch(entry, environment, &progress).await?
            }
        },
        None => model_files::pull(source, sha256, environment, &progress).await?,
    };
    drop(bar);
    print(&format!("{}\n", file.display()))?;
    Ok(Exit::Passed)
}

async fn list(project: &Project, as_json: bool) -> Result<Exit, AppError> {
    let environment = &project.environment.models;
    let settings = ModelSettings {
        // The list of weights must not wait for a server that is off.
        connect_seconds: 2.0,
        first_byte_seconds: 2.0,
        total_seconds: 4.0,
        ..ModelSettings::default()
    };
    let base = base_address(environment);
    let served = OllamaServer::new(&base, &settings)?.models().await;
    let weights = model_files::list(environment);
    if as_json {
        let embedded: Vec<Value> = weights
            .iter()
            .map(|listed| {
                json!({
                    "name": format!("embedded/{}", listed.name),
                    "present": listed.is_present,
                    "bytes": listed.bytes,
                    "file": listed.file,
                    "licence": listed.entry.map(|entry| entry.licence),
                })
            })
            .collect();
        let ollama: Vec<Value> = served
            .iter()
            .flatten()
            .map(|tag| json!({ "name": format!("ollama/{}", tag.name), "bytes": tag.size, "chat": tag.can_chat() }))
            .collect();
        print(&format!("{:#}\n", json!({ "embedded": embedded, "ollama": ollama })))?;
        return Ok(Exit::Passed);
    }
    let mut lines = String::new();
    for listed in &weights {
        let state = match (listed.is_present, listed.entry) {
            (true, _) => listed.file.display().to_string(),
            (false, Some(entry)) => format!(
                "not here; `selftest judge model pull {}` fetches it ({})",
                entry.name, entry.licence
            ),
            (false, None) => "not here".to_owned(),
        };
        lines += &line(&format!("embedded/{}", listed.name), listed.bytes, &state);
    }
    match served {
        Ok(tags) => {
            for tag in tags {
                let state = if tag.can_chat() { "at " } else { "cannot chat; at " };
                lines +=
                    &line(&format!("ollama/{}", tag.name), tag.size, &format!("{state}{base}"));
            }
        }
        Err(_) => lines += &format!("no Ollama server at {base}\n"),
    }
    print(&lines)?;
    Ok(Exit::Passed)
}

fn line(name: &str, bytes: u64, state: &str) -> String {
    format!("{name:<32} {:>7} MB  {state}\n", bytes / 1_000_000)
}
