//! The forms of sentences that state a check, and the check that each states.

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet, RegexSetBuilder};
use serde_json::{Value, json};

use super::form_parts::{
    Amount, LINK, TABLE, URL, absent_kind, command, count, created, each_path, heading_pattern,
    in_file, in_file_or_not, is_spoken, json_keys, number, number_pattern, occurrences, of_ending,
    only_changes, path_of, placed, placed_one, quoted, read_path, said, said_chinese, set_to,
    spoken, times, tool, tool_name, with_pieces, written,
};
use super::skeleton::{LiteralForm, SentenceLiteral, SentenceSkeleton, regex};
use crate::check::{self, Check};

/// A sentence form, which matches a whole sentence or not at all.
struct SentenceForm {
    pattern: Regex,
    check: CheckOfForm,
}

/// Builds the value of a check from what a form captured.
type CheckOfForm = fn(&SentenceSkeleton<'_>, &Captures<'_>) -> Option<Value>;

fn form(pattern: &str, check: CheckOfForm) -> SentenceForm {
    SentenceForm { pattern: regex(&format!("^(?:{})$", with_pieces(pattern))), check }
}

/// All forms. Of two that match a sentence the first that can be built is meant.
static FORMS: LazyLock<Vec<SentenceForm>> = LazyLock::new(|| {
    answers().into_iter().chain(files()).chain(deeds()).chain(chinese()).collect()
});

/// Maximum size of the forms together when compiled, and of their lazy DFA cache, in bytes.
const MAX_COMPILED: usize = 64 << 20;

/// Returns all forms at once, since most sentences match none.
fn set_of(pattern: fn(&Regex) -> String) -> RegexSet {
    RegexSetBuilder::new(FORMS.iter().map(|form| pattern(&form.pattern)))
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build()
        .expect("the patterns are constants, and a test compiles them")
}

static ALL_FORMS: LazyLock<RegexSet> = LazyLock::new(|| set_of(|form| form.as_str().to_owned()));
/// The same for sentences without a literal: whatever needs one matches nothing, so the set is small.
static PLAIN_FORMS: LazyLock<RegexSet> =
    LazyLock::new(|| set_of(|form| form.as_str().replace("⟦[0-9]+⟧", "[a&&b]")));

/// Returns the check of the first form that a sentence has and whose literals fit.
pub(super) fn check_of_form(skeleton: &SentenceSkeleton<'_>) -> Option<Check> {
    let forms = if skeleton.literals.is_empty() { &PLAIN_FORMS } else { &ALL_FORMS };
    forms.matches(&skeleton.text).into_iter().find_map(|at| {
        let form = &FORMS[at];
        let found = form.pattern.captures(&skeleton.text)?;
        check::read(&(form.check)(skeleton, &found)?).ok()
    })
}

