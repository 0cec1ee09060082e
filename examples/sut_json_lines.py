#!/usr/bin/env python3
"""A system under test that speaks JSON Lines: the template for agents of your own.

selftest starts it once per case, in the project folder. One JSON object per line:

    stdin   {"type": "task", "session_id", "task_group_id", "task_type", "prompt"}
            {"type": "reply", "reply"}             after AWAITING_RESPONSE only
    stdout  {"type": "result", "status", "output"} once for the task and for each reply
                                                   (and may add "tool_calls", "tokens")
            {"type": "log", ...}                   any other type is read over

status is COMPLETE, AWAITING_RESPONSE or ERROR. stderr is kept in the report.
"""

import json
import sys
from pathlib import Path


def answer(prompt):
    """Replace this by your agent: a prompt in, (status, output) out."""
    vague = len(prompt.split()) < 4 or "something" in prompt.lower()
    if vague:
        return "AWAITING_RESPONSE", "Which file or topic do you mean?"
    words = {word.strip(".,?!`'\"").lower() for word in prompt.split() if len(word) > 3}
    readme = next((path for path in sorted(Path(".").glob("README*")) if path.is_file()), None)
    if readme is None:
        return "COMPLETE", "I found no README in this project, so I cannot say."
    lines = [line.strip() for line in readme.read_text(errors="replace").splitlines()]
    hits = [line for line in lines if words & set(line.lower().split())][:5]
    if not hits:
        return "COMPLETE", f"{readme.name} says nothing about that."
    return "COMPLETE", f"{readme.name} says:\n" + "\n".join(f"- {line}" for line in hits)


def say(message):
    print(json.dumps(message), flush=True)  # Without flush the answer stays in this process.


def main():
    task = ""
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "task":
            task = message["prompt"]
            say({"type": "log", "text": f"working on {message['session_id']}"})
            status, output = answer(task)
        else:
            status, output = answer(f"{task} {message['reply']}".replace("something", ""))
        say({"type": "result", "status": status, "output": output})


if __name__ == "__main__":
    main()
