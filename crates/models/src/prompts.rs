//! Prompt templates: the project's own `prompts/` first, else the ones in this binary.
//!
//! A template has two parts, separated by the line `<!-- case -->`: what stays the same between
//! calls (the system message, which a model's prefix cache keeps) and the case (the user message).
//! Knows nothing of what the prompts say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use std::sync::OnceLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, merge_maps};
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use crate::Message;
use selftest_text::digest;

/// The line between the part that stays the same and the case.
pub const CASE_MARKER: &str = "<!-- case -->";

/// Steps that a template may take; bounds loops in a user's template.
const FUEL: u64 = 200_000;
/// Most bytes of a template file.
const MAX_FILE: u64 = 256 * 1024;

/// Templates that are part of a binary: path under `prompts/` and text.
pub type BuiltIn = &'static [(&'static str, &'static str)];

/// A template that cannot be read or rendered.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The file cannot be read.
    #[error("cannot read the prompt template {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The template is wrong.
    #[error("prompt template {name}: {why}")]
    Template {
        /// Path under `prompts/`.
        name: String,
        /// The engine's words with the line.
        why: String,
    },
}

/// A rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The part that stays the same between calls.
    pub system: String,
    /// The case.
    pub user: String,
}

impl From<Rendered> for Vec<Message> {
    fn from(prompt: Rendered) -> Self {
        vec![Message::system(prompt.system), Message::user(prompt.user)]
    }
}

/// Values that a template of a library has in every case, and what its first part says where it has no
/// others: it is rendered once.
pub struct Prefix {
    values: Value,
    rendered: OnceLock<Option<String>>,
}

impl Prefix {
    /// From a map of values.
    pub fn new(values: &impl Serialize) -> Self {
        Self { values: Value::from(Serde(values)), rendered: OnceLock::new() }
    }
}

/// The templates of a run, each read once.
pub struct PromptLibrary {
    folder: PathBuf,
    built_in: BuiltIn,
    environment: Environment<'static>,
    digests: BTreeMap<String, String>,
}

impl PromptLibrary {
    /// Templates of the project's `prompts/` folder, else the built-in ones.
    pub fn new(project: &Path, built_in: BuiltIn) -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        // Lines that hold only a tag leave no trace in the prompt.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("the delimiters are the default ones"));
        Self { folder: project.join("prompts"), built_in, environment, digests: BTreeMap::new() }
    }

    /// Reads a template; `false` when neither the project nor this binary has it. `name` is a
    /// path under `prompts/` made by the caller, never from foreign text.
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
                .map_err(|error| template_error(describe(&error)))?;
        }
        self.digests.insert(name.to_owned(), digest::of_bytes(text.as_bytes()));
        Ok(true)
    }

    fn read(&self, name: &str) -> Result<Option<String>, PromptError> {
        let path = self.folder.join(name);
        let unreadable = |why: String| PromptError::Unreadable { path: path.clone(), why };
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MAX_FILE => {
                Err(unreadable(format!("it is over {MAX_FILE} bytes")))
            }
            Ok(_) => std::fs::read_to_string(&path)
                .map(Some)
                .map_err(|error| unreadable(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let built_in = self.built_in.iter().find(|(built_in, _)| *built_in == name);
                Ok(built_in.map(|(_, text)| (*text).to_owned()))
            }
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Renders a loaded template.
    pub fn render(&self, name: &str, values: &impl Serialize) -> Result<Rendered, PromptError> {
        let values = Value::from(Serde(values));
        let (system, user) =
            (self.part(name, "system", &values)?, self.part(name, "user", &values)?);
        Ok(Rendered { system, user })
    }

    /// Renders a loaded template with the values that it has in every case and those of this one.
    pub fn render_case(
        &self,
        name: &str,
        prefix: &Prefix,
        values: &impl Serialize,
    ) -> Result<Rendered, PromptError> {
        let values = merge_maps([prefix.values.clone(), Value::from(Serde(values))]);
        let user = self.part(name, "user", &values)?;
        if let Some(Some(system)) = prefix.rendered.get() {
            return Ok(Rendered { system: system.clone(), user });
        }
        let system = self.part(name, "system", &values)?;
        prefix.rendered.get_or_init(|| {
            // Without the values of the case it fails or says something else where it has any.
            let alone = self.part(name, "system", &prefix.values).ok();
            alone.filter(|alone| *alone == system)
        });
        Ok(Rendered { system, user })
    }

    fn part(&self, name: &str, part: &str, values: &Value) -> Result<String, PromptError> {
        let template = self.environment.get_template(&format!("{name}#{part}"));
        let rendered = template.and_then(|template| template.render(values));
        rendered
            .map_err(|error| PromptError::Template { name: name.to_owned(), why: describe(&error) })
    }

    /// SHA-256 of every loaded template by path under `prompts/`.
    pub fn digests(&self) -> &BTreeMap<String, String> {
        &self.digests
    }
}

fn describe(error: &minijinja::Error) -> String {
    let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}{line}", error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BUILT_IN: BuiltIn = &[("sut/read_info.md", "built in\n<!-- case -->\n{{ wanted }}")];

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
            let prefix = Prefix::new(&json!({ "rubric": "r" }));
            let of = |case: u8| {
                library.render_case("sut/read_info.md", &prefix, &json!({ "case": case })).unwrap()
            };
            assert_eq!(of(1).user, "r1");
            assert_eq!(of(2), Rendered { system: of_second.into(), user: "r2".into() });
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
        assert_eq!(rendered, Rendered { system: "fixed".into(), user: "x < y".into() });
        let error = library.render("sut/read_info.md", &json!({})).unwrap_err().to_string();
        assert!(error.contains("sut/read_info.md") && error.contains("line 1"), "{error}");
        std::fs::write(&path, "no marker").unwrap();
        let error =
            PromptLibrary::new(folder.path(), BUILT_IN).load("sut/read_info.md").unwrap_err();
        assert!(error.to_string().contains(CASE_MARKER));
    }
}