/// Forms about the text of the answer.
fn answers() -> Vec<SentenceForm> {
    vec![
        // Texts that the answer has or lacks.
        form("<answer>?<has> <noun>(?P<l><L>)<kind>", |s, f| said(s, f, "l", Amount::All)),
        form("<answer>?<has> (?:both |all of )?<noun>(?P<l><and>)<kind>", |s, f| {
            said(s, f, "l", Amount::All)
        }),
        form(
            "<answer>?<has> (?:either |any of |one of |at least one of )?(?:the )?<noun>(?P<l><or>)<kind>",
            |s, f| said(s, f, "l", Amount::Any),
        ),
        form("<answer>?<has> (?:at least )?one of(?: the following)?:? (?P<l><list>)", |s, f| {
            said(s, f, "l", Amount::Any)
        }),
        form("<answer>?<has> all of(?: the following)?:? (?P<l><list>)", |s, f| {
            said(s, f, "l", Amount::All)
        }),
        form(
            "<answer>?<has> at least (?P<num><n>) of(?: the following)?:? (?P<l><list>)",
            |s, f| said(s, f, "l", Amount::AtLeast(number(&f["num"])?)),
        ),
        form("<answer>?does not <have> (?:the )?<noun>(?P<l><L>)<kind>", |s, f| {
            said(s, f, "l", Amount::None)
        }),
        // "Avoids `rm -rf`" is about what is done.
        form("<answer>?avoids (?:using )?(?:the )?<noun>(?P<l><L>)<kind>", |s, f| {
            let names_text = ["word", "phrase", "term"].iter().any(|noun| f[0].contains(noun));
            (f.name("subject").is_some() || names_text).then_some(())?;
            said(s, f, "l", Amount::None)
        }),
        form(
            "<answer>?(?:(?:contains|includes|mentions) neither <noun>(?P<l><L> nor <L>)|does not <have> (?:either )?<noun>(?P<m><or>))<kind>",
            |s, f| said(s, f, if f.name("l").is_some() { "l" } else { "m" }, Amount::None),
        ),
        form(
            "<answer>?(?:contains|includes|uses|mentions) none of(?: these)?(?: the)?(?: banned| forbidden)?(?: words| phrases| terms)?:? (?P<l><list>)",
            |s, f| said(s, f, "l", Amount::None),
        ),
        form(
            "(?P<l><L>|<and>)<kind> (?:is|was|are|were) (?:mentioned|included|shown|stated|(?:present )?in the (?:answer|response|output|reply))|<noun>(?P<m><L>) appears(?: in the (?:answer|response|output|reply))?",
            |s, f| said(s, f, if f.name("l").is_some() { "l" } else { "m" }, Amount::All),
        ),
        form(
            "(?:no |<noun>)(?P<l><L>)<kind> (?:is not|was not|isn't|is never) (?:mentioned|included|shown)|no mention of (?P<o><L>)|<noun>(?P<m><L>) (?:does not|never|must not|should not) appears?(?: in the (?:answer|response|output|reply))?",
            |s, f| {
                let group = ["l", "m", "o"].into_iter().find(|group| f.name(group).is_some())?;
                said(s, f, group, Amount::None)
            },
        ),
        form(
            "<answer>(?:contains|includes) <noun>(?P<l><L>) \\(case[- ]insensitive(?:ly)?\\)",
            |s, f| {
                is_spoken(s, f)?;
                Some(json!({ "regex": format!("(?i){}", regex::escape(&s.one(f, "l")?.text)) }))
            },
        ),
        form(
            "<answer>(?:contains|includes|states|says) the number (?P<num>[0-9][0-9,]*(?:\\.[0-9]+)?)",
            |s, f| {
                is_spoken(s, f)?;
                Some(json!({ "regex": number_pattern(&f["num"]) }))
            },
        ),
        form(
            "<answer>(?:contains|includes|mentions|uses) <noun>(?P<l><L>) (?P<times>(?:exactly |only |at least |at most |no more than )(?:once|twice|<n> times))",
            |s, f| occurrences(s, f, &f["times"]),
        ),
        form("<answer>(?:contains|has) exactly one (?P<l><L>)", |s, f| {
            occurrences(s, f, "exactly once")
        }),
        form(
            "(?:<answer>(?:is exactly|equals)|responds (?:with exactly|exactly with|with only|only with)) <noun>(?P<l><L>)(?: and nothing else)?",
            |s, f| Some(json!({ "equals": spoken(s, f)? })),
        ),
        form("<answer>(?:starts|begins) with <noun>(?P<l><L>)", |s, f| {
            // White space around an answer says nothing.
            Some(json!({"regex": format!("\\A\\s*{}", regex::escape(spoken(s, f)?))}))
        }),
        form("<answer>ends with <noun>(?P<l><L>)", |s, f| {
            Some(json!({"regex": format!("{}\\s*\\z", regex::escape(spoken(s, f)?))}))
        }),
        form(
            "(?:the )?(?P<which>first|last) line (?:of the (?:answer|response|output|reply) )?is (?:exactly )?(?P<l><L>)",
            |s, f| {
                is_spoken(s, f)?;
                let line = regex::escape(&quoted(s, f, "l")?.text);
                Some(json!({"regex": if &f["which"] == "first" {
                    format!("\\A\\s*{line}[ \\t]*(?:\\n|\\z)")
                } else {
                    format!("(?:\\A|\\n)[ \\t]*{line}\\s*\\z")
                }}))
            },
        ),
        // Headings.
        form(
            "<answer>?(?:contains|includes|has|shows) (?:the |a )?(?:section (?P<m><L>)|(?P<l><L>) (?:section|heading))",
            |s, f| {
                let text = quoted(s, f, "l").or_else(|| quoted(s, f, "m"))?;
                is_spoken(s, f)?;
                Some(json!({ "regex": heading_pattern(&text.text) }))
            },
        ),
        form(
            "<answer>?(?:contains|includes|has|shows) (?:the )?(?:following )?(?:sections|headings):? (?P<l><and>|<L>(?:, <L>)+)",
            |s, f| {
                is_spoken(s, f)?;
                let literals = s.captured(f, "l");
                let one = |literal: &&SentenceLiteral| {
                    (literal.form != LiteralForm::Bare)
                        .then(|| json!({"regex": heading_pattern(&literal.text)}))
                };
                Some(json!({"all": literals.iter().map(one).collect::<Option<Vec<_>>>()?}))
            },
        ),
        // Counts.
        form(
            "<answer>(?:is|has|contains|stays|asks) (?P<bound>.+?) (?P<what><unit>)(?: or (?P<after>fewer|less|more))?(?: long| in length| in total)?",
            |s, f| is_spoken(s, f).and_then(|()| count(s, f)),
        ),
        form(
            "(?P<subject>the answer )length is (?P<bound>.+?) (?P<what>words|characters|lines)",
            count,
        ),
        form("<answer>does not (?P<bound>exceed <n>) (?P<what><unit>)", |s, f| {
            is_spoken(s, f).and_then(|()| count(s, f))
        }),
        form(
            "keeps the (?:answer|response|reply) (?:to )?(?P<bound>.+?) (?P<what>words|characters|lines)(?: or (?P<after>fewer|less))?",
            count,
        ),
        form("asks (?P<bound>.+?) (?P<what>questions?)(?: in total)?", count),
        // Formats.
        form(
            "<answer>(?:is (?:a )?valid json(?: object| array)?|(?:parses|can be parsed) as (?:valid )?json)|(?:returns|outputs) valid json",
            |s, f| is_spoken(s, f).map(|()| json!({"json": {}})),
        ),
        form(
            "<answer>is (?:a )?valid json(?: object)? (?:with|containing) (?:a |an |the )?(?:keys? |fields? )?(?P<l><L>|<and>)(?: keys?| fields?)?|(?:returns|outputs) (?:a )?(?:valid )?json(?: object)? (?:with|containing) (?:a |an |the )?(?:keys? |fields? )?(?P<m><L>|<and>)(?: keys?| fields?)?",
            |s, f| json_keys(s, f, if f.name("l").is_some() { "l" } else { "m" }),
        ),
        form(
            "(?:the )?(?:(?:answer|response|output) json|json (?:answer|response|output|object)) (?:has|contains|includes) (?:a |an |the )?(?:top-level )?(?:keys? |fields? )?(?P<l><L>|<and>)(?: keys?| fields?| property| properties)?",
            |s, f| json_keys(s, f, "l"),
        ),
        form(
            "<answer>?(?:contains|includes|has|shows) (?:a |at least one |one or more )?(?:fenced )?(?:(?P<lang>[a-z+#]{1,12}) )?(?:fenced )?code blocks?",
            |s, f| {
                is_spoken(s, f)?;
                let language = f.name("lang").map_or("", |lang| lang.as_str());
                // A block may be named by an alias of its language.
                let names = match language {
                    "" => return Some(json!({"regex": "(?m)^\\s*(?:```|~~~)"})),
                    "python" => "python|python3|py",
                    "bash" | "shell" => "bash|sh|shell|console|zsh",
                    "yaml" => "yaml|yml",
                    "javascript" => "javascript|js|jsx",
                    "typescript" => "typescript|ts|tsx",
                    "rust" => "rust|rs",
                    "go" => "go|golang",
                    "json" | "sql" | "java" | "html" | "css" | "mermaid" | "toml" | "xml" => {
                        language
                    }
                    _ => return None,
                };
                Some(json!({"regex": format!("(?mi)^\\s*(?:```|~~~)\\s*(?:{names})(?:\\s|$)")}))
            },
        ),
        form(
            "<answer>?(?:contains|includes|has) (?:a |at least one )(?:markdown )?table",
            |s, f| {
                is_spoken(s, f)?;
                Some(json!({"regex": TABLE}))
            },
        ),
        form(
            "<answer>?(?:contains|includes|has) (?:a |at least one )(?:markdown )?table with (?:the )?columns:? (?P<l><and>|<L>(?:, <L>)+)",
            |s, f| {
                is_spoken(s, f)?;
                let columns: Vec<String> =
                    s.captured(f, "l").iter().map(|one| regex::escape(&one.text)).collect();
                Some(
                    json!({"regex": format!("(?mi)^\\s*\\|?[^\\n]*{}[^\\n]*\\n\\s*\\|?\\s*:?-{{3,}}", columns.join("[^\\n]*\\|[^\\n]*"))}),
                )
            },
        ),
        form(
            "<answer>?(?:contains|includes) (?:a |at least one )(?P<what>url|link|hyperlink)",
            |s, f| {
                is_spoken(s, f)?;
                Some(json!({"regex": if &f["what"] == "url" { URL } else { LINK }}))
            },
        ),
        // What must not be there, by kind.
        form(
            "<answer>?(?:contains no|has no|uses no|no|does not (?:contain|use|have|include)(?: any)?) (?P<what>em[- ]?dash(?:es)?(?: (?:or|and) en[- ]?dash(?:es)?)?|emojis?|exclamation (?:marks?|points?)|code blocks?|bullet points?|bullets|bullet lists?|tables?|headings|headers|urls?|links)(?: are used| is used)?",
            |s, f| {
                is_spoken(s, f)?;
                Some(absent_kind(&f["what"]))
            },
        ),
    ]
}

