//! Prompt templates from the project's `prompts/` folder, or else those built into the binary.
//!
//! The line `<!-- case -->` separates a template's two parts: the constant part (the system
//! message, which can be cached as a prefix) and the case (the user message).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use std::sync::OnceLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, merge_maps};
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use crate::PromptMessage;
use selftest_text::digest;

/// Separator between the constant part and the case.
pub const CASE_MARKER: &str = "<!-- case -->";

/// Maximum number of template engine steps; bounds loops in a user's template.
const FUEL: u64 = 200_000;
/// Maximum size in bytes of a template file.
const MAX_FILE: u64 = 256 * 1024;

/// Templates built into a binary: path under `prompts/` and text.
pub type BuiltInTemplates = &'static [(&'static str, &'static str)];

/// An error in reading or rendering a template.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The file cannot be read.
    #[error("cannot read the prompt template {}: {why}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// The template is invalid.
    #[error("prompt template {name}: {why}")]
    Template {
        /// Path under `prompts/`.
        name: String,
        /// Message of the template engine, with the line number.
        why: String,
    },
}

/// A rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPrompt {
    /// Part that is the same for all calls.
    pub system: String,
    /// Part specific to the case.
    pub user: String,
}

impl From<RenderedPrompt> for Vec<PromptMessage> {
    fn from(prompt: RenderedPrompt) -> Self {
        vec![PromptMessage::system(prompt.system), PromptMessage::user(prompt.user)]
    }
}

/// Values that a template has in every case, with its cached system part, which is reused if it
/// depends on nothing else.
pub struct PromptPrefix {
    values: Value,
    rendered: OnceLock<Option<String>>,
}

impl PromptPrefix {
    /// Creates a prefix from a map of values.
    pub fn new(values: &impl Serialize) -> Self {
        Self { values: Value::from(Serde(values)), rendered: OnceLock::new() }
    }
}

/// The templates of a run, each read once.
pub struct PromptLibrary {
    folder: PathBuf,
    built_in: BuiltInTemplates,
    environment: Environment<'static>,
    digests: BTreeMap<String, String>,
}

impl PromptLibrary {
    /// Creates a library of the project's `prompts/` folder with the built-in templates as a
    /// fallback.
    pub fn new(project: &Path, built_in: BuiltInTemplates) -> Self {
        let mut environment = Environment::new();
        // A misspelled variable is an error, not an empty text.
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // A template of the project is foreign input like any other: an endless loop in it must end
        // in an error.
        environment.set_fuel(Some(FUEL));
        // Lines that contain only a tag leave no blank line in the prompt.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("the delimiters are the default ones"));
        Self { folder: project.join("prompts"), built_in, environment, digests: BTreeMap::new() }
    }

    /// Loads a template. Returns `false` if neither the project nor the binary has it. `name` is a
    /// path under `prompts/` and must not come from untrusted text.
    pub fn load(&mut self, name: &str) -> Result<bool, PromptError> {
        if self.digests.contains_key(name) {
            return Ok(true);
        }
        let Some(text) = self.read(name)? else { return Ok(false) };
        let template_error = |why: String| PromptError::Template { name: name.to_owned(), why };
        let (system, user) = text.split_once(CASE_MARKER).ok_or_else(|| {
            template_error(format!("the line `{CASE_MARKER}` before the case is missing"))
        })?;
        for (part, text) in [("system", system), ("user", user)] {
            self.environment
                .add_template_owned(format!("{name}#{part}"), text.trim().to_owned())
                .map_err(|error| template_error(describe_error(&error)))?;
        }
        self.digests.insert(name.to_owned(), digest::sha256_hex(text.as_bytes()));
        Ok(true)
    }

