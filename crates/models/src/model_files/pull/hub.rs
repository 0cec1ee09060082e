//! Downloads a catalogue file from a model hub, verified against the SHA-256 that the hub states.
//! The hub states it in a response header before it redirects to the storage host.

use std::path::PathBuf;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Url, redirect};

use super::{
    CONNECT_LIMIT, READ_LIMIT, display_address, error_chain, fetch, parse_address, parse_digest,
};
use crate::model_files::{OnProgress, engine_error};
use crate::model_settings::ModelEnvironment;
use crate::{ModelError, http};

/// Maximum number of redirects to follow, as for renamed repositories.
const MAX_REDIRECTS: usize = 5;
/// Response header of the hub with the digest of a large file.
const DIGEST_HEADER: &str = "x-linked-etag";

/// A file of a hub and its expected digest.
pub(in crate::model_files) struct HubFile<'a> {
    pub(in crate::model_files) repository: &'a str,
    pub(in crate::model_files) file: &'a str,
    pub(in crate::model_files) sha256: &'a str,
}

/// Downloads a file of a repository as `<name>.gguf` in the cache folder.
pub(in crate::model_files) async fn from_hub(
    name: &str,
    wanted: HubFile<'_>,
    environment: &ModelEnvironment,
    progress: OnProgress<'_>,
) -> Result<PathBuf, ModelError> {
    let HubFile { repository, file, sha256 } = wanted;
    let source = format!("hf:{repository}/{file}");
    let address = parse_address(&source, environment.hf_endpoint.as_deref())?;
    let digest = stated_digest(&address, &source).await?;
    if digest != sha256 {
        return Err(engine_error(
            format!("{} has SHA-256 {digest}, but {name} is {sha256}", display_address(&address)),
            &format!(
                "the hub has replaced it: `selftest judge model pull {source}` fetches it under its own name"
            ),
        ));
    }
    fetch(address, &format!("{name}.gguf"), Some(digest), environment, progress).await
}

/// Returns the SHA-256 that the hub states for a file.
async fn stated_digest(address: &Url, source: &str) -> Result<String, ModelError> {
    let shown = display_address(address);
    let broken = |error: reqwest::Error| ModelError::Unreachable {
        endpoint: shown.clone(),
        why: error_chain(&error.without_url()),
        hint: "is there a network? HF_ENDPOINT names another hub".to_owned(),
    };
    let client = http::client_builder(address.as_str())
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        .redirect(redirect::Policy::none())
        .build()
        .map_err(broken)?;
    let mut at = address.clone();
    for _ in 0..MAX_REDIRECTS {
        let answer = client.head(at.clone()).send().await.map_err(broken)?;
        if let Some(digest) = parse_digest_header(answer.headers()) {
            return Ok(digest);
        }
        let status = answer.status();
        if status.is_client_error() || status.is_server_error() {
            let hint = "try again later, or name another hub with HF_ENDPOINT";
            return Err(engine_error(format!("{shown} answered {status}"), hint));
        }
        let next = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        match next.and_then(|place| at.join(place).ok()) {
            // Another origin is the storage host, which does not provide the hub's digest.
            Some(next) if next.origin() == at.origin() => at = next,
            _ => break,
        }
    }
    Err(engine_error(
        format!("{shown} states no SHA-256 ({DIGEST_HEADER})"),
        &format!("if you know it: `selftest judge model pull {source} --sha256 DIGEST`"),
    ))
}

fn parse_digest_header(headers: &HeaderMap) -> Option<String> {
    let stated = headers.get(DIGEST_HEADER)?.to_str().ok()?;
    parse_digest(stated.trim_start_matches("W/").trim_matches('"')).ok()
}