/// Forms about files.
fn files() -> Vec<SentenceForm> {
    vec![
        // There, and where.
        form(
            "<file>(?P<p><L>)(?: file)? (?:exists|is present|should exist|must exist|present)(?:<in folder>| in the (?:working|current|project|root|repository|repo|workspace) (?:directory|folder|root)| at the (?:project |repo |repository )?root| on disk| after the run)?",
            |s, f| Some(json!({"file_exists": placed(s, f, "p")?})),
        ),
        form(
            "(?:the )?(?:files )?(?P<p><and>)(?: files)? (?:exist|are present|must exist|should exist|all exist|both exist)",
            |s, f| each_path(s, f, "p", |path| json!({"file_exists": path})),
        ),
        form(
            "(?:<file>(?P<p><L>) (?:does not exist|must not exist|should not exist|is absent|no longer exists|is not present)|no (?:file )?(?:named |called )?(?P<q><L>)(?: file)? exists)(?: after the run)?",
            |s, f| Some(json!({"not": {"file_exists": path_of(s, f)?}})),
        ),
        form(
            "<file>(?P<p><L>)(?: file)? (?:exists and )?(?:is|was) (?:non-?empty|not empty)",
            |s, f| Some(json!({"file_matches": {"path": s.path(f, "p")?, "pattern": "\\S"}})),
        ),
        // Made by the agent.
        form(
            "<file>(?P<p><L>)(?: file)? <was> created<in folder>?|creates <file>(?P<q><L>)(?: file)?<in folder2>?",
            |s, f| Some(json!({"file_created": placed_one(s, f)?})),
        ),
        form(
            "(?:produces|generates|outputs|writes|saves|exports) <file>(?P<p><L>)(?: file)?<in folder>?|<file>(?P<q><L>)(?: file)? <was> (?:produced|generated|written|saved|exported)<in folder2>?",
            |s, f| Some(written(&placed_one(s, f)?)),
        ),
        form(
            "(?:saves|writes|exports|outputs) (?:the |its |all )?(?:final |generated |full )?(?:output|results?|report|document|summary|plan|answer|file|data|analysis|content|findings) (?:to|as|in|into) <file>(?P<p><L>)|(?:the )?(?:final |generated )?(?:output|results?|report|document|summary|plan|file|data|analysis) <was> (?:saved|written|exported) (?:to|as|in|into) <file>(?P<q><L>)",
            |s, f| Some(written(path_of(s, f)?)),
        ),
        form(
            "(?:creates|writes|generates|produces|saves) (?:the )?(?:files )?(?:both )?(?P<p><and>)(?: files)?|(?:the )?(?:files )?(?P<q><and>)(?: files)? (?:are|were) (?:created|written|generated|produced)",
            |s, f| {
                let group = if f.name("p").is_some() { "p" } else { "q" };
                each_path(s, f, group, if f[0].contains("creat") { created } else { written })
            },
        ),
        form("(?:creates|writes|generates|produces) (?:either )?(?P<p><or>)", |s, f| {
            // What was written may have been there before; what was created may not.
            let check = if f[0].starts_with("creates") { created } else { written };
            let paths = s.paths(f, "p")?;
            Some(json!({"any": paths.iter().map(|path| check(path)).collect::<Vec<_>>()}))
        }),
        form(
            "(?:creates|writes|generates|produces|saves|outputs) (?:a|an|one|at least one) (?:new )?(?P<end>\\.?[a-z0-9]{1,8}) file|(?:a|an|at least one) (?:new )?(?P<end2>\\.?[a-z0-9]{1,8}) file <was> (?:created|generated|produced|written|saved)",
            |_, f| of_ending(f.name("end").or(f.name("end2"))?.as_str()),
        ),
        form(
            "<file>(?P<p><L>) <was not> created|does not create <file>(?P<q><L>)|no (?P<r><L>)(?: file)? (?:is|was) (?:created|written|generated)",
            |s, f| Some(json!({"not": {"file_created": path_of(s, f)?}})),
        ),
        // Nothing made or changed.
        form(
            "does not (?:modify|change|edit|touch|alter) (?:any (?:existing |project )?|existing |project )files|no (?:existing |project )?files (?:are|were) (?:modified|changed|edited|touched)",
            |_, _| {
                Some(
                    json!({"all": [{"not": {"file_changed": "**"}}, {"not": {"file_deleted": "**"}}]}),
                )
            },
        ),
        form(
            "no files? (?:in the (?:workspace|repository|repo|project) )?(?:is|are|was|were) (?P<kinds>(?:(?:modified|changed|edited|created|added|deleted|removed)(?:,? (?:and|or) |, )){1,2}(?:modified|changed|edited|created|added|deleted|removed))",
            |_, f| {
                let kinds = f.name("kinds")?.as_str();
                let none = |words: [&str; 3], kind: &str| {
                    let is_named = words.iter().any(|word| kinds.contains(word));
                    is_named.then(|| json!({"not": { kind: "**" }}))
                };
                let checks: Vec<Value> = [
                    none(["modified", "changed", "edited"], "file_changed"),
                    none(["created", "added", "created"], "file_created"),
                    none(["deleted", "removed", "deleted"], "file_deleted"),
                ]
                .into_iter()
                .flatten()
                .collect();
                let is_all = checks.len() == 3;
                Some(if is_all { json!({"only_changes": []}) } else { json!({ "all": checks }) })
            },
        ),
        form(
            "does not create any (?:new )?files|creates no (?:new )?files|no (?:new )?files (?:are|were) created",
            |_, _| Some(json!({"not": {"file_created": "**"}})),
        ),
        form(
            "does not (?:modify|change|edit|touch|alter)(?: any)?(?: other)? files (?:other than|except|besides|outside(?: of)?) (?:the )?(?P<p><list>)(?: directory| folder)?|only (?:modifies|changes|edits|touches|updates) (?P<q><list>)|(?:modifies|changes|edits|touches|updates) only (?P<r><list>)|only (?P<t><list>) (?:is|are|was|were) (?:modified|changed|edited|touched)|no (?:other )?files? (?:other than|except|besides|outside(?: of)?) (?P<u><list>) (?:is|are|was|were) (?:modified|changed|edited|touched)|(?:modifies|changes|edits|touches) no (?:other )?files? (?:other than|except|besides|outside(?: of)?) (?P<v><list>)",
            only_changes,
        ),
        form(
            "<file>(?P<p><L>) (?:(?:is|was|remains|stays|is left|was left) (?:unchanged|unmodified|untouched)|<was not> (?:modified|changed|edited|touched))|does not (?:modify|change|edit|touch|alter|update|overwrite) <file>(?P<q><L>)|leaves <file>(?P<r><L>) (?:unchanged|unmodified|untouched|alone|as is)|(?:makes )?no changes (?:are made |were made )?to (?P<t><L>)",
            |s, f| Some(json!({"file_unchanged": path_of(s, f)?})),
        ),
        form(
            "(?:the )?(?:files )?(?P<p><and>) (?:are|were|remain|stay) (?:unchanged|unmodified|untouched)|does not (?:modify|change|edit|touch|alter) (?:the )?(?:files )?(?:either )?(?P<q><and>|<or>)",
            |s, f| {
                let group = if f.name("p").is_some() { "p" } else { "q" };
                each_path(s, f, group, |path| json!({"file_unchanged": path}))
            },
        ),
        form(
            "<file>(?P<p><L>) <was> (?:modified|changed|edited|updated)|(?:modifies|changes|edits|updates) <file>(?P<q><L>)",
            |s, f| Some(json!({"file_changed": path_of(s, f)?})),
        ),
        form("(?:modifies|changes|edits|updates) (?:both )?(?P<p><and>)", |s, f| {
            each_path(s, f, "p", |path| json!({"file_changed": path}))
        }),
        form(
            "<file>(?P<p><L>) <was> (?:deleted|removed)|(?:deletes|removes) <file>(?P<q><L>)",
            |s, f| Some(json!({"file_deleted": path_of(s, f)?})),
        ),
        form(
            "<file>(?P<p><L>) <was not> (?:deleted|removed)|does not (?:delete|remove) <file>(?P<q><L>)",
            |s, f| Some(json!({"not": {"file_deleted": path_of(s, f)?}})),
        ),
        // What is in them.
        form(
            "(?:the )?(?:file )?(?P<p><L>) (?:contains|includes|mentions|references|states) <noun>(?:both )?(?P<l><L>|<and>)<kind>",
            |s, f| in_file(s, f, Amount::All),
        ),
        form(
            "(?:the )?(?:file )?(?P<p><L>) (?:contains|includes|mentions|references) (?:either )?<noun>(?P<l><or>)<kind>",
            |s, f| in_file(s, f, Amount::Any),
        ),
        form(
            "(?:the )?(?:file )?(?P<p><L>) (?:does not|must not|should not|never) (?:contain|include|mention|reference)s? (?:any )?<noun>(?P<l><L>|<or>)<kind>",
            |s, f| in_file(s, f, Amount::None),
        ),
        form(
            "<noun>(?P<l><L>)<kind> (?:is|was|appears|is present|is included|is mentioned) in (?:the )?(?:file )?(?P<p><L>)|(?:adds|appends|puts) <noun>(?P<m><L>)<kind> (?:to|in) (?:the )?(?:file )?(?P<q><L>)",
            |s, f| {
                let path = path_of(s, f)?;
                let text = quoted(s, f, "l").or_else(|| quoted(s, f, "m"))?;
                let contains = in_file_or_not(path, text, true, false);
                // What is added was not there before.
                Some(if f.name("m").is_some() {
                    json!({"all": [written(path), contains]})
                } else {
                    contains
                })
            },
        ),
        form(
            "(?:the )?(?:file )?(?P<p><L>) (?:has|contains|includes) (?:a |the )?(?:section|heading)(?: titled| named| called)? (?P<l><L>)|(?:the )?(?:file )?(?P<q><L>) (?:has|contains|includes) (?:a |an |the )?(?P<m><L>) (?:section|heading)",
            |s, f| {
                let text = quoted(s, f, "l").or_else(|| quoted(s, f, "m"))?;
                Some(
                    json!({"file_matches": {"path": path_of(s, f)?, "pattern": heading_pattern(&text.text)}}),
                )
            },
        ),
        form("(?:the )?(?:file )?(?P<p><L>) (?:starts|begins) with <noun>(?P<l><L>)", |s, f| {
            let text = regex::escape(&quoted(s, f, "l")?.text);
            Some(
                json!({"file_matches": {"path": s.path(f, "p")?, "pattern": format!("\\A\\s*{text}")}}),
            )
        }),
        form(
            "(?:the )?(?:file )?(?P<p><L>) (?:sets|has) (?P<k><L>) (?:set )?to (?P<l><L>|[0-9.]+|true|false|null)|(?P<k2><L>) in (?:the )?(?:file )?(?P<q><L>) (?:is|equals|is set to) (?P<m><L>|[0-9.]+|true|false|null)",
            set_to,
        ),
    ]
}

