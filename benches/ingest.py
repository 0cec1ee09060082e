"""The rules of `selftest grade` in plain Python, for the comparison in benches/ingest.rs.

Reads Claude Code, Codex and Hermes sessions as the benchmark's corpus holds them, computes the
metrics and grades of each, and prints the totals as JSON. It does less than selftest: no digests,
no database, no evidence, no redaction, and none of the rarer records of these formats.

    python3 benches/ingest.py PROCESSES FOLDER
"""

import json
import os
import re
import sys
from collections import Counter
from datetime import datetime
from multiprocessing import Pool

DONE = re.compile(r"\b(done|completed|success(es|ful|fully)?|finished)\b", re.I)
OUTPUT = re.compile(r"\b(saved to\b|here is\b|here['’]s\b|output:)", re.I)
FAILED = re.compile(r"\b(failed|unable to|could not|couldn['’]t)\b", re.I)
NEGATIONS = {
    "not", "no", "never", "without", "none", "nothing", "cannot", "0", "zero", "neither", "nor",
    "hardly",
}
CLAUSE = re.compile(r"[.,;:!?\n(]")
LINKS = re.compile(r"https?://[^\s)]|\[[^\]\n]+\]\([^)\s]+\)|\[\d{1,3}\]")
TASKS = [
    ("code_review", re.compile(r"(?i:\breview(s|ed|ing|ers?)?\b)|\bPRs?\b")),
    ("debugging", re.compile(r"\b(debug(s|ged|ging|ger)?|fix(es|ed|ing)?|troubleshoot(s|ing)?)\b", re.I)),
    ("feature_impl", re.compile(r"\b(implement(s|ed|ing|ation)?|add(s|ed|ing)?( \w+){0,3} features?|build(s|ing)?|built)\b", re.I)),
    ("refactoring", re.compile(r"\b(refactor(s|ed|ing)?|clean(s|ed|ing)?[ -]?up|reorgani[sz](e[sd]?|ing))\b", re.I)),
    ("documentation", re.compile(r"\b(document(s|ed|ing|ation)?|readme|docstrings?)\b", re.I)),
    ("testing", re.compile(r"\b(tests?|tested|testing|pytest|unit[ -]tests?)\b", re.I)),
    ("research", re.compile(r"\b(research(es|ed|ing)?|investigat(e[sd]?|ing|ion)|look(s|ed|ing)? up)\b", re.I)),
    ("deployment", re.compile(r"\b(deploy(s|ed|ing|ments?)?|releas(e[sd]?|ing)|publish(es|ed|ing)?)\b", re.I)),
    ("data_analysis", re.compile(r"\b(analy[sz](e[sd]?|ing)( \w+){0,3} data|data analysis|process(es|ed|ing)?( \w+){0,2} files?|pars(e[sd]?|ing))\b", re.I)),
    ("infrastructure", re.compile(r"\b(servers?|docker|kubernetes)\b", re.I)),
]
ERRORS = [
    ("tool_not_found", re.compile(r"\b(unknown tool|no such tool|tool (\S+ )?(does not exist|not found|is not available)|unknown function|invalid tool name)\b", re.I)),
    ("network_error", re.compile(r"\b(connection (refused|reset|aborted|error|timed out|closed)|could not resolve host|name or service not known|temporary failure in name resolution|network is unreachable|no route to host|ECONNREFUSED|ECONNRESET|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|dns (error|lookup)|getaddrinfo|socket hang up|tls handshake|certificate verify failed)\b", re.I)),
    ("file_not_found", re.compile(r"\b(no such file or directory|file(\s+\S+)? (does not exist|not found)|path (\S+ )?(does not exist|not found)|directory (\S+ )?(does not exist|not found)|cannot find the (file|path)|FileNotFoundError|ENOENT|no files? found|does not exist on disk)\b", re.I)),
    ("permission_denied", re.compile(r"\b(permission denied|access (is )?denied|not permitted|PermissionError|EACCES|EPERM|read-only file system|forbidden|unauthori[sz]ed)\b", re.I)),
    ("timeout", re.compile(r"\b(timed? ?out|timeout (expired|exceeded|reached|after|error)|TimeoutError|TimeoutExpired|deadline exceeded|time limit exceeded)\b", re.I)),
    ("api_error", re.compile(r"\b(rate limit(s|ed)?|too many requests|quota exceeded|overloaded(_error)?|api[ _]error|internal server error|bad gateway|service unavailable|(http|status)([ _]?(code|error))?[ :=]+[45]\d\d|[45]\d\d (client|server) error)\b", re.I)),
    ("syntax_error", re.compile(r"\b(syntax ?error|invalid syntax|IndentationError|parse error|parsing error|unexpected (token|eof|end of (file|input|json))|JSONDecodeError|json\.decoder|unterminated string|unmatched|failed to parse)\b", re.I)),
]
EXIT_CODE = re.compile(r'("exit_code"|exit(ed with)?( code| status)|returncode)\D{0,12}-?[1-9]|\bcommand failed\b|command not found', re.I)
ASKING = {
    "AskUserQuestion", "ask_followup_question", "ask_user", "ask_user_question", "clarify",
    "request_user_input",
}
REFUSED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The agent proposed a plan that was rejected by the user", "User rejected", "User declined",
    "[Request interrupted by user", "This command requires approval",
    "This Bash command contains multiple operations", "Claude requested permissions to",
    "Permission to use", "Permission for this", "PreToolUse:", "Hook PreToolUse",
    "Sibling tool call errored", "Cancelled: parallel tool call", "Streaming fallback",
)
CLAUDE_HARNESS = (
    "<command-name>", "<command-message>", "<command-args>", "<local-command-", "<bash-input>",
    "<bash-stdout>", "<bash-stderr>", "<task-notification>", "<teammate-message",
    "<user-memory-input>", "<user-prompt-submit-hook>", "<session-start-hook>",
    "Stop hook feedback:", "SubagentStop hook feedback:",
    "Caveat: The messages below were generated by the user while running local commands",
    "Base directory for this skill:", "[Request interrupted by user",
    "This session is being continued from a previous conversation",
)
CODEX_HARNESS = (
    "# AGENTS.md instructions", "<INSTRUCTIONS>", "<agents_md>", "<environment_context>",
    "<permissions instructions>", "<user_instructions>", "<skill>", "<turn_aborted>",
)
NOTES = re.compile(
    r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|new-diagnostics"
    r"|post-tool-use-hook)>.*?</\1>",
    re.S,
)
REMINDERS = re.compile(r"<system-reminder>.*?</system-reminder>", re.S)
CODE = re.compile(r"Exit code (-?\d+)")
FAILURES = (
    "error:", "error executing", "error while", "traceback (most recent call last)", "tool error:",
    "exception:",
)
HARMLESS = ("not an error", "expected", "often normal", "may still be valid")
DECODER = json.JSONDecoder()


