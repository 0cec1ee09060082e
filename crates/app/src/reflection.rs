//! A grader of reflections, made from the configuration.

use std::path::Path;

use anyhow::anyhow;
use selftest_config::ResolvedConfig;
use selftest_grading::grade::reflection::ReflectionRules;
use selftest_service::grader::reflection::ReflectionGrader;
use selftest_store::Store;
use selftest_text::redact::Redactor;

use crate::error::AppError;
use crate::project::Project;

/// Most bytes of a schema file.
const MAX_SCHEMA_BYTES: u64 = 1024 * 1024;

/// Opens a grader of reflections by the criteria of the configuration, with the schemas that it names.
pub fn reflection_grader(
    project: &Project,
    resolved: &ResolvedConfig,
    store: Store,
) -> Result<ReflectionGrader, AppError> {
    let settings = resolved.config.grade.reflection.clone();
    let read = |path: &Path| {
        let shown = path.display();
        let text = selftest_text::file::read_bounded_text(&project.path(path), MAX_SCHEMA_BYTES)
            .map_err(|why| format!("names {shown}, which cannot be read: {why}"))?;
        serde_json::from_str(&text).map_err(|error| format!("names {shown}: not JSON: {error}"))
    };
    let rules = ReflectionRules::new(&settings, read).map_err(|faults| {
        let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
        AppError::usage(anyhow!(words.join("; ")))
    })?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    Ok(ReflectionGrader::new(store, settings, rules, redactor))
}