/// Forms about what the agent did: tools, commands, reading.
fn deeds() -> Vec<SentenceForm> {
    vec![
        form("(?:calls|uses|invokes) (?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>))", |s, f| {
            Some(json!({"tool_called": tool(s, f)?}))
        }),
        form(
            "(?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>)) <was> (?:called|used|invoked)",
            |s, f| Some(json!({"tool_called": tool(s, f)?})),
        ),
        form(
            "(?:calls|uses|invokes) (?:both )?(?:the )?(?P<t><and>) tools|(?:the )?(?P<u><and>) tools (?:are|were) (?:called|used|invoked)",
            |s, f| {
                let names = s.captured(f, if f.name("t").is_some() { "t" } else { "u" });
                let each =
                    |one: &&SentenceLiteral| Some(json!({"tool_called": tool_name(one, f)?}));
                Some(json!({"all": names.iter().map(each).collect::<Option<Vec<_>>>()?}))
            },
        ),
        form(
            "(?:calls|invokes) (?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>)) (?P<times>.+)|(?:the )?(?P<v><L>) tool <was> (?:called|invoked) (?P<times2>.+)",
            |s, f| {
                let name = tool_name(s.first(f, &["t", "u", "v"])?, f)?;
                let (min, max) = times(f.name("times").or(f.name("times2"))?.as_str())?;
                let mut call = json!({ "name": name });
                for (key, limit) in [("min", min), ("max", max)] {
                    if let Some(limit) = limit {
                        call[key] = json!(limit);
                    }
                }
                Some(json!({ "tool_called": call }))
            },
        ),
        form(
            "(?:calls|uses|invokes) (?:the )?(?P<t><L>)(?: tool)? before (?:calling |using |the )?(?P<u><L>)(?: tool)?|(?:the )?(?P<v><L>) tool <was> (?:called|used|invoked) before (?:the )?(?P<w><L>)(?: tool)?",
            |s, f| {
                // Without the word the two may be commands or files.
                f[0].contains(" tool").then_some(())?;
                let first = tool_name(s.first(f, &["t", "v"])?, f)?;
                let second = tool_name(s.first(f, &["u", "w"])?, f)?;
                Some(json!({"tools_in_order": [first, second]}))
            },
        ),
        form(
            "does not (?:call|use|invoke) (?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>))",
            |s, f| Some(json!({"tool_not_called": tool(s, f)?})),
        ),
        form(
            "(?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>)) <was not> (?:called|used|invoked)",
            |s, f| Some(json!({"tool_not_called": tool(s, f)?})),
        ),
        form("does not (?:call|use|invoke) (?:either )?(?:the )?(?P<t><or>)(?: tools?)", |s, f| {
            let names = s.captured(f, "t");
            let each =
                |one: &&SentenceLiteral| Some(json!({"tool_not_called": tool_name(one, f)?}));
            Some(json!({"all": names.iter().map(each).collect::<Option<Vec<_>>>()?}))
        }),
        // Commands.
        form(
            "(?:runs|executes) (?:the )?(?:command |shell command |script )?(?P<l><L>)(?: command| script)?|(?:the )?(?:command |script )?(?P<m><L>)(?: command| script)? (?:is|was) (?:run|executed)",
            |s, f| Some(json!({"command_run": command(s.first(f, &["l", "m"])?)?})),
        ),
        form("(?:runs|executes) (?:both )?(?P<l><and>)", |s, f| {
            let each = |one: &&SentenceLiteral| Some(json!({"command_run": command(one)?}));
            Some(json!({"all": s.captured(f, "l").iter().map(each).collect::<Option<Vec<_>>>()?}))
        }),
        // Reading.
        form(
            "(?:reads|opens|consults|views) (?:the )?(?:file |contents? of )?(?P<p><L>)(?: file)?|(?:the )?(?:file )?(?P<q><L>) (?:is|was) read",
            |s, f| Some(json!({"file_read": read_path(path_of(s, f)?)?})),
        ),
        form(
            "(?:reads|opens|consults|views) (?:the )?(?:files )?(?:both )?(?P<p><and>)",
            |s, f| {
                let paths = s.paths(f, "p")?;
                let each = |path: &String| Some(json!({"file_read": read_path(path)?}));
                Some(json!({"all": paths.iter().map(each).collect::<Option<Vec<_>>>()?}))
            },
        ),
        form("does not (?:read|open|view) (?:the )?(?:file )?(?P<p><L>)", |s, f| {
            Some(json!({"not": {"file_read": path_of(s, f)?}}))
        }),
    ]
}

