//! Codex rollouts: most bytes are encrypted thoughts, outputs of the shell and running totals.

use std::path::Path;

use super::corpus::{Clock, Pools, Writer};
use super::words::{self, Random, Spread};

const PROMPT: Spread = Spread(300, 1200, 3000);
const SAID: Spread = Spread(721, 1362, 4000);
const THOUGHT: Spread = Spread(1000, 5850, 38_000);
const OUTPUT: Spread = Spread(900, 6600, 12_000);

/// Writes a rollout of about so many bytes.
pub(crate) fn write(pools: &Pools, folder: &Path, number: u64, size: u64) -> u64 {
    let mut random = Random(number ^ 0xc0de);
    let id = random.uuid();
    let path = folder.join(format!("codex/2026/10/rollout-2026-10-01T10-00-00-{id}.jsonl"));
    let mut to = Writer::new(pools, path);
    let mut clock = Clock::new(number);
    let (mut input, mut output) = (0, 0);
    let time = clock.tick();
    to.line(&format!(
        r#"{{"timestamp":"{time}","type":"session_meta","payload":{{"id":"{id}","timestamp":"{time}","cwd":"/home/dev/work","originator":"codex_cli_rs","cli_version":"0.98.0","source":"cli"}}}}"#
    ));
    while to.bytes() < size {
        to.line(&format!(
            r#"{{"timestamp":"{}","type":"turn_context","payload":{{"cwd":"/home/dev/work","approval_policy":"on-request","model":"gpt-5.5-codex","effort":"high","summary":"auto"}}}}"#,
            clock.tick()
        ));
        let length = random.length(PROMPT);
        let prompt = to.prose_text(&mut random, length);
        let kinds = [
            r#""type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"fix it: "#,
            r#""type":"event_msg","payload":{"type":"user_message","message":"fix it: "#,
        ];
        record(&mut to, &mut clock, kinds[0], &prompt, "\"}]}}");
        record(&mut to, &mut clock, kinds[1], &prompt, "\",\"kind\":\"plain\"}}");
        for _ in 0..=random.below(20) {
            step(&mut to, &mut random, &mut clock);
            input += 1000 + random.below(60_000);
            output += 20 + random.below(900);
            let total = input + output;
            to.line(&format!(
                r#"{{"timestamp":"{}","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"cached_input_tokens":{},"output_tokens":{output},"reasoning_output_tokens":0,"total_tokens":{total}}},"model_context_window":272000}},"rate_limits":{{"primary":{{"used_percent":6.0,"window_minutes":299}}}}}}}}"#,
                clock.tick(),
                input / 2
            ));
        }
        let length = random.length(SAID);
        let answer = to.prose_text(&mut random, length);
        let kinds = [
            r#""type":"event_msg","payload":{"type":"agent_message","message":""#,
            r#""type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":""#,
        ];
        record(&mut to, &mut clock, kinds[0], &answer, "\"}}");
        record(&mut to, &mut clock, kinds[1], &answer, "\"}]}}");
    }
    to.finish();
    to.bytes()
}

fn record(to: &mut Writer<'_>, clock: &mut Clock, head: &str, text: &[u8], tail: &str) {
    to.raw(&format!(r#"{{"timestamp":"{}",{head}"#, clock.tick()));
    to.bytes_of(text);
    to.line(tail);
}

/// A thought, a call and its output, which is JSON in a string: escaped twice.
fn step(to: &mut Writer<'_>, random: &mut Random, clock: &mut Clock) {
    let length = random.length(THOUGHT);
    let thought = to.base64_text(random, length);
    let head = r#""type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"**Looking at the code**"}],"content":null,"encrypted_content":""#;
    record(to, clock, head, &thought, "\"}}");
    let id = random.next();
    let part = random.below(300);
    to.line(&format!(
        r#"{{"timestamp":"{}","type":"response_item","payload":{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"bash\",\"-lc\",\"sed -n {part},{}p src/part{part}.rs\"]}}","call_id":"call_{id:024x}"}}}}"#,
        clock.tick(),
        part + 40
    ));
    let length = random.length(OUTPUT);
    let output = to.code_text(random, length);
    let escaped = words::escaped(&output);
    let code = usize::from(random.percent(7)) * (1 + random.below(2));
    let head = format!(
        r#""type":"response_item","payload":{{"type":"function_call_output","call_id":"call_{id:024x}","output":"{{\"output\":\""#
    );
    let tail =
        format!(r#"\",\"metadata\":{{\"exit_code\":{code},\"duration_seconds\":0.1}}}}"}}}}"#);
    record(to, clock, &head, &escaped, &tail);
}
