#!/usr/bin/env python3
"""A system under test behind HTTP: the task API that selftest's default `http` profile speaks.

    POST /api/tasks                  {"task_group_id", "prompt", "task_type"} -> 201 {"task_id", "status"}
    GET  /api/tasks/{task_id}        -> 200 {"task_id", "status", "output"}
    POST /api/tasks/{task_id}/reply  {"reply"} -> 200, or 409 when the task is not waiting

A task goes QUEUED -> RUNNING -> COMPLETE, AWAITING_RESPONSE or ERROR. The work is done in a
thread per task: it reads the README and the pages in docs/ of the folder given.

    python3 examples/sut_http_server.py [--port 5678] [--project .] [--seconds 0.2]

It prints its address once it listens; port 0 takes any free one.
"""

import argparse
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TASKS = {}
LOCK = threading.Lock()


def pages(project):
    found = sorted(project.glob("README*")) + sorted(project.glob("docs/*.md"))
    return {str(page.relative_to(project)): page.read_text(errors="replace") for page in found if page.is_file()}


def answer(project, prompt, replies):
    """Replace this by your agent: (status, output) for a prompt and the replies so far."""
    vague = len(prompt.split()) < 4 or "something" in prompt.lower()
    if vague and not replies:
        return "AWAITING_RESPONSE", "Which file or topic do you mean?"
    asked = " ".join([prompt, *replies]).lower()
    found = pages(project)
    if not found:
        return "ERROR", "this project has neither a README nor docs"
    if "how many" in asked and ("docs" in asked or "pages" in asked or "files" in asked):
        return "COMPLETE", f"There are {len(found)} pages: {', '.join(found)}."
    words = {word.strip(".,?!`'\"") for word in asked.split() if len(word) > 3}
    hits = [
        f"- {name}: {line.strip()}"
        for name, text in found.items()
        for line in text.splitlines()
        if words & {word.strip(".,?!`'\"#*:").lower() for word in line.split()}
    ]
    if not hits:
        return "COMPLETE", f"I read {', '.join(found)} and found nothing about that."
    return "COMPLETE", "The documentation says:\n" + "\n".join(hits[:5])


def work(server, task):
    time.sleep(server.seconds / 2)
    with LOCK:
        task["status"] = "RUNNING"
    time.sleep(server.seconds / 2)
    try:
        status, output = answer(server.project, task["prompt"], task["replies"])
    except Exception as error:  # A task that fails must not stay RUNNING for ever.
        status, output = "ERROR", str(error)
    with LOCK:
        task["status"], task["output"] = status, output


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        parts = self.path.strip("/").split("/")
        with LOCK:
            task = TASKS.get(parts[2]) if parts[:2] == ["api", "tasks"] and len(parts) == 3 else None
            shown = task and {key: task[key] for key in ("task_id", "status", "output")}
        self.send(200, shown) if shown else self.send(404, {"error": "no such task"})

    def do_POST(self):
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except ValueError:
            return self.send(400, {"error": "the body is not JSON"})
        parts = self.path.strip("/").split("/")
        if parts == ["api", "tasks"]:
            return self.submit(body)
        if len(parts) == 4 and parts[:2] == ["api", "tasks"] and parts[3] == "reply":
            return self.reply(parts[2], body)
        return self.send(404, {"error": "no such path"})

    def submit(self, body):
        if not isinstance(body.get("prompt"), str) or not body["prompt"].strip():
            return self.send(400, {"error": "a task needs a prompt"})
        task = {
            "task_id": str(uuid.uuid4()), "status": "QUEUED", "output": None,
            "prompt": body["prompt"], "replies": [],
        }
        with LOCK:
            TASKS[task["task_id"]] = task
        threading.Thread(target=work, args=(self.server, task), daemon=True).start()
        return self.send(201, {"task_id": task["task_id"], "status": "QUEUED"})

    def reply(self, task_id, body):
        if not isinstance(body.get("reply"), str):
            return self.send(400, {"error": "a reply needs a text"})
        with LOCK:
            task = TASKS.get(task_id)
            if task is None:
                return self.send(404, {"error": "no such task"})
            if task["status"] != "AWAITING_RESPONSE":
                return self.send(409, {"error": f"the task is {task['status']}"})
            task["replies"].append(body["reply"])
            task["status"] = "QUEUED"
        threading.Thread(target=work, args=(self.server, task), daemon=True).start()
        return self.send(200, {"task_id": task_id, "status": "QUEUED"})

    def send(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=5678)
    parser.add_argument("--project", type=Path, default=Path("."))
    parser.add_argument("--seconds", type=float, default=0.2, help="how long a task takes")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.project, server.seconds = options.project, options.seconds
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