/// The same in Chinese.
fn chinese() -> Vec<SentenceForm> {
    const LIST: &str = "<L>(?:(?:、|和|与|及|以及|, ?|，) ?<L>)*";
    let list = |pattern: &str| pattern.replace("<清单>", LIST);
    vec![
        form(
            &list(
                "(?P<zh>输出|回答|回复|结果|响应|最终回答|答案)(?:中|里)?(?:应该?|必须|需要?)?(?:明确)?(?:包含|包括|含有|提到|提及|出现)(?:了)?(?:关键词|字样|文字|字符串|命令|标题)? ?(?P<l><清单>) ?(?:字样|命令|标题|关键词|参数)?",
            ),
            |s, f| said_chinese(s, f, Amount::All),
        ),
        form(
            &list(
                "(?P<zh>输出|回答|回复|结果|响应|最终回答|答案)(?:中|里)?(?:不|没有|未|不应|不得|不能|不会)(?:包含|包括|含有|提到|提及|出现)(?:关键词|字样|文字|字符串)? ?(?P<l><清单>) ?(?:字样)?",
            ),
            |s, f| said_chinese(s, f, Amount::None),
        ),
        form(
            "(?:创建|生成|产出|写入|输出)(?:了)?(?:文件)? ?(?P<p><L>) ?(?:文件)?|(?:文件)? ?(?P<q><L>) ?(?:文件)?(?:已|被|已被)(?:创建|生成|写入)",
            |s, f| Some(written(path_of(s, f)?)),
        ),
        form(
            "(?:文件)? ?(?P<p><L>) ?(?:文件)?(?:存在|已存在)|存在(?:文件)? ?(?P<q><L>) ?(?:文件)?",
            |s, f| Some(json!({"file_exists": path_of(s, f)?})),
        ),
        form(
            "(?:没有|不|未|不应|不得|不会)(?:修改|改动|编辑|更改)(?:文件)? ?(?P<p><L>) ?(?:文件)?",
            |s, f| Some(json!({"file_unchanged": path_of(s, f)?})),
        ),
        form("(?:读取|阅读)(?:了)?(?:文件)? ?(?P<p><L>) ?(?:文件)?", |s, f| {
            Some(json!({"file_read": read_path(path_of(s, f)?)?}))
        }),
        form("(?:运行|执行)(?:了)?(?:命令)? ?(?P<l><L>) ?(?:命令)?", |s, f| {
            Some(json!({"command_run": command(s.one(f, "l")?)?}))
        }),
    ]
}
