//! From what is wrong in a document to the place in its file.

use super::diagnostics::{Diagnostic, Fault, Target};
use super::yaml::{Document, DuplicateKey, Place, Span, SyntaxError};

/// A text that cannot be read at all.
pub(super) fn unreadable(error: SyntaxError) -> Diagnostic {
    Diagnostic {
        hint: error.hint.map(ToOwned::to_owned),
        ..Diagnostic::at(Target::File(error.span), error.message)
    }
}

/// A fault with its place in the file.
pub(super) fn locate(file: Option<&Document>, fault: Fault) -> Diagnostic {
    let place = |pointer: &str| span(file?, pointer, fault.at_key);
    let target = Target::File(place(&fault.pointer));
    let first = fault.first.as_deref().and_then(place);
    let Fault { message, label, hint, .. } = fault;
    Diagnostic { target, message, label, hint, first }
}

/// Every key that a mapping of the file has twice.
pub(super) fn duplicate_keys(file: &Document) -> Vec<Diagnostic> {
    let diagnostic = |duplicate: &DuplicateKey| Diagnostic {
        label: "this key is taken".to_owned(),
        hint: Some("remove one of the two".to_owned()),
        first: Some(duplicate.first.clone()),
        ..Diagnostic::at(
            Target::File(Some(duplicate.second.clone())),
            format!("duplicate key `{}`", selftest_text::one_line(&duplicate.key, 60)),
        )
    };
    file.duplicates.iter().map(diagnostic).collect()
}

/// The place of a pointer in the file, or of the nearest mapping around it.
fn span(file: &Document, pointer: &str, at_key: bool) -> Option<Span> {
    if let Some(Place { key, value }) = file.places.get(pointer) {
        // A value that is not there has no text to point at.
        let use_key = at_key || value.is_empty();
        return Some(if use_key { key.clone().unwrap_or(value.clone()) } else { value.clone() });
    }
    let (parent, _) = pointer.rsplit_once('/')?;
    span(file, parent, true)
}
