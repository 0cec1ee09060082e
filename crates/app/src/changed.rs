//! `--changed`: cases of which nothing has changed keep the result of an earlier run. What makes two
//! cases the same is the harness's to say; here files and reports are found.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::anyhow;
use serde_json::json;

use crate::error::AppError;
use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_harness::event::RunHeader;
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::cache_key::CacheScope;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::identity::{self, IdentityError};
use selftest_reports::RunArchive;
use selftest_reports::former::ReusedResults;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

const UNDECLARED: &str = "note: --changed skips nothing: it is unknown whether the system under test \
                          has changed\nhint: name what it is made of in `sut.identity.files`, or set \
                          `sut.identity.version`\n";

/// Returns the digest of the declared identity of the system under test; `None` without one.
pub(crate) fn sut_digest(
    project: &Project,
    resolved: &ResolvedConfig,
) -> Result<Option<String>, AppError> {
    let Some(declared) = &resolved.config.sut.identity else { return Ok(None) };
    identity::digest(declared, &project.folder).map_err(|fault| unreadable(&fault))
}

fn unreadable(fault: &IdentityError) -> AppError {
    AppError::usage(anyhow!("sut.identity.files: {fault}"))
        .hint(Some("name files and folders of the project, or set `sut.identity.version`"))
}

/// Sets the cache key of each case, by which later runs find its result.
pub(crate) fn name_cases(
    resolved: &ResolvedConfig,
    header: &RunHeader,
    (digest, weights): (&str, Option<&str>),
    plan: &mut [PlannedCase],
) -> Result<(), AppError> {
    let config = &resolved.config;
    let mut sut = json!(config.sut);
    // The identity is in the digest already, wherever it is declared.
    sut["identity"].take();
    let scope = CacheScope {
        header,
        judge: json!({ "judge": config.judge, "context_tokens": config.models.context_tokens }),
        sut: json!({ "sut": sut, "context_tokens": config.models.context_tokens }),
        sut_digest: digest,
        sut_weights: weights,
    };
    for planned in plan {
        let id = &planned.scenario.id;
        planned.cache_key = scope.key(planned).map_err(|fault| {
            AppError::usage(anyhow!("the files of case {}: {fault}", terminal(id, 100)))
        })?;
    }
    Ok(())
}

/// Reuses earlier results of unchanged cases and reports how many.
pub(crate) fn keep_unchanged(
    project: &Project,
    resolved: &ResolvedConfig,
    plan: &mut [PlannedCase],
) {
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    for key in plan.iter().filter_map(|planned| planned.cache_key.as_ref()) {
        // Repeats of a case have the same key, and each needs a trial of its own.
        *wanted.entry(key.clone()).or_default() += 1;
    }
    let nameless = plan.iter().filter(|planned| planned.cache_key.is_none()).count();
    let archive = RunArchive::new(project.report_folders(resolved).0);
    let ReusedResults { mut trials, faults } = ReusedResults::find(&archive, &wanted);
    for fault in faults {
        project.notify(&format!("note: --changed skips {}\n", terminal(&fault, 400)));
    }
    let mut kept = 0_u64;
    for planned in plan.iter_mut() {
        let former = planned.cache_key.as_ref().and_then(|key| trials.get_mut(key));
        let Some(former) = former.filter(|former| !former.is_empty()) else { continue };
        let result = CaseResult {
            index: planned.index,
            scenario: planned.scenario.clone(),
            repeat: planned.repeat,
            ..former.remove(0)
        };
        planned.reused_result = Some(Arc::new(result));
        kept += 1;
    }
    let mut words = format!("{kept} of {} unchanged", plural(plan.len() as u64, "case"));
    if nameless > 0 {
        let count = plural(nameless as u64, "case");
        words.push_str(&format!("; {count} with commands, which may read anything, always run"));
    }
    project.notify(&format!("note: {words}\n"));
}

/// Reports that nothing can be skipped, and why.
pub(crate) fn notify_undeclared(project: &Project) {
    project.notify(UNDECLARED);
}
