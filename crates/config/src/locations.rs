//! Maps faults in a document to their locations in the file.

use super::diagnostics::{ConfigFault, Diagnostic, DiagnosticTarget};
use super::yaml::{ByteSpan, DuplicateKey, NodeLocation, SyntaxError, YamlDocument};

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
    span(file, parent, true)
}
