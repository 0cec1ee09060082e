//! Brings the beginning of a sentence into one form: "The agent should have created", "Must create" and
//! "Created" say the same as "creates".

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::skeleton::regex;

/// Verbs with their forms where these are irregular: base, third person, past, gerund.
const IRREGULAR: [[&str; 4]; 14] = [
    ["write", "writes", "wrote", "writing"],
    ["run", "runs", "ran", "running"],
    ["read", "reads", "read", "reading"],
    ["have", "has", "had", "having"],
    ["show", "shows", "showed", "showing"],
    ["say", "says", "said", "saying"],
    ["begin", "begins", "began", "beginning"],
    ["put", "puts", "put", "putting"],
    ["set", "sets", "set", "setting"],
    ["give", "gives", "gave", "giving"],
    ["leave", "leaves", "left", "leaving"],
    ["modify", "modifies", "modified", "modifying"],
    ["trigger", "triggers", "triggered", "triggering"],
    ["make", "makes", "made", "making"],
];
/// Verbs with regular forms.
const REGULAR: [&str; 46] = [
    "mention",
    "include",
    "contain",
    "reference",
    "cite",
    "name",
    "list",
    "state",
    "report",
    "print",
    "output",
    "display",
    "return",
    "quote",
    "create",
    "generate",
    "produce",
    "save",
    "change",
    "edit",
    "update",
    "touch",
    "alter",
    "delete",
    "remove",
    "open",
    "load",
    "activate",
    "invoke",
    "call",
    "use",
    "execute",
    "ask",
    "start",
    "end",
    "select",
    "consult",
    "append",
    "add",
    "exceed",
    "view",
    "export",
    "respond",
    "appear",
    "exist",
    "overwrite",
];

/// Each form of a verb with its base and its third person.
static VERBS: LazyLock<HashMap<String, (String, String)>> = LazyLock::new(|| {
    let mut verbs = HashMap::new();
    let mut add = |forms: [String; 4]| {
        let known = (forms[0].clone(), forms[1].clone());
        for form in forms {
            verbs.insert(form, known.clone());
        }
    };
    for forms in IRREGULAR {
        add(forms.map(ToOwned::to_owned));
    }
    for base in REGULAR {
        let stem = base.strip_suffix('e');
        let third = if base.ends_with("ch") { format!("{base}es") } else { format!("{base}s") };
        let past = stem.map_or_else(|| format!("{base}ed"), |stem| format!("{stem}ed"));
        let gerund = stem.map_or_else(|| format!("{base}ing"), |stem| format!("{stem}ing"));
        add([base.to_owned(), third, past, gerund]);
    }
    verbs.insert("overwrote".to_owned(), ("overwrite".to_owned(), "overwrites".to_owned()));
    verbs
});

/// What the answer is called, and what may also be a file.
static SUBJECT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:the\s)?(?:(?:agent|assistant|model|skill)(?:'s|’s)\s)?(?:
        (?P<answer>(?:final\s|generated\s|chat\s)?(?:answer|response|reply|response\stext)|(?:final|chat)\smessage)
        |(?:final\s|generated\s)?(?P<output>output(?:\stext)?))\s(?P<rest>.+)$",
    )
});
/// The agent as a subject, which may be left out.
static AGENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?:the |an )?(?:(?:ai )?agent|assistant|model|claude|codex|llm) (?P<rest>[a-z].+)$")
});

/// Returns a sentence with its first verb in the present: "the answer mentions …", "creates …", "does
/// not create …". A sentence with another beginning is returned as it is.
pub(super) fn in_one_form(text: &str) -> String {
    let (subject, rest) = match SUBJECT.captures(text) {
        Some(found) => {
            let subject =
                if found.name("answer").is_some() { "the answer " } else { "the output " };
            (subject, found["rest"].to_owned())
        }
        None => {
            ("", AGENT.captures(text).map_or_else(|| text.to_owned(), |it| it["rest"].to_owned()))
        }
    };
    let rest = predicate(&rest).unwrap_or(rest);
    format!("{subject}{rest}")
}

/// Returns what is said of the subject, with its verb in the present.
fn predicate(text: &str) -> Option<String> {
    let mut words = text.split(' ').peekable();
    let (mut is_negative, mut is_gerund) = (false, false);
    loop {
        match *words.peek()? {
            "also" | "explicitly" | "actually" | "successfully" | "ever" => {}
            "should" | "must" | "will" | "shall" | "does" | "did" | "do" => {
                words.next();
                if words.peek() == Some(&"not") {
                    if is_negative {
                        return None;
                    }
                    is_negative = true;
                } else {
                    continue;
                }
            }
            "needs" | "has" if text.starts_with("needs to ") || text.starts_with("has to ") => {
                words.next();
            }
            "doesn't" | "didn't" | "don't" | "mustn't" | "shouldn't" | "won't" | "never"
            | "cannot" => {
                if is_negative {
                    return None;
                }
                is_negative = true;
            }
            "avoids" | "without" | "avoid" => {
                // "Should not avoid mentioning it"
                if is_negative {
                    return None;
                }
                is_negative = true;
                is_gerund = true;
            }
            _ => break,
        }
        words.next();
    }
    let verb = words.next()?;
    let rest = words.collect::<Vec<_>>().join(" ");
    if verb == "be" && !is_gerund {
        let verb = if is_negative { "is not" } else { "is" };
        return Some(format!("{verb} {rest}"));
    }
    let known = VERBS.get(verb);
    if is_gerund && (known.is_none() || !verb.ends_with("ing")) {
        // "Avoids the word": what is avoided is no deed.
        return None;
    }
    let (base, third) = known?;
    let said = if is_negative { format!("does not {base}") } else { third.clone() };
    Some(if rest.is_empty() { said } else { format!("{said} {rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_that_says_the_same_has_one_form() {
        for (text, wanted) in [
            ("the agent should create ⟦0⟧", "creates ⟦0⟧"),
            ("created ⟦0⟧", "creates ⟦0⟧"),
            ("the response must explicitly mention ⟦0⟧", "the answer mentions ⟦0⟧"),
            ("agent did not modify ⟦0⟧", "does not modify ⟦0⟧"),
            ("output shouldn't include ⟦0⟧", "the output does not include ⟦0⟧"),
            ("avoids mentioning ⟦0⟧", "does not mention ⟦0⟧"),
            ("the answer should be valid json", "the answer is valid json"),
            ("avoids the word ⟦0⟧", "avoids the word ⟦0⟧"),
            ("⟦0⟧ was created", "⟦0⟧ was created"),
            ("the reply has exactly 2 lines", "the answer has exactly 2 lines"),
            ("read ⟦0⟧", "reads ⟦0⟧"),
            ("the final message mentions ⟦0⟧", "the answer mentions ⟦0⟧"),
            ("the message starts with ⟦0⟧", "the message starts with ⟦0⟧"),
            ("should not avoid mentioning ⟦0⟧", "should not avoid mentioning ⟦0⟧"),
        ] {
            assert_eq!(in_one_form(text), wanted, "{text}");
        }
    }
}
