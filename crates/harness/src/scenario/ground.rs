//! Selects excerpts of the project's files: the passage that a case is about, and the sentences in
//! it that can be quoted. Pure; the caller passes only files that may be shown.

use super::SeededDraw;
use crate::prose::{
    heading_of, is_fence, is_prose, is_telling, normalise_spaces, quotes, section_end,
};
use selftest_checks::scenario::FileExcerpt;

/// Maximum length of an excerpt in characters.
pub const MAX_CHARS: usize = 1800;
/// Maximum number of lines of an excerpt.
pub const MAX_LINES: usize = 40;
/// Maximum length of one line in characters. A longer line is cut, at a space if possible.
pub const MAX_LINE: usize = 900;

/// Number of lines after which an excerpt ends at the next heading.
const ENOUGH_LINES: usize = 15;
/// Maximum number of bytes of a file that are read.
const MAX_FILE: usize = 256 * 1024;

/// Name of the built-in text for projects without any text.
pub const BUILT_IN_PATH: &str = "built-in text";
/// Text that cases are about if the project has none.
pub const BUILT_IN: &str = "\
# The ferry to Sandholm

The ferry leaves the north pier at 7 in the morning and returns at 19 in the evening.
A single ticket costs 12 crowns, and a return ticket costs 20 crowns.
Children under 6 travel for free when they come with an adult.

## Luggage

Each passenger may bring 2 bags of at most 15 kilograms.
Bicycles stand on the lower deck and need a ticket of 5 crowns.
Dogs are welcome on the upper deck and must be kept on a lead.

## Weather

The captain cancels a crossing when the wind is above 17 metres per second.
Tickets of a cancelled crossing are valid for 30 days.
";

/// A file whose text cases may be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path from the project's root, with `/`.
    pub path: String,
    /// Its text, or the start of it.
    pub text: String,
}

/// A part of a file that a case is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePassage {
    /// Path and lines of the passage.
    pub excerpt: FileExcerpt,
    /// The heading above it, if there is one.
    pub heading: Option<String>,
    /// Quotable parts: sentences, or lines in a file without sentences.
    pub quotes: Vec<String>,
}

impl SourcePassage {
    /// Returns true if the passage is from the built-in text.
    pub fn is_built_in(&self) -> bool {
        self.excerpt.path == BUILT_IN_PATH
    }

    fn has_prose(&self) -> bool {
        self.is_built_in() || is_prose(&self.excerpt.path)
    }

    /// Returns the title by which a request names the passage; `None` if it begins in the middle of
    /// a section.
    fn starting_words(&self) -> Option<String> {
        let first = self.excerpt.text.lines().next().unwrap_or_default();
        match &self.heading {
            Some(heading) => heading_of(first, self.has_prose()).filter(|own| own == heading),
            None => Some(first_words(&self.excerpt.text)),
        }
    }

    /// Returns the passage without what follows its section.
    fn own_section(&self) -> Self {
        let (prose, path) = (self.has_prose(), self.excerpt.path.clone());
        let lines: Vec<&str> = self.excerpt.text.lines().collect();
        let end = if self.heading.is_some() { section_end(&lines, 0, prose) } else { lines.len() };
        let text = lines[..end].join("\n").trim_end().to_owned();
        let quotes = quotes(&text, prose);
        Self { excerpt: FileExcerpt { path, text }, heading: self.heading.clone(), quotes }
    }
}

/// The texts that excerpts are drawn from.
#[derive(Debug, Clone, Default)]
pub struct ExcerptSources {
    /// Passages by file, the most concrete ones first.
    files: Vec<Vec<SourcePassage>>,
}

impl ExcerptSources {
    /// Collects the passages of these files. Files without quotable text are skipped. If some files
    /// are prose, all others are skipped, because prose allows better questions.
    pub fn new(files: impl IntoIterator<Item = SourceFile>) -> Self {
        let (prose, other): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(|source| !is_legal(&source.path))
            .filter_map(|source| {
                let prose = is_prose(&source.path);
                let passages = passages(&source, prose);
                (!passages.is_empty()).then_some((prose, passages))
            })
            .partition(|(prose, _)| *prose);
        // Sentences of code and data are comments and values, about which few questions make sense.
        let chosen = if prose.is_empty() { other } else { prose };
        Self { files: chosen.into_iter().map(|(_, passages)| passages).collect() }
    }