class Session:
    """The numbers of a session, and its grade."""

    def __init__(self):
        self.id = None
        self.models = []
        self.start = self.end = None
        self.messages = self.model_calls = self.tool_calls = self.errors = 0
        self.rejected = 0
        self.tools = Counter()
        self.tool_errors = Counter()
        self.classes = Counter()
        self.run = self.longest_run = 0
        self.error_open = False
        self.recovered = False
        self.request = None
        self.request_is_human = False
        self.response = ""
        self.question = None
        self.clarified = False
        self.open = {}
        self.tokens = Counter()

    def saw(self, time):
        if not time:
            return
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            return
        self.start = min(self.start or time, time)
        self.end = max(self.end or time, time)

    def user(self, text, is_human=True):
        if not text:
            return
        self.messages += 1
        if self.request is None or (is_human and not self.request_is_human):
            self.request, self.request_is_human = text[:4000], is_human
        if is_human and self.question is not None:
            self.clarified = True

    def assistant(self, text, calls, continues):
        self.messages += bool(text)
        if not continues:
            self.model_calls += 1
            self.response = ""
        if text:
            self.response = f"{self.response}\n{text}" if self.response else text
        asks = not calls and self.response.rstrip().endswith("?")
        self.question = self.response.rstrip().splitlines()[-1] if asks else None
        for call, name in calls:
            self.tool_calls += 1
            self.tools[name] += 1
            self.clarified |= name in ASKING
            self.open[call] = name

    def result(self, call, outcome, code, words):
        tool = self.open.pop(call, "(unnamed tool)")
        if outcome == "rejected":
            self.rejected += 1
        elif outcome == "failed":
            self.errors += 1
            self.run += 1
            self.longest_run = max(self.longest_run, self.run)
            self.error_open, self.recovered = True, False
            self.tool_errors[tool] += 1
            self.classes[error_class(words, code)] += 1
        else:
            self.run = 0
            if self.error_open:
                self.recovered = True

    def grade(self):
        if self.request is None or self.model_calls == 0:
            return None
        rate = self.errors / self.model_calls
        calls = self.tool_calls
        if rate == 0 and calls <= 10:
            efficient = 5
        elif rate <= 0.1 and calls <= 15:
            efficient = 4
        elif rate <= 0.25 and calls <= 25:
            efficient = 3
        else:
            efficient = 2 if rate <= 0.4 else 1
        text = self.response
        points = says(text, DONE) + says(text, OUTPUT) - says(text, FAILED)
        points += (rate <= 0.1) - (rate > 0.3) - (len(text.strip()) < 20)
        repeated = self.longest_run >= 3
        loop = self.longest_run >= 5 or self.model_calls > 50
        quality = 3.0 + (len(text) > 500) + (len(text) > 1000) + ("```" in text)
        quality += 0.5 * (LINKS.search(text) is not None)
        quality -= repeated + (self.errors > 5) + 2 * loop
        beginning = self.request[:2000]
        return {
            "session_id": self.id,
            "model": self.models[0] if self.models else None,
            "session_start": self.start and self.start.isoformat(),
            "duration": (self.end - self.start).total_seconds() if self.start else None,
            "completed": points > 0,
            "efficient": efficient,
            "quality": int(min(max(quality + 0.5, 1), 5)),
            "recovered": self.recovered or not self.error_open,
            "model_calls": self.model_calls,
            "tool_calls": calls,
            "messages": self.messages,
            "rejected": self.rejected,
            "pending": len(self.open),
            "errors": self.errors,
            "error_types": [name for name, _ in self.classes.most_common()],
            "tools_with_errors": [name for name, _ in self.tool_errors.most_common()],
            "repeated": repeated,
            "loop": loop,
            "clarified": self.clarified,
            "task_type": next((name for name, rule in TASKS if rule.search(beginning)), "general"),
            "summary": " ".join(self.request.split())[:240],
            "tokens": self.tokens,
        }


