//! Hermes snapshots: one document with the schemas of all tools before the messages.

use std::path::Path;

use super::corpus::{Clock, Pools, Writer};
use super::words::{self, Random, Spread};

const PROMPT: Spread = Spread(118, 1245, 8000);
const SAID: Spread = Spread(200, 1200, 20_000);
const OUTPUT: Spread = Spread(600, 5000, 50_000);
const SCHEMAS: usize = 60_000;

/// Writes a snapshot of about so many bytes.
pub(crate) fn write(pools: &Pools, folder: &Path, number: u64, size: u64) -> u64 {
    let mut random = Random(number ^ 0x4e12);
    let id = format!("20261001_1000_{:012x}", random.next() >> 16);
    let path = folder.join(format!("hermes/session_{id}.json"));
    let mut to = Writer::new(pools, path);
    let mut clock = Clock::new(number);
    to.raw(&format!(
        "{{\n  \"session_id\": \"{id}\",\n  \"model\": \"gpt-5.2\",\n  \"platform\": \"cli\",\n  \"session_start\": \"{}\",\n  \"last_updated\": \"{}\",\n  \"system_prompt\": \"",
        clock.tick(),
        clock.tick()
    ));
    to.prose(&mut random, 12_000);
    to.raw("\",\n  \"tools\": [\n    {\"type\": \"function\", \"function\": {\"name\": \"terminal\", \"description\": \"");
    to.prose(&mut random, SCHEMAS);
    to.raw("\"}}\n  ],\n  \"messages\": [");
    let mut comma = "";
    while to.bytes() < size {
        message(&mut to, &mut random, comma, "user", PROMPT);
        comma = ",";
        to.raw("\"\n    }");
        for _ in 0..random.below(15) {
            step(&mut to, &mut random);
        }
        message(&mut to, &mut random, comma, "assistant", SAID);
        to.raw("\",\n      \"finish_reason\": \"stop\"\n    }");
    }
    to.raw("\n  ]\n}\n");
    to.finish();
    to.bytes()
}

/// A snapshot whose only message has a text of about so many bytes.
pub(crate) fn write_one_string(pools: &Pools, path: &Path, bytes: u64) {
    let mut random = Random(7);
    let mut to = Writer::new(pools, path.to_owned());
    to.raw(r#"{"session_id":"giant","session_start":"2026-10-01T10:00:00Z","messages":[{"role":"user","content":""#);
    while to.bytes() < bytes {
        let text = to.code_text(&mut random, 1_000_000);
        to.bytes_of(&text);
    }
    to.line(r#""},{"role":"assistant","content":"It is long."}]}"#);
    to.finish();
}

fn message(to: &mut Writer<'_>, random: &mut Random, comma: &str, role: &str, spread: Spread) {
    to.raw(&format!("{comma}\n    {{\n      \"role\": \"{role}\",\n      \"content\": \""));
    let length = random.length(spread);
    to.prose(random, length);
}

fn step(to: &mut Writer<'_>, random: &mut Random) {
    let id = random.next();
    message(to, random, ",", "assistant", Spread(60, 300, 2000));
    to.raw(&format!(
        "\",\n      \"reasoning\": \"Look first.\",\n      \"finish_reason\": \"tool_calls\",\n      \"tool_calls\": [\n        {{\"id\": \"call_{id:x}\", \"type\": \"function\", \"function\": {{\"name\": \"terminal\", \"arguments\": \"{{\\\"command\\\": \\\"ls src\\\"}}\"}}}}\n      ]\n    }},\n    {{\n      \"role\": \"tool\",\n      \"content\": \"{{\\\"output\\\": \\\""
    ));
    let length = random.length(OUTPUT);
    let output = to.code_text(random, length);
    let escaped = words::escaped(&output);
    to.bytes_of(&escaped);
    let code = usize::from(random.percent(7));
    to.raw(&format!(
        "\\\", \\\"exit_code\\\": {code}, \\\"error\\\": null}}\",\n      \"tool_call_id\": \"call_{id:x}\",\n      \"tool_name\": \"terminal\"\n    }}"
    ));
}