    /// Returns the passages of the built-in text.
    pub fn of_built_in_text() -> Self {
        let source = SourceFile { path: BUILT_IN_PATH.to_owned(), text: BUILT_IN.to_owned() };
        Self { files: vec![passages(&source, true)] }
    }

    /// Returns every quotable sentence of a file, as far as it was read.
    pub fn quotes_of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let passages = self.files.iter().flatten();
        let own = passages.filter(move |passage| passage.excerpt.path == path);
        own.flat_map(|passage| passage.quotes.iter().map(String::as_str))
    }

    /// Draws a section that its file and heading name without doubt and that has this many
    /// sentences; in a file without headings, a part that its first words name. Holds nothing of
    /// the next section. `None` if no file has one.
    pub fn section(&self, sentences: usize, draw: &mut SeededDraw) -> Option<SourcePassage> {
        let of_file = |file: &Vec<SourcePassage>| {
            let named = |passage: &SourcePassage| passage.starting_words();
            let starts: Vec<Option<String>> = file.iter().map(named).collect();
            // Two sections of the same name cannot be told apart by a request.
            let is_unique = |start: &Option<String>| {
                start.is_some() && starts.iter().filter(|other| *other == start).count() == 1
            };
            let unique = file.iter().zip(&starts).filter(|(_, start)| is_unique(start));
            unique
                .map(|(passage, _)| passage.own_section())
                .filter(|section| section.quotes.len() >= sentences)
                .collect::<Vec<_>>()
        };
        let files: Vec<Vec<SourcePassage>> = self.files.iter().map(of_file).collect();
        let files: Vec<_> = files.into_iter().filter(|sections| !sections.is_empty()).collect();
        // The file first and then its section: a long file must not take all cases.
        let sections = draw.pick(&files)?;
        // Sections are sorted, so the first half contains the more concrete ones.
        draw.pick(&sections[..sections.len().div_ceil(2)]).cloned()
    }

    /// Returns true if there is no text, so that the built-in one is used.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Draws a passage of a file or of the built-in text. Concrete passages are preferred.
    pub fn passage(&self, draw: &mut SeededDraw) -> SourcePassage {
        let Some(file) = draw.pick(&self.files) else { return built_in(draw) };
        // Passages are sorted, so the first half contains the more concrete ones.
        let better = &file[..file.len().div_ceil(2)];
        draw.pick(better).cloned().unwrap_or_else(|| built_in(draw))
    }
}

/// Draws a passage of the built-in text.
pub fn built_in(draw: &mut SeededDraw) -> SourcePassage {
    let source = SourceFile { path: BUILT_IN_PATH.to_owned(), text: BUILT_IN.to_owned() };
    let found = passages(&source, true);
    let whole = || SourcePassage {
        excerpt: FileExcerpt { path: source.path.clone(), text: source.text.clone() },
        heading: None,
        quotes: quotes(&source.text, true),
    };
    draw.pick(&found).cloned().unwrap_or_else(whole)
}

/// Returns the first words of a passage, by which a request names it if it has no heading.
pub fn first_words(text: &str) -> String {
    let start = normalise_spaces(text);
    let words: Vec<&str> = start.split(' ').take(6).collect();
    selftest_text::one_line(&words.join(" "), 80)
}

/// Returns the start of a file as one excerpt, for files that the user names.
pub fn file_excerpt(source: &SourceFile) -> FileExcerpt {
    let lines = lines(&source.text);
    let text = lines[..end_of(&lines, 0, false)].join("\n");
    FileExcerpt { path: source.path.clone(), text }
}

/// Returns the quote with single spaces if the text contains it, ignoring differences in white
/// space.
pub fn find_quote(text: &str, quote: &str) -> Option<String> {
    let (text, whole) = (normalise_spaces(text), normalise_spaces(quote));
    // Models put quotation marks around what they quote.
    let bare = whole.trim_matches(['"', '“', '”']).to_owned();
    [whole, bare].into_iter().find(|quote| is_telling(quote) && text.contains(quote))
}

/// Returns true for a licence, which says nothing about the project.
fn is_legal(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    ["license", "licence", "copying", "copyright", "notice"]
        .iter()
        .any(|sign| name.starts_with(sign))
}