def says(text, rule):
    return any(not negated(text[: hit.start()]) for hit in rule.finditer(text))


def negated(before):
    for word in CLAUSE.split(before)[-1].split()[-3:]:
        word = word.strip("\"()[]{}<>*_`#-+=/\\|").lower().replace("’", "'")
        if word in NEGATIONS or word.endswith("n't"):
            return True
    return False


def error_class(words, code):
    head, tail = words[:1500], words[-1500:]
    for part in (head, tail):
        for name, rule in ERRORS:
            if rule.search(part):
                return name
    if code == 124:
        return "timeout"
    if code or (code is None and EXIT_CODE.search(head)):
        return "command_failed"
    return "unknown"


def text_of(content):
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") or "" for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if part)
    return ""


def read_claude(path):
    session = Session()
    stem = os.path.basename(path).split(".")[0]
    records = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record.get("type") in ("user", "assistant") and record.get("message"):
                records.append(record)
    kept = branch(records)
    counted = {}
    for record in records:
        if record.get("uuid") not in kept:
            continue
        session.id = record.get("sessionId") or stem
        session.saw(record.get("timestamp"))
        message = record["message"]
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if record["type"] == "assistant":
            claude_answer(session, message, content, counted)
        else:
            claude_user(session, record, content)
    return session


def claude_answer(session, message, content, counted):
    if message.get("model") and message["model"] not in session.models:
        session.models.append(message["model"])
    continues = message.get("id") in counted
    usage = message.get("usage") or {}
    counted[message.get("id")] = usage
    session.tokens["input"] += usage.get("input_tokens", 0)
    session.tokens["output"] += usage.get("output_tokens", 0)
    texts = [block["text"] for block in content if block["type"] == "text"]
    calls = [(block["id"], block["name"]) for block in content if block["type"] == "tool_use"]
    session.assistant("\n".join(texts), calls, continues)


def claude_user(session, record, content):
    words = []
    for block in content:
        if block["type"] == "tool_result":
            text = text_of(block.get("content"))
            if "<system-reminder>" in text:
                text = REMINDERS.sub("", text).rstrip()
            outcome, code = "ok", None
            if block.get("is_error"):
                inner = text.lstrip().removeprefix("<tool_use_error>")
                refused = inner.removeprefix("Error: ").startswith(REFUSED)
                outcome = "rejected" if refused else "failed"
                found = CODE.match(inner)
                code = int(found[1]) if found else None
            session.result(block["tool_use_id"], outcome, code, text)
        elif block["type"] == "text":
            words.append(NOTES.sub("", block["text"]).strip())
    text = "\n".join(words)
    is_human = not record.get("isMeta") and not text.lstrip().startswith(CLAUDE_HARNESS)
    session.user(text, is_human)


def branch(records):
    """Ids of the records that belong to the session as it went on."""
    nodes, places, last, firm = [], {}, None, None
    for record in records:
        message = record["message"]
        is_firm = record["type"] == "assistant" or not (
            isinstance(message.get("content"), list)
            and any(block["type"] == "tool_result" for block in message["content"])
        )
        parent = places.get(record.get("parentUuid"), last)
        places[record.get("uuid")] = last = len(nodes)
        nodes.append((parent, message.get("id"), is_firm))
        if is_firm:
            firm = last
    kept, messages = set(), set()
    place = firm if firm is not None else last
    while place is not None and place not in kept:
        kept.add(place)
        parent, message, _ = nodes[place]
        if message:
            messages.add(message)
        place = parent
    ids = set()
    for place, (parent, message, is_firm) in enumerate(nodes):
        hangs = not is_firm and (parent is None or parent in kept)
        if place in kept or hangs or message in messages:
            kept.add(place)
            ids.add(records[place].get("uuid"))
    return ids


