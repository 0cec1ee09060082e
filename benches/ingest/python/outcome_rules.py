"""What became of the task of a session: checks_passed, contradicted, claimed or unknown, by the rules of
outcome/track.rs and outcome/output.rs. Verifiers are left out: these formats have none.
"""

import re

from cause_rules import beginning, ending, error_class
from command_rules import matters, steps, work
from objection_rules import objects, request_of

# Calls that wait for their results, runs and files that are kept; bytes of a command.
MAX_OPEN = 64
MAX_RUNS = 16
MAX_CREATED = 500
WORDS = 1000
# Bytes at each end of an output that are looked at: summaries stand at the end.
HEAD = 1000
TAIL = 4000

FAILS = re.compile(
    r"\b[1-9]\d* (?:tests? |specs? |suites? )?(?:failed|failing|failures?|errored|broken)\b|\b[1-9]\d* errors?\b|(?:failures|errors)=[1-9]|^(?:E  |FAIL(?:ED)?\b|--- FAIL)|test result: FAILED|\bBUILD (?:FAILED|FAILURE)|^error(?:\[E\d+\])?:|\berror TS\d+|npm ERR!|could not compile|^Traceback \(most recent call last\)|panicked at|✗|✕|\bTests: +[1-9]\d* failed",
    re.A | re.M,
)
PASSES = re.compile(
    r"\b[1-9]\d* (?:tests? |specs? )?(?:passed|passing|ok|succeeded)\b|test result: ok\. [1-9]|^ok\s+\S+|^PASS\b|^OK(?: \([1-9]\d* tests?|$)|\bBUILD SUCCESS|\b[1-9]\d* (?:examples|runs|tests), .*\b0 failures|\bAll checks passed|Success: no issues found|\b0 errors\b|Found 0 errors|^\s*Finished .*(?:dev|release|test|profile)|✓ built in|Compiled successfully|All tests passed|\b100% tests passed|\bpassed in \d|All files pass|All matched files use",
    re.A | re.M,
)
NOTHING = re.compile(
    r"\bno tests? (?:ran|found|to run|files? found|were executed)|collected 0 items|\bran 0 tests|^0 tests|\bno test files\b|\b0 passed\b|\brunning 0 tests|missing script|unrecognized arguments|^usage:|no such option",
    re.A | re.I | re.M,
)
COULD_NOT_RUN = {
    "tool_not_found", "file_not_found", "permission_denied", "timeout", "network_error",
}


class Outcome:
    """Follows a session. Each run of a check is its kind, its command, its event, and whether it
    ran only tests that were made in the session."""

    def __init__(self):
        self.open = {}
        self.has_changed = False
        self.created = set()
        self.passed = []
        self.failed = []
        self.is_merged = False
        self.objected_at = None
        self.corrections = 0
        self.has_answered = False
        self.previous = None

    def say(self, text, event):
        """A person says something."""
        text = text.strip()
        if not text:
            return
        if self.has_answered:
            objects_to_it, self.previous = objects(text, self.previous)
        else:
            objects_to_it, self.previous = False, request_of(text)
        if objects_to_it:
            self.object(event)
        else:
            # The person goes on with something else: what was wrong is settled.
            self.objected_at = None

    def object(self, event):
        self.corrections += 1
        self.objected_at = event

    def call(self, call, name, arguments):
        effect = work(name, arguments)
        if not effect:
            return
        if effect[0] == "edit":
            self.change(effect[1], effect[2])
            return
        found = steps(effect[1])
        if found and len(self.open) < MAX_OPEN:
            self.open[call] = (found, beginning(effect[1], WORDS))

    def failed_check(self, call):
        """The kind of check that a call runs, as far as it says why it failed."""
        found, _ = self.open.get(call, ((), None))
        checks = (step[1] for step in found if step[0] == "check")
        return next((kind for kind in checks if kind != "ci"), None)

    def change(self, path, is_whole):
        if path and not matters(path):
            return
        self.has_changed = True
        self.passed.clear()
        self.failed.clear()
        self.is_merged = False
        # What runs beside the change has not seen it.
        for call, (found, command) in self.open.items():
            if any(step[0] == "check" for step in found):
                self.open[call] = ([step for step in found if step[0] != "check"], command)
        if is_whole and len(self.created) < MAX_CREATED:
            self.created.add(base_name(path))

    def result(self, event, call, outcome, code, words):
        opened = self.open.pop(call, None)
        # What was refused has not been done.
        if not opened or outcome == "rejected":
            return
        found, command = opened
        is_alone = sum(step[0] == "check" for step in found) == 1
        for step in found:
            if step[0] == "change":
                self.change("", False)
            elif step[0] == "merge":
                self.is_merged = self.is_merged or outcome == "ok"
            else:
                _, kind, targets, code_tells = step
                exit_is_zero = None
                if outcome == "ok" and not code and code_tells:
                    exit_is_zero = True
                elif outcome == "failed" and is_alone:
                    exit_is_zero = False
                passes = check_result(exit_is_zero, words)
                if passes is not None:
                    is_own = bool(targets) and all(base_name(path) in self.created
                                                   for path in targets)
                    self.end_check(passes, (kind, command, event, is_own))

    def end_check(self, passes, run):
        runs, others = (self.passed, self.failed) if passes else (self.failed, self.passed)
        # The same run again, without a change between them.
        for known in (runs, others):
            known[:] = [one for one in known if one[1] != run[1]]
        if len(runs) >= MAX_RUNS:
            runs.pop(0)
        runs.append(run)

    def end(self, claims):
        settled = "claimed" if claims else "unknown"
        if self.objected_at is not None:
            is_checked = any(event > self.objected_at for _, _, event, _ in self.passed)
            return settled if is_checked else "contradicted"
        if self.failed and (self.has_changed or claims):
            if not self.passed or self.failed[-1][2] > self.passed[-1][2]:
                return "contradicted"
        if self.is_merged:
            return "checks_passed"
        if not self.has_changed or self.failed:
            return settled
        # That it builds says little of what it does.
        is_proved = any(kind == "ci" or (kind == "tests" and not is_own)
                        for kind, _, _, is_own in self.passed)
        return "checks_passed" if is_proved else settled


def base_name(path):
    return re.split(r"[/\\]", path)[-1]


def check_result(exit_is_zero, words):
    """Whether a check passed; None where it did not run or ran nothing."""
    said = words
    if len(words) > HEAD + TAIL or not words.isascii():
        head = beginning(words, HEAD + TAIL)
        if len(head) < len(words):
            said = f"{beginning(words, HEAD)}\n{ending(words, TAIL)}"
    fails, passes = FAILS.search(said), PASSES.search(said)
    nothing = NOTHING.search(said)
    if exit_is_zero is False:
        if not fails and (nothing or did_not_run(words)):
            return None
        return False
    if fails:
        return None if nothing and not passes else False
    if exit_is_zero:
        return None if nothing and not passes else True
    return True if passes else None


def did_not_run(words):
    return (
        error_class(words, None) in COULD_NOT_RUN
        or "command not found" in words
        or "No module named" in words
    )