/// Returns the lines of a text, each cut to the maximum length.
fn lines(text: &str) -> Vec<&str> {
    let text = &text[..text.floor_char_boundary(MAX_FILE)];
    text.lines().map(short).collect()
}

fn short(line: &str) -> &str {
    let Some((end, _)) = line.char_indices().nth(MAX_LINE) else { return line };
    let cut = &line[..end];
    // At a space, unless that would cost half of the line.
    cut.rfind(' ').filter(|&space| space > end / 2).map_or(cut, |space| &cut[..space])
}

/// Returns all quotable passages of a file, the most concrete ones first.
fn passages(source: &SourceFile, prose: bool) -> Vec<SourcePassage> {
    let lines = lines(&source.text);
    let (mut found, mut fenced, mut heading) = (Vec::new(), false, None);
    for (at, line) in lines.iter().enumerate() {
        let is_fence = is_fence(line);
        // A `#` line inside a code fence is not a heading.
        let title = if fenced { None } else { heading_of(line, prose) };
        let after_blank = at == 0 || lines[at - 1].trim().is_empty();
        let starts = !fenced && !line.trim().is_empty() && (title.is_some() || after_blank);
        heading = title.or(heading);
        fenced ^= is_fence;
        if !starts {
            continue;
        }
        let text = lines[at..end_of(&lines, at, prose)].join("\n");
        let quotes = quotes(&text, prose);
        if !quotes.is_empty() {
            let excerpt = FileExcerpt { path: source.path.clone(), text };
            found.push(SourcePassage { excerpt, heading: heading.clone(), quotes });
        }
    }
    found.sort_by_key(|passage| std::cmp::Reverse(concreteness(passage)));
    found
}

/// Returns the index after the last line of an excerpt that starts here.
fn end_of(lines: &[&str], start: usize, prose: bool) -> usize {
    let (mut end, mut size, mut blank) = (start, 0, None);
    for (at, line) in lines.iter().enumerate().skip(start).take(MAX_LINES) {
        size += line.chars().count() + 1;
        // A short section is shown with the one after it, so that there is enough to ask about.
        let next_section = at >= start + ENOUGH_LINES && heading_of(line, prose).is_some();
        if size > MAX_CHARS || next_section {
            break;
        }
        end = at + 1;
        if line.trim().is_empty() {
            blank = Some(at);
        }
    }
    // A long text ends at a blank line, if there is one in the second half of the excerpt.
    if end < lines.len() {
        end = blank.filter(|blank| *blank > start + (end - start) / 2).unwrap_or(end);
    }
    while end > start && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    end
}

