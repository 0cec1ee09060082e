//! A folder of generated sessions: mostly Claude Code, some Codex and Hermes.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::claude::Claude;
use super::words::{self, Pool, Random, Spread};
use super::{codex, hermes};

/// Sizes of files: a mean of about 1 MB, as in projects that are worked on every day.
const FILE: Spread = Spread(350_000, 2_500_000, 20_000_000);

/// Writes about so many bytes below `folder`.
pub(crate) fn write(folder: &Path, bytes: u64) -> u64 {
    let pools = Pools::new();
    let (mut written, mut files) = (0, 0);
    while written < bytes {
        let size = Random(files ^ 0x51ce).length(FILE) as u64;
        written += match files % 10 {
            0..7 => claude(&pools, folder, files, size),
            7..9 => codex::write(&pools, folder, files, size),
            _ => hermes::write(&pools, folder, files, size),
        };
        files += 1;
    }
    files
}

/// One Claude Code session of about so many bytes.
pub(crate) fn claude(pools: &Pools, folder: &Path, number: u64, size: u64) -> u64 {
    let folder = folder.join(format!("project-{}", number % 40));
    let mut writer = Writer::new(pools, folder.join("new.jsonl"));
    let session = Claude::new(&mut writer, number);
    let name = format!("{}.jsonl", session.id());
    session.write(size);
    let written = writer.bytes();
    std::fs::rename(folder.join("new.jsonl"), folder.join(name)).unwrap();
    written
}

/// A short session, one line of which has a text of about so many bytes.
pub(crate) fn one_line(pools: &Pools, path: &Path, bytes: u64) {
    let mut random = Random(9);
    let mut to = Writer::new(pools, path.to_owned());
    let ends = r#"","sessionId":"giant","timestamp":"2026-10-01T10:00:00Z"}"#;
    to.line(&format!(
        r#"{{"type":"user","message":{{"role":"user","content":"Read it."}},"uuid":"1{ends}"#
    ));
    to.raw(r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":""#);
    while to.bytes() < bytes {
        let text = to.code_text(&mut random, 1_000_000);
        to.bytes_of(&text);
    }
    to.line(&format!(r#""}}]}},"uuid":"2","parentUuid":"1{ends}"#));
    to.line(&format!(r#"{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":"It was too long for me."}}]}},"uuid":"3","parentUuid":"2{ends}"#));
    to.finish();
}

/// So many sessions of a few records.
pub(crate) fn write_small(folder: &Path, files: u64) {
    let pools = Pools::new();
    for number in 0..files {
        claude(&pools, &folder.join(format!("{}", number % 100)), number, 1);
    }
}

/// Where texts come from.
pub(crate) struct Pools {
    code: Pool,
    prose: Pool,
}

impl Pools {
    pub(crate) fn new() -> Self {
        Self { code: Pool::new(1, false), prose: Pool::new(2, true) }
    }
}

/// Times of records, a few seconds apart.
pub(crate) struct Clock {
    random: Random,
    milliseconds: u64,
}

impl Clock {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random(seed ^ 0xc10c), milliseconds: 1_790_000_000_000 }
    }

    /// The next time, such as `2026-11-02T10:00:00.120Z`.
    pub(crate) fn tick(&mut self) -> String {
        self.milliseconds += 300 + self.random.next() % 9000;
        let (seconds, rest) = (self.milliseconds / 1000, self.milliseconds % 1000);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        // Days beyond a month are long sessions; no reader minds that they repeat.
        let day = 1 + seconds / 86_400 % 28;
        format!("2026-10-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z")
    }
}

/// A file of JSON that is written piece by piece.
pub(crate) struct Writer<'c> {
    pools: &'c Pools,
    file: BufWriter<File>,
    written: u64,
}

impl<'c> Writer<'c> {
    pub(crate) fn new(pools: &'c Pools, path: PathBuf) -> Self {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = BufWriter::with_capacity(1 << 18, File::create(path).unwrap());
        Self { pools, file, written: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.written
    }

    pub(crate) fn bytes_of(&mut self, bytes: &[u8]) {
        self.file.write_all(bytes).unwrap();
        self.written += bytes.len() as u64;
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.bytes_of(text.as_bytes());
    }

    pub(crate) fn end_line(&mut self) {
        self.raw("\n");
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.raw(text);
        self.end_line();
    }

    pub(crate) fn prose(&mut self, random: &mut Random, length: usize) {
        let text = self.prose_text(random, length);
        self.bytes_of(&text);
    }

    pub(crate) fn prose_text(&self, random: &mut Random, length: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(length + 200);
        self.pools.prose.add(random, length, &mut text);
        text
    }

    pub(crate) fn code_text(&self, random: &mut Random, length: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(length + 200);
        self.pools.code.add(random, length, &mut text);
        text
    }

    /// The lines of an escaped text with their numbers, as `cat -n` writes them.
    pub(crate) fn numbered(&mut self, text: &[u8]) {
        let mut from = 0;
        let breaks = memchr::memmem::find_iter(text, b"\\n").chain([text.len()]);
        for (number, end) in (1..).zip(breaks) {
            self.raw(&format!("{}{number:6}\u{2192}", if number > 1 { "\\n" } else { "" }));
            self.bytes_of(&text[from.min(end)..end]);
            from = end + 2;
        }
    }

    pub(crate) fn base64(&mut self, random: &mut Random, length: usize) {
        let text = self.base64_text(random, length);
        self.bytes_of(&text);
    }

    #[expect(clippy::unused_self, reason = "beside the other pools")]
    pub(crate) fn base64_text(&self, random: &mut Random, length: usize) -> Vec<u8> {
        let mut text = Vec::with_capacity(length + 10);
        words::base64(random, length, &mut text);
        text
    }

    pub(crate) fn finish(&mut self) {
        self.file.flush().unwrap();
    }
}