def read_codex(path):
    session = Session()
    in_call = False
    waiting = None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            kind, payload = record.get("type"), record.get("payload") or {}
            inner = payload.get("type")
            if kind == "session_meta":
                session.id = session.id or payload.get("id")
                session.saw(payload.get("timestamp"))
            elif kind == "turn_context" and payload.get("model") not in session.models:
                session.models.append(payload.get("model"))
            elif kind == "event_msg" and inner == "token_count" and payload.get("info"):
                session.tokens = payload["info"]["total_token_usage"]
            elif kind == "event_msg" and inner == "user_message":
                waiting, in_call = None, False
                text = payload["message"]
                session.saw(record.get("timestamp"))
                session.user(text, not text.lstrip().startswith(CODEX_HARNESS))
            elif kind == "response_item":
                session.saw(record.get("timestamp"))
                if waiting is not None:
                    session.user(waiting, False)
                    waiting, in_call = None, False
                if inner == "message" and payload["role"] == "user":
                    waiting = text_of(payload["content"])
                elif inner == "message" and payload["role"] == "assistant":
                    session.assistant(text_of(payload["content"]), [], in_call)
                    in_call = True
                elif inner == "reasoning" and text_of(payload.get("summary")):
                    session.assistant("", [], in_call)
                    in_call = True
                elif inner == "function_call":
                    calls = [(payload["call_id"], payload["name"])]
                    session.assistant("", calls, in_call)
                    in_call = True
                elif inner == "function_call_output":
                    in_call = False
                    output = payload["output"]
                    code = None
                    if isinstance(output, str) and output.startswith("{"):
                        try:
                            inside = json.loads(output)
                            output, code = inside["output"], inside["metadata"]["exit_code"]
                        except (ValueError, KeyError):
                            pass
                    outcome = "ok" if code == 0 else "unknown" if code is None else "failed"
                    session.result(payload["call_id"], outcome, code, text_of(output))
    if waiting is not None:
        session.user(waiting, False)
    return session


def read_hermes(path):
    with open(path, encoding="utf-8") as file:
        snapshot = json.load(file)
    session = Session()
    session.id = snapshot["session_id"]
    session.models.append(snapshot.get("model"))
    session.saw(snapshot.get("session_start"))
    session.saw(snapshot.get("last_updated"))
    for message in snapshot["messages"]:
        text = text_of(message.get("content"))
        if message["role"] == "user":
            session.user(text)
        elif message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            calls = [(call["id"], call["function"]["name"]) for call in calls]
            session.assistant(text, calls, False)
        elif message["role"] == "tool":
            outcome, code, words = hermes_outcome(text)
            session.result(message.get("tool_call_id"), outcome, code, words)
    return session


def hermes_outcome(text):
    trimmed = text.lstrip()
    if trimmed.startswith("{"):
        try:
            value, _ = DECODER.raw_decode(trimmed)
        except ValueError:
            value = {}
        code, error = value.get("exit_code"), value.get("error")
        meaning = value.get("exit_code_meaning") or ""
        harmless = any(words in meaning for words in HARMLESS)
        failed = error or value.get("success") is False or (code and not harmless)
        outcome = "failed" if failed else "ok" if code is not None else "unknown"
        return outcome, code, str(error) if error else text
    return "failed" if trimmed[:40].lower().startswith(FAILURES) else "unknown", None, text


def grade_file(path):
    with open(path, encoding="utf-8") as file:
        beginning = file.read(400)
    if path.endswith(".json"):
        session = read_hermes(path)
    elif '"session_meta"' in beginning:
        session = read_codex(path)
    else:
        session = read_claude(path)
    return session.grade()


def main():
    processes, folder = int(sys.argv[1]), sys.argv[2]
    paths = [os.path.join(below, name) for below, _, names in os.walk(folder) for name in names]
    if processes == 1:
        grades = [grade_file(path) for path in paths]
    else:
        with Pool(processes) as pool:
            grades = list(pool.imap_unordered(grade_file, paths))
    grades = [grade for grade in grades if grade]
    count = len(grades)
    mean = lambda key: sum(grade[key] for grade in grades) / count
    total = lambda key: sum(grade[key] for grade in grades)
    print(json.dumps({
        "sessions": count,
        "model_calls": total("model_calls"),
        "tool_calls": total("tool_calls"),
        "errors": total("errors"),
        "mean_completed": mean("completed"),
        "mean_efficient": mean("efficient"),
        "mean_quality": mean("quality"),
        "mean_recovered": mean("recovered"),
    }))


if __name__ == "__main__":
    main()
