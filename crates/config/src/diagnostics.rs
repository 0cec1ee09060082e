//! Errors of a configuration with their locations in the file, rendered like compiler errors.

use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{ByteSpan, DuplicateKey, NodeLocation, SyntaxError, YamlDocument};

/// A mistake at a place of the document, independent of the layer that the value came from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConfigFault {
    /// JSON Pointer of the value.
    pub(super) pointer: String,
    /// True if the key is wrong, not its value.
    pub(super) is_at_key: bool,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) hint: Option<String>,
    /// JSON Pointer of the value it conflicts with.
    pub(super) first: Option<String>,
}

/// Location of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiagnosticTarget {
    /// Byte range in the file; `None` means the whole file.
    File(Option<Range<usize>>),
    /// An environment variable.
    Variable(String),
    /// A command-line flag.
    Flag(String),
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Location of the error.
    pub target: DiagnosticTarget,
    /// Error message in lower case without a period.
    pub message: String,
    /// The value found, or the expected one.
    pub label: String,
    /// Suggested fix.
    pub hint: Option<String>,
    /// Location of the first occurrence, for duplicates.
    pub first: Option<Range<usize>>,
}

/// All errors of a configuration, ordered by file, then environment, then flags.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// Path of the file, if there is one.
    pub path: Option<PathBuf>,
    /// Text of the file.
    pub text: String,
    /// The errors; at least one.
    pub diagnostics: Vec<Diagnostic>,
}

/// Maximum number of diagnostics printed, since a broken file can have thousands.
const MAX_SHOWN: usize = 50;

impl ConfigErrors {
    pub(super) fn new(
        path: Option<PathBuf>,
        text: String,
        mut diagnostics: Vec<Diagnostic>,
    ) -> Self {
        diagnostics.sort_by(|a, b| a.order().cmp(&b.order()));
        Self { path, text, diagnostics }
    }

    /// Creates one error about the whole file.
    pub(super) fn of_file(path: PathBuf, message: String, hint: Option<&str>) -> Self {
        let diagnostic = Diagnostic {
            hint: hint.map(ToOwned::to_owned),
            ..Diagnostic::at(DiagnosticTarget::File(None), message)
        };
        Self { path: Some(path), text: String::new(), diagnostics: vec![diagnostic] }
    }

    /// Renders the errors with the lines they refer to, ending with a line break.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let path = self.path.as_ref().map(|path| path.display().to_string());
        let mut text = String::new();
        for diagnostic in self.diagnostics.iter().take(MAX_SHOWN) {
            let report = [diagnostic.group(path.as_deref(), &self.text)];
            text += renderer.render(&report).trim_end();
            text += "\n\n";
        }
        let (count, file) = (self.diagnostics.len(), path.as_deref().unwrap_or("configuration"));
        if count > MAX_SHOWN {
            let _ = write!(text, "… and {} more\n\n", count - MAX_SHOWN);
        }
        let plural = if count == 1 { "error" } else { "errors" };
        let _ = writeln!(text, "{file}: {count} {plural}");
        text
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl fmt::Debug for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Excludes the text of the file, which may be long.
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigErrors {}

impl Diagnostic {
    pub(super) fn at(target: DiagnosticTarget, message: String) -> Self {
        Self { target, message, label: String::new(), hint: None, first: None }
    }

    fn order(&self) -> (u8, usize, &str, &str) {
        match &self.target {
            DiagnosticTarget::File(None) => (0, 0, "", &self.message),
            DiagnosticTarget::File(Some(span)) => (0, span.start, "", &self.message),
            DiagnosticTarget::Variable(name) => (1, 0, name, &self.message),
            DiagnosticTarget::Flag(name) => (2, 0, name, &self.message),
        }
    }

    fn group<'a>(&'a self, path: Option<&'a str>, text: &'a str) -> Group<'a> {
        let group = Level::ERROR.primary_title(self.message.as_str());
        let group = match &self.target {
            DiagnosticTarget::File(Some(span)) => {
                let mut snippet = Snippet::source(text).path(path).annotation(
                    AnnotationKind::Primary.span(one_line(span, text)).label(self.label.as_str()),
                );
                if let Some(first) = &self.first {
                    let first = AnnotationKind::Context.span(one_line(first, text));
                    snippet = snippet.annotation(first.label("first here"));
                }
                group.element(snippet)
            }
            DiagnosticTarget::File(None) => {
                self.beside(group.element(Origin::path(path.unwrap_or("defaults"))))
            }
            DiagnosticTarget::Variable(name) => {
                self.beside(group.element(Origin::path(format!("environment variable {name}"))))
            }
            DiagnosticTarget::Flag(name) => {
                self.beside(group.element(Origin::path(format!("flag {name}"))))
            }
        };
        match &self.hint {
            Some(hint) => group.element(Level::HELP.with_name("hint").message(hint.as_str())),
            None => group,
        }
    }

    /// Adds the label as a note if there is no source line to attach it to.
    fn beside<'a>(&'a self, group: Group<'a>) -> Group<'a> {
        if self.label.is_empty() {
            return group;
        }
        group.element(Level::NOTE.message(self.label.as_str()))
    }
}

/// Cuts a span to its first line, so that an invalid section does not fill the screen.
fn one_line(span: &Range<usize>, text: &str) -> Range<usize> {
    let covered = text.get(span.clone()).unwrap_or_default();
    span.start..span.start + covered.lines().next().unwrap_or_default().len()
}

/// Converts a syntax error to a diagnostic.
pub(super) fn syntax_diagnostic(error: SyntaxError) -> Diagnostic {
    Diagnostic {
        hint: error.hint.map(ToOwned::to_owned),
        ..Diagnostic::at(DiagnosticTarget::File(error.span), error.message)
    }
}

/// Converts a fault to a diagnostic with its location in the file.
pub(super) fn locate(file: Option<&YamlDocument>, fault: ConfigFault) -> Diagnostic {
    let place = |pointer: &str| span(file?, pointer, fault.is_at_key);
    let target = DiagnosticTarget::File(place(&fault.pointer));
    let first = fault.first.as_deref().and_then(place);
    let ConfigFault { message, label, hint, .. } = fault;
    Diagnostic { target, message, label, hint, first }
}

/// Returns a diagnostic for every duplicate key in the file.
pub(super) fn duplicate_keys(file: &YamlDocument) -> Vec<Diagnostic> {
    let diagnostic = |duplicate: &DuplicateKey| Diagnostic {
        label: "this key is taken".to_owned(),
        hint: Some("remove one of the two".to_owned()),
        first: Some(duplicate.first.clone()),
        ..Diagnostic::at(
            DiagnosticTarget::File(Some(duplicate.second.clone())),
            format!("duplicate key `{}`", selftest_text::one_line(&duplicate.key, 60)),
        )
    };
    file.duplicates.iter().map(diagnostic).collect()
}

/// Returns the location of a pointer in the file, or of the nearest enclosing mapping.
fn span(file: &YamlDocument, pointer: &str, at_key: bool) -> Option<ByteSpan> {
    if let Some(NodeLocation { key, value }) = file.places.get(pointer) {
        // An empty value has no text to point at.
        let use_key = at_key || value.is_empty();
        return Some(if use_key { key.clone().unwrap_or(value.clone()) } else { value.clone() });
    }
    let (parent, _) = pointer.rsplit_once('/')?;
    // At its key: the mapping itself may cover most of the file.
    span(file, parent, true)
}