    fn read(&self, name: &str) -> Result<Option<String>, PromptError> {
        let path = self.folder.join(name);
        let unreadable = |why: String| PromptError::Unreadable { path: path.clone(), why };
        match selftest_text::file::read_bounded_text(&path, MAX_FILE) {
            Ok(text) => Ok(Some(text)),
            // Only a missing file falls back to the built-in template.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let built_in = self.built_in.iter().find(|(built_in, _)| *built_in == name);
                Ok(built_in.map(|(_, text)| (*text).to_owned()))
            }
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Renders a loaded template.
    pub fn render(
        &self,
        name: &str,
        values: &impl Serialize,
    ) -> Result<RenderedPrompt, PromptError> {
        let values = Value::from(Serde(values));
        let (system, user) =
            (self.render_part(name, "system", &values)?, self.render_part(name, "user", &values)?);
        Ok(RenderedPrompt { system, user })
    }

    /// Renders a loaded template with the prefix's values and those of this case.
    pub fn render_case(
        &self,
        name: &str,
        prefix: &PromptPrefix,
        values: &impl Serialize,
    ) -> Result<RenderedPrompt, PromptError> {
        let values = merge_maps([prefix.values.clone(), Value::from(Serde(values))]);
        let user = self.render_part(name, "user", &values)?;
        if let Some(Some(system)) = prefix.rendered.get() {
            return Ok(RenderedPrompt { system: system.clone(), user });
        }
        // The system part must be byte-identical for all cases, or servers cannot reuse its
        // key-value cache. A template that refers to the case there still works, only slower.
        let system = self.render_part(name, "system", &values)?;
        prefix.rendered.get_or_init(|| {
            // If the system part uses values of the case, this render fails or differs, and nothing
            // is cached.
            let alone = self.render_part(name, "system", &prefix.values).ok();
            alone.filter(|alone| *alone == system)
        });
        Ok(RenderedPrompt { system, user })
    }

    fn render_part(&self, name: &str, part: &str, values: &Value) -> Result<String, PromptError> {
        let template = self.environment.get_template(&format!("{name}#{part}"));
        let rendered = template.and_then(|template| template.render(values));
        rendered.map_err(|error| PromptError::Template {
            name: name.to_owned(),
            why: describe_error(&error),
        })
    }

    /// Returns the SHA-256 of every loaded template by path under `prompts/`.
    pub fn digests(&self) -> &BTreeMap<String, String> {
        &self.digests
    }
}

fn describe_error(error: &minijinja::Error) -> String {
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}{line}", error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BUILT_IN: BuiltInTemplates =
        &[("sut/read_info.md", "built in\n<!-- case -->\n{{ wanted }}")];

    #[test]
    fn built_in_templates_stand_behind_those_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let mut library = PromptLibrary::new(folder.path(), BUILT_IN);
        assert!(library.load("sut/read_info.md").unwrap());
        assert_eq!(library.digests().len(), 1);
        assert!(!library.load("generator/absent.md").unwrap());
    }

    #[test]
    fn the_first_part_is_rendered_once_where_no_case_changes_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("prompts/sut")).unwrap();
        let path = folder.path().join("prompts/sut/read_info.md");
        for (system, of_second) in [
            ("{{ rubric }}", "r"),
            ("{{ rubric }} {{ case }}", "r 2"),
            ("{% if case is defined %}{{ case }}{% endif %}", "2"),
        ] {
            std::fs::write(
                &path,
                format!("{system}\n<!-- case -->\n{{{{ rubric }}}}{{{{ case }}}}"),
            )
            .unwrap();
            let mut library = PromptLibrary::new(folder.path(), BUILT_IN);
            library.load("sut/read_info.md").unwrap();
            let prefix = PromptPrefix::new(&json!({ "rubric": "r" }));
            let of = |case: u8| {
                library.render_case("sut/read_info.md", &prefix, &json!({ "case": case })).unwrap()
            };
            assert_eq!(of(1).user, "r1");
            assert_eq!(of(2), RenderedPrompt { system: of_second.into(), user: "r2".into() });
            let is_kept = prefix.rendered.get().unwrap().is_some();
            assert_eq!(is_kept, system == "{{ rubric }}");
        }
    }

    #[test]
    fn the_project_comes_first_and_faults_have_a_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("prompts/sut")).unwrap();
        let path = folder.path().join("prompts/sut/read_info.md");
        std::fs::write(&path, "fixed\n<!-- case -->\n{{ wanted }}").unwrap();
        let mut library = PromptLibrary::new(folder.path(), BUILT_IN);
        assert!(library.load("sut/read_info.md").unwrap());
        let rendered = library.render("sut/read_info.md", &json!({"wanted": "x < y"})).unwrap();
        assert_eq!(rendered, RenderedPrompt { system: "fixed".into(), user: "x < y".into() });
        let error = library.render("sut/read_info.md", &json!({})).unwrap_err().to_string();
        assert!(error.contains("sut/read_info.md") && error.contains("line 1"), "{error}");
        std::fs::write(&path, "no marker").unwrap();
        let error =
            PromptLibrary::new(folder.path(), BUILT_IN).load("sut/read_info.md").unwrap_err();
        assert!(error.to_string().contains(CASE_MARKER));
    }
}
