//! Detects checks of one case that cannot all hold.

use super::{Check, CheckKind, CountBounds};
use selftest_text::escape::terminal;

/// Returns one line per pair of contradictory checks. Looks into `all` and `not`; alternatives in
/// `any` may well exclude each other.
pub fn warnings(checks: &[Check]) -> Vec<String> {
    let mut demands = Vec::new();
    for check in checks {
        collect(check, true, &mut demands);
    }
    let mut found = Vec::new();
    for (at, one) in demands.iter().enumerate() {
        for other in &demands[at + 1..] {
            if contradict(one, other) {
                found.push(format!("{} and {} cannot both hold", shown(one), shown(other)));
            }
        }
    }
    found
}

/// A kind of check, and whether it must hold or must not.
type WantedKind<'a> = (&'a CheckKind, bool);

fn collect<'a>(check: &'a Check, wanted: bool, demands: &mut Vec<WantedKind<'a>>) {
    match &check.kind {
        CheckKind::All(inner) if wanted => {
            for check in inner {
                collect(check, true, demands);
            }
        }
        // By De Morgan: `not any` means that each is negated.
        CheckKind::Any(inner) if !wanted => {
            for check in inner {
                collect(check, false, demands);
            }
        }
        CheckKind::Not(inner) => collect(inner, !wanted, demands),
        kind => demands.push((kind, wanted)),
    }
}

fn contradict(&(one, wanted): &WantedKind<'_>, &(other, other_wanted): &WantedKind<'_>) -> bool {
    use CheckKind as K;
    if one == other {
        return wanted != other_wanted;
    }
    let both = wanted && other_wanted;
    match (one, other) {
        (K::Contains(a), K::NotContains(b)) | (K::NotContains(b), K::Contains(a)) => {
            // A text that contains the longer string also contains the shorter one.
            (both && a.as_str().contains(b.as_str())) || (!wanted && !other_wanted && a == b)
        }
        (K::Regex(a), K::NotRegex(b)) | (K::NotRegex(b), K::Regex(a)) => {
            a == b && wanted == other_wanted
        }
        (K::ToolCalled(a), K::ToolNotCalled(b)) | (K::ToolNotCalled(b), K::ToolCalled(a)) => {
            both && a.name == *b && a.bounds.limits().0 > Some(0)
        }
        (K::ToolsInOrder(a), K::ToolNotCalled(b)) | (K::ToolNotCalled(b), K::ToolsInOrder(a)) => {
            both && a.names().contains(b)
        }
        (K::Equals(a), K::Equals(b)) => both && a.trim() != b.trim(),
        (K::Equals(a), K::Contains(b)) | (K::Contains(b), K::Equals(a)) => {
            both && !a.contains(b.as_str())
        }
        (K::Equals(a), K::NotContains(b)) | (K::NotContains(b), K::Equals(a)) => {
            both && a.trim().contains(b.as_str())
        }
        // Equal checks were handled above, so these are different statuses.
        (K::Status(_), K::Status(_)) => both,
        (K::Lines(a), K::Lines(b))
        | (K::Items(a), K::Items(b))
        | (K::Words(a), K::Words(b))
        | (K::Questions(a), K::Questions(b))
        | (K::Characters(a), K::Characters(b))
        | (K::Turns(a), K::Turns(b))
        | (K::Tokens(a), K::Tokens(b)) => both && CountBounds::is_disjoint(*a, *b),
        (K::Occurrences(a), K::Occurrences(b)) => {
            both && a.of == b.of && CountBounds::is_disjoint(a.bounds, b.bounds)
        }
        _ => both && files_contradict(one, other),
    }
}

/// Returns true if the checks require different outcomes for the same file.
fn files_contradict(one: &CheckKind, other: &CheckKind) -> bool {
    let fate = |kind: &CheckKind| match kind {
        CheckKind::FileCreated(path) => Some((path.clone(), "created")),
        CheckKind::FileChanged(path) => Some((path.clone(), "changed")),
        CheckKind::FileDeleted(path) => Some((path.clone(), "deleted")),
        CheckKind::FileUnchanged(path) => Some((path.clone(), "unchanged")),
        CheckKind::FileExists(path) => Some((path.clone(), "exists")),
        CheckKind::FileContains(wanted) => Some((wanted.path.clone(), "exists")),
        _ => None,
    };
    let (Some((path, one)), Some((other_path, other))) = (fate(one), fate(other)) else {
        return false;
    };
    let exists = |fate| fate == "exists";
    let gone = |fate| fate == "deleted";
    path == other_path
        && if exists(one) || exists(other) { gone(one) || gone(other) } else { one != other }
}

fn shown(&(kind, wanted): &WantedKind<'_>) -> String {
    let not = if wanted { "" } else { "not " };
    let value = terminal(&kind.value().to_string(), 80).replace('`', "'");
    format!("`{not}{}: {value}`", kind.name())
}