/// Scores how verifiable a passage is: numbers count most, then names and paths.
fn concreteness(passage: &SourcePassage) -> usize {
    let of_quote = |quote: &String| {
        let number = quote.contains(|c: char| c.is_ascii_digit());
        let name = quote.contains('`') || quote.contains('/');
        // Numbers and names have one right value, which both a check and a judge can look up.
        1 + usize::from(number) * 3 + usize::from(name) * 2
    };
    passage.quotes.iter().map(of_quote).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: &str = "\
# Usage

Run it every day. The server listens on port 7700, and `serve --port` changes it.

- Reports are written to `reports/selftest` after each case.
- A run is repeated
  with `--seed`, such as 42.

```sh
# no heading: this is not to be quoted at all.
```

## Limits

| table | row that is not a sentence at all. |

See [the guide](guide.md) for more of all this.
";

    fn source(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn sentences_of_paragraphs_and_lists_are_quoted() {
        assert_eq!(
            quotes(PAGE, true),
            [
                "The server listens on port 7700, and `serve --port` changes it.",
                "Reports are written to `reports/selftest` after each case.",
                "A run is repeated with `--seed`, such as 42.",
            ]
        );
        for quote in quotes(PAGE, true) {
            assert_eq!(find_quote(PAGE, &quote), Some(quote));
        }
        assert_eq!(
            find_quote(PAGE, "Reports  are written\nto `reports/selftest` after"),
            Some("Reports are written to `reports/selftest` after".to_owned())
        );
        assert_eq!(find_quote(PAGE, "Reports are written to `reports`"), None);
        assert_eq!(find_quote(PAGE, "it"), None);
        assert_eq!(find_quote(PAGE, ""), None);
    }

    #[test]
    fn excerpts_begin_at_headings_and_after_blank_lines() {
        let found = passages(&source("docs/usage.md", PAGE), true);
        assert_eq!(found[0].excerpt.text.lines().next(), Some("# Usage"));
        assert!(found.iter().all(|one| one.heading.as_deref() == Some("Usage")), "{found:#?}");
        assert!(found.iter().all(|one| !one.excerpt.text.starts_with("# no heading")));
    }

    #[test]
    fn a_long_file_gives_excerpts_of_many_lines() {
        let line = "The value of the setting number 7 is 42 in this file.\n";
        let text = format!("# One\n\n{}\n# Two\n\n{}", line.repeat(20), line.repeat(90));
        let found = passages(&source("a.md", &text), true);
        let first = found.iter().find(|one| one.excerpt.text.starts_with("# One")).unwrap();
        assert!(!first.excerpt.text.contains("# Two"), "{}", first.excerpt.text);
        let second = found.iter().find(|one| one.excerpt.text.starts_with("# Two")).unwrap();
        assert!((15..=MAX_LINES).contains(&second.excerpt.text.lines().count()));
    }

    #[test]
    fn code_is_quoted_by_lines_where_there_is_no_prose() {
        let code = source(
            "Cargo.toml",
            "[package]\nname = \"zebra\"\nrust-version = \"1.90\" # at least\n",
        );
        let sources = ExcerptSources::new([code.clone()]);
        let passage = sources.passage(&mut SeededDraw::new(1));
        assert_eq!(passage.quotes, ["rust-version = \"1.90\" # at least"]);
        assert_eq!(passage.heading, None);
        let both = ExcerptSources::new([code, source("README.md", PAGE)]);
        for seed in 0..20 {
            assert_eq!(both.passage(&mut SeededDraw::new(seed)).excerpt.path, "README.md");
        }
    }

    #[test]
    fn without_any_text_the_built_in_one_stands_in() {
        let long = "x".repeat(5_000_000);
        let files = [source("a.md", ""), source("b.bin", "\n\n"), source("c.js", &long)];
        let sources = ExcerptSources::new(files);
        assert!(sources.is_empty());
        let passage = sources.passage(&mut SeededDraw::new(3));
        assert!(passage.is_built_in() && !passage.quotes.is_empty());
        assert!(BUILT_IN.contains(&passage.excerpt.text));
    }

    #[test]
    fn one_line_of_megabytes_is_cut_at_a_space() {
        let line = "The port is 7700 here, and so on and on. ".repeat(100_000);
        let excerpt = file_excerpt(&source("a.md", &line));
        assert!(excerpt.text.chars().count() <= MAX_LINE && line.starts_with(&excerpt.text));
        assert!(!excerpt.text.ends_with(' '));
        let sources = ExcerptSources::new([source("a.md", &line)]);
        assert_eq!(sources.passage(&mut SeededDraw::new(0)).excerpt.text, excerpt.text);
    }

    proptest! {
        #[test]
        fn excerpts_are_whole_lines_bounded_and_the_same_again(
            text in "([#`~|-]{0,3} ?[A-Za-z é\"0-9.]{0,60}\r?\n){0,80}|\\PC{0,3000}",
            seed in 0_u64..1000,
        ) {
            let sources = ExcerptSources::new([source("docs/a.md", &text)]);
            let passage = sources.passage(&mut SeededDraw::new(seed));
            prop_assert_eq!(&passage, &sources.passage(&mut SeededDraw::new(seed)));
            let shown = &passage.excerpt.text;
            prop_assert!(shown.chars().count() <= MAX_CHARS && shown.lines().count() <= MAX_LINES);
            prop_assert!(!shown.trim().is_empty() && !passage.quotes.is_empty());
            let whole: Vec<&str> = if passage.is_built_in() {
                BUILT_IN.lines().collect()
            } else {
                text.lines().map(short).collect()
            };
            for line in shown.lines() {
                prop_assert!(whole.contains(&line), "{line:?}");
            }
            for quote in &passage.quotes {
                prop_assert_eq!(find_quote(shown, quote), Some(quote.clone()));
            }
        }
    }
}
