//! Reads the bytes of a suite: the format of its text, its dialect, and the cases by its importer.

use serde_json::Value;

use super::case::CaseReader;
use super::dialect::{EvalsDialect, EvalsReadError, lfs_pointer};
use super::importers::{SuiteSource, front_matter, recognise};
use super::source::SourceText;
use super::{EvalsFile, FileLookup, MAX_BYTES, MAX_CASES};
use crate::yaml::YamlSchema;
use selftest_text::one_line;

/// Reads a suite. The file name distinguishes JSON, JSON Lines, YAML, TOML and Markdown; the dialect is
/// recognised by the content.
pub fn read(
    name: &str,
    bytes: &[u8],
    lookup: &dyn FileLookup,
) -> Result<EvalsFile, EvalsReadError> {
    if bytes.len() > MAX_BYTES {
        return Err(EvalsReadError(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    let mut file = EvalsFile {
        dialect: EvalsDialect::Unknown,
        skill: None,
        cases: Vec::new(),
        routing: Vec::new(),
        missing_files: Vec::new(),
        refused: Vec::new(),
        warnings: Vec::new(),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| EvalsReadError("not UTF-8".to_owned()))?;
    // The JSON parser rejects a byte order mark.
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => {
            file.warnings.push("begins with a byte order mark".to_owned());
            rest
        }
        None => text,
    };
    if let Some(why) = lfs_pointer(text) {
        return Err(EvalsReadError(why.to_owned()));
    }
    let parsed = parse(name, text, &mut file)?;
    let is_lines = TextFormat::of(name) == TextFormat::JsonLines;
    let source = SuiteSource { name, whole: text, text: &parsed, is_lines };
    let entry = recognise(&source);
    // What a plain word means depends on the program that the file is for.
    let parsed = match entry.yaml {
        Some(schema) if schema != YamlSchema::V1_2 && TextFormat::of(name) == TextFormat::Yaml => {
            SourceText::yaml("", text, schema, 0)?
        }
        _ => parsed,
    };
    file.dialect = entry.dialect;
    let mut reader = CaseReader::new(&mut file, lookup);
    (entry.read)(&SuiteSource { name, whole: text, text: &parsed, is_lines }, &mut reader);
    reader.warn_about_all();
    file.warnings.extend(parsed.unread_warnings());
    if file.cases.is_empty() && file.routing.is_empty() {
        file.warnings.push("there is nothing to run in it".to_owned());
    }
    Ok(file)
}

/// Returns true if a YAML file is a suite of another program.
pub fn is_foreign(name: &str, text: &str) -> bool {
    let Ok(parsed) = SourceText::yaml("", text, YamlSchema::V1_2, 0) else { return false };
    let source = SuiteSource { name, whole: text, text: &parsed, is_lines: false };
    if recognise(&source).dialect != EvalsDialect::Evals {
        return true;
    }
    // Without a list of cases it is ours only by its version, and ours names no skill.
    let document = parsed.value();
    let has = |key: &str| document.get(key).is_some();
    document.is_array()
        || has("skill")
        || has("skill_name")
        || !has("cases") && document["version"] != 1
}

/// The format of a file, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextFormat {
    Json,
    JsonLines,
    Yaml,
    Toml,
    Markdown,
}

impl TextFormat {
    fn of(name: &str) -> Self {
        let extension = name.rsplit('.').next().unwrap_or_default().to_lowercase();
        match extension.as_str() {
            "jsonl" | "ndjson" => Self::JsonLines,
            "yaml" | "yml" => Self::Yaml,
            "toml" => Self::Toml,
            "md" => Self::Markdown,
            _ => Self::Json,
        }
    }
}

fn parse(name: &str, text: &str, file: &mut EvalsFile) -> Result<SourceText, EvalsReadError> {
    Ok(match TextFormat::of(name) {
        TextFormat::Json => SourceText::parsed("", parse_json(text, file)?, text),
        TextFormat::Yaml => SourceText::yaml("", text, YamlSchema::V1_2, 0)?,
        TextFormat::Markdown => front_matter("", text)?.0,
        TextFormat::Toml => {
            let value = toml::from_str(text).map_err(|error| {
                EvalsReadError(format!("not TOML: {}", one_line(error.message(), 200)))
            })?;
            SourceText::toml(value, text)
        }
        // Lines that are not JSON are refused one by one by the importer.
        TextFormat::JsonLines => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let values =
                lines.take(MAX_CASES + 1).filter_map(|line| serde_json::from_str(line).ok());
            SourceText::parsed("", Value::Array(values.collect()), "")
        }
    })
}

/// Parses JSON, tolerating comments and trailing commas if necessary.
fn parse_json(text: &str, file: &mut EvalsFile) -> Result<Value, EvalsReadError> {
    match serde_json::from_str(text) {
        Ok(document) => Ok(document),
        Err(error) => {
            let Ok(document) = serde_json::from_str(&without_comments(text)) else {
                // The first error: its places are those of the file as it is.
                return Err(EvalsReadError(format!(
                    "not JSON: {}",
                    one_line(&error.to_string(), 200)
                )));
            };
            file.warnings
                .push("comments or commas too many: not JSON for other programs".to_owned());
            Ok(document)
        }
    }
}

/// Removes `//` and `/* */` comments outside of strings, and trailing commas.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            // An escaped quote does not end the string.
            ('\\', Some(_)) if in_string => {
                kept.push(c);
                kept.extend(rest.next());
            }
            ('"', _) => {
                in_string = !in_string;
                kept.push(c);
            }
            ('/', Some('/')) if !in_string => while rest.next_if(|&c| c != '\n').is_some() {},
            ('/', Some('*')) if !in_string => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                // A space keeps the tokens around the comment apart.
                kept.push(' ');
            }
            (']' | '}', _) if !in_string => {
                let end = kept.trim_end().len();
                if kept[..end].ends_with(',') {
                    kept.truncate(end - 1);
                }
                kept.push(c);
            }
            _ => kept.push(c),
        }
    }
    kept
}
