"""What a tool call does to the work: checks, changes of files, merges, by the rules of
outcome/tools.rs and outcome/command.rs.
"""

import json
import re

from cause_rules import beginning

SHELLS = {
    "bash", "shell", "exec_command", "run_shell_command", "run_terminal_cmd",
    "run_terminal_command", "run_in_terminal", "execute_command", "execute_bash", "terminal", "run",
    "local_shell", "shell_command", "run_command", "container.exec", "unified_exec",
    "cmdrunaction", "powershell", "command",
}
EDITORS = {
    "edit", "multiedit", "write", "notebookedit", "create", "insert", "append", "str_replace",
    "str_replace_editor", "str_replace_based_edit_tool", "apply_patch", "apply_diff", "write_file",
    "writefile", "write_to_file", "write_new_file", "replace", "replace_in_file",
    "replace_file_content", "edit_file", "edit_block", "create_file", "delete_file",
    "insert_content", "search_and_replace", "patch", "file_editor", "multi_edit", "hashline_edit",
    "fileeditaction",
}
PATHS = (
    "file_path", "filePath", "path", "target_file", "notebook_path", "filename", "absolute_path",
    "file",
)
COMMANDS = ("command", "cmd", "script", "CommandLine", "code", "input")
IN_BACKGROUND = ("run_in_background", "is_background", "background")

# Bytes and commands of a line that are looked at.
LOOKED_AT = 8 * 1024
MAX_SEGMENTS = 64

# A word up to what ends it, quotes and escapes included; `<` where it is alone.
QUOTED = r"""<(?!<)|'[^']*(?:'|\Z)|"(?:[^"\\]++|\\.)*(?:"|\\?\Z)"""
REST = rf"""(?:[^\s'"\\<>&|;]++|{QUOTED}|\\(?:.|\Z))*+"""
WORD = re.compile(rf"""(?:[^\s'"\\#<>&|;(){{}}]|{QUOTED}|\\[^\n]){REST}""", re.S)
REST = re.compile(REST, re.S)
# Words without any of that, and what stands behind them.
WORDS = re.compile(r"""(?:[^\s'"\\#<>&|;(){}][^\s'"\\<>&|;]*+[^\S\n]++)++""")
SPECIAL = re.compile(r"""['"\\#<>&|;(){}\n]""")
# Between words; an escaped end of line is nothing.
BLANK = re.compile(r"(?:[^\S\n]|[(){}]|<<<|\\(?:\n|\Z)|#[^\n]*)+")
HEREDOC = re.compile(r"""<<-*\s*([^\s;|&)>]*)""")
REDIRECT = re.compile(r">[>|]*(&[\d-]*)?", re.A)
LINK = re.compile(r"&&|\|\||[&|;\n]")
PARTS = re.compile(r"""'([^']*)'?|"((?:[^"\\]++|\\.)*)["\\]?|\\(.?)""", re.S)
ESCAPED = re.compile(r"\\(.)", re.S)

# Flags of docker's that have a value.
WITH_VALUES = {
    "-u", "-w", "-e", "-v", "-f", "-p", "-l", "--user", "--workdir", "--env", "--env-file",
    "--volume", "--file", "--project-name", "--project-directory", "--profile", "--publish",
    "--name", "--entrypoint", "--label", "--index", "--detach-keys", "--ansi",
}

ELSEWHERE = ("/dev/", "/tmp/", "/var/tmp/", "/private/tmp/", "/proc/", "&")
NOTES = {"md", "mdx", "rst", "adoc", "log", "out", "patch"}
ASSIGNMENT = re.compile(r"\w+=", re.A)

# They only say what would be run, or run for ever.
IDLE = {
    "--help", "-h", "--version", "-V", "--collect-only", "--co", "--list", "--dry-run", "--watch",
    "--list-tests", "--fixtures",
}
TESTS = {
    "pytest", "py.test", "tox", "nox", "nosetests", "jest", "mocha", "ava", "rspec", "phpunit",
    "pest", "ctest", "bats", "prove", "runtests.py", "behave", "cucumber", "busted",
}
BUILDS = {
    "tsc", "gcc", "g++", "clang", "clang++", "javac", "rustc", "webpack", "rollup",
}
LINTERS = {
    "eslint", "flake8", "pylint", "mypy", "pyright", "golangci-lint", "rubocop", "shellcheck",
    "stylelint", "biome", "oxlint", "ktlint", "swiftlint", "hadolint", "markdownlint", "ty",
}
PLAIN = {name: kind for names, kind in ((TESTS, "tests"), (BUILDS, "build"), (LINTERS, "lint"))
         for name in names}
MODULES = {
    "pytest": "tests", "unittest": "tests", "nose": "tests", "nose2": "tests", "doctest": "tests",
    "tox": "tests", "nox": "tests", "mypy": "lint", "flake8": "lint", "ruff": "lint",
    "pylint": "lint", "build": "build",
}
GOALS = {
    "mvn", "mvnw", "gradle", "gradlew", "sbt", "lein", "mix", "stack", "cabal", "swift", "flutter",
    "dart", "bazel", "dotnet", "rake", "rails", "xcodebuild", "composer", "meson", "dune",
    "elm-test", "zig",
}
TEST_GOALS = {"test", "verify", "check", "spec", "runtest"}
BUILD_GOALS = {"build", "compile", "package", "assemble", "install", "publish"}
SCRIPTS = [
    ("tests", re.compile(r"(?:^|[:\-_.])(?:test|spec|e2e)")),
    ("lint", re.compile(r"(?:^|[:\-_.])(?:lint|format)")),
    ("build", re.compile(r"(?:^|[:\-_.])(?:build|compile|type|check|tsc)")),
]
STARTERS = {
    "sudo", "env", "time", "command", "exec", "nohup", "xvfb-run", "npx", "bunx", "if", "then",
    "do", "!",
}
PAIRS = {(one, "run") for one in ("poetry", "uv", "pipenv", "hatch", "rye", "pdm", "pixi")}
PAIRS |= {(one, other) for one in ("pnpm", "npm", "yarn") for other in ("exec", "dlx")}
PAIRS |= {("bundle", "exec"), ("mise", "exec")}
TIMERS = {"timeout", "nice", "gtimeout"}
TIME_BEGINS = tuple("-0123456789")
TRUNKS = {"main", "master", "develop", "upstream", "origin"}
GIT_CHANGES = {
    "apply", "am", "restore", "reset", "revert", "stash", "cherry-pick", "pull", "rebase", "rm",
    "mv",
}
WRITING_CODE = ("write_text(", ".write(", "writeFileSync", "File.write")


def tool_of(name):
    """The name of a tool without that of its server."""
    return name.rpartition("__")[2].lower()


def is_shell(name):
    return tool_of(name) in SHELLS


def work(name, arguments):
    """What a call does: ("edit", path, whether it is written whole), ("command", its text) or
    None."""
    tool = tool_of(name)
    edits, runs = tool in EDITORS, tool in SHELLS
    if isinstance(arguments, str):
        text = arguments.lstrip()
        if not text.startswith(("{", "[")):
            if edits:
                return edit_in_words(tool, text)
            return ("command", text) if text and (runs or text.startswith(name)) else None
        if not edits and not runs:
            return None
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
    if edits:
        return edit(tool, arguments)
    return command_of(arguments) if runs else None


def edit_in_words(tool, text):
    words = text.split(None, 2)
    if not words or words[0].lower() != tool:
        return ("edit", "", tool == "create")
    path = words[1] if len(words) > 1 else ""
    return None if path == "view" else ("edit", path, tool == "create")


def edit(tool, arguments):
    path = command = None
    if isinstance(arguments, dict):
        known = [arguments[key] for key in PATHS if arguments.get(key) is not None]
        path, command = known[0] if known else None, arguments.get("command")
        if not all(isinstance(one, (str, type(None))) for one in (*known, command)):
            path = command = None
    if command == "view":
        return None
    return ("edit", path or "", command == "create" or tool.startswith(("write", "create")))


def command_of(arguments):
    if isinstance(arguments, dict):
        for key in IN_BACKGROUND:
            if arguments.get(key) is True:
                return None
        command = None
        for key in COMMANDS:
            command = arguments.get(key)
            if command is not None:
                break
        arguments = command
    if isinstance(arguments, list):
        arguments = arguments[-1] if arguments else None
    return ("command", arguments) if isinstance(arguments, str) else None


def steps(command):
    """The steps of a command that count: ("check", kind, targets, whether the code tells),
    ("change",) or ("merge",)."""
    command = beginning(command, LOOKED_AT)
    segments = segments_of(command)
    found = []
    # What a check prints is no change of files, wherever it is kept.
    is_printed = False
    for at, (words, outputs, _) in enumerate(segments):
        is_printed = is_printed and segments[at - 1][2] == "|"
        own = without_wrappers(words)
        kind = check(own)
        if kind:
            passing = ("&&", "|") if "pipefail" in command else ("&&",)
            tells = all(link in passing for _, _, link in segments[at:-1])
            tells = tells and not (at and segments[at - 1][2] == "||")
            found.append(("check", kind, targets(own), tells))
            is_printed = True
        elif is_merge(own):
            found.append(("merge",))
        elif not is_printed and (changes(own, words) or any(map(matters, outputs))):
            found.append(("change",))
    return found


def matters(path):
    """Whether a change of this file can change what tests say."""
    if not path or path.startswith(ELSEWHERE) or "/.claude/" in path:
        return False
    _, dot, extension = path.rpartition(".")
    return not dot or extension.lower() not in NOTES


def segments_of(command):
    """The commands of a line: their words, the files that their output goes to, what follows."""
    if not SPECIAL.search(command):
        words = command.split()
        return [(words, [], ";")] if words else []
    found, words, outputs, heredocs = [], [], [], []
    redirects, word, at, end = False, None, 0, len(command)
    while at < end:
        if word is None:
            if not redirects:
                hit = WORDS.match(command, at)
                if hit:
                    words += hit[0].split()
                    at = hit.end()
                    continue
            hit = WORD.match(command, at)
            if hit:
                word, at = bare(hit[0]), hit.end()
                continue
        char = command[at]
        if char == "<" and not command.startswith("<<<", at):
            if is_arithmetic(command, at):
                word, at = (word or "") + "<<", at + 2
            else:
                hit = HEREDOC.match(command, at)
                heredocs.append(hit[1].strip("'\"\\"))
                at = hit.end()
            if word is not None:
                hit = REST.match(command, at)
                word, at = word + bare(hit[0]), hit.end()
            continue
        if char == ">":
            # `2>&1` and `>>`.
            if word and not (word.isascii() and word.isdigit()):
                words.append(word)
            word = None
            hit = REDIRECT.match(command, at)
            redirects, at = redirects or hit[1] is None, hit.end()
            continue
        if char == "&" and command.startswith(">", at + 1):
            at += 1
            continue
        if word is not None:
            (outputs if redirects else words).append(word)
            word, redirects = None, False
        hit = LINK.match(command, at)
        if not hit:
            at = BLANK.match(command, at).end()
            continue
        at, link = hit.end(), hit[0]
        if link == "\n" and heredocs:
            for name in heredocs:
                at = behind_heredoc(name, command, at)
            heredocs = []
        if words or outputs:
            found.append((words, outputs, link))
            words, outputs = [], []
            if len(found) >= MAX_SEGMENTS:
                return found
    if word is not None:
        (outputs if redirects else words).append(word)
    if words or outputs:
        found.append((words, outputs, ";"))
    return found


def is_arithmetic(command, at):
    """Whether what follows stands in `$((…))`, where `<<` is an operator."""
    line = command.rfind("\n", 0, at) + 1
    return command.rfind("((", line, at) > command.rfind("))", line, at)


def bare(word):
    """A word without its quotes and escapes."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return PARTS.sub(unquoted, word)


def unquoted(hit):
    single, double, escaped = hit.groups()
    if double is not None:
        return ESCAPED.sub(r"\1", double) if "\\" in double else double
    if single is not None:
        return single
    return "" if escaped == "\n" else escaped


def behind_heredoc(name, command, at):
    while at < len(command):
        end = command.find("\n", at) + 1 or len(command)
        line, at = command[at:end], end
        if line.strip() == name:
            break
    return at


def count_while(words, is_one):
    for count, word in enumerate(words):
        if not is_one(word):
            return count
    return len(words)


def is_flag(word):
    return word.startswith("-")


def container_flags(words):
    """How many of the first words are flags of docker's, with their values."""
    count = 0
    while count < len(words) and is_flag(words[count]):
        count += 2 if words[count] in WITH_VALUES else 1
    return min(count, len(words))


def is_time(word):
    return word.startswith(TIME_BEGINS)


def without_wrappers(words):
    """The words of the program itself, behind assignments and programs that start others."""
    while words:
        first = words[0]
        program = first.rpartition("/")[2]
        second = words[1] if len(words) > 1 else ""
        if program in STARTERS or ("=" in first and ASSIGNMENT.match(first)):
            skipped = 1
        elif (program, second) in PAIRS:
            skipped = 2
        elif program in TIMERS:
            skipped = 1 + count_while(words[1:], is_time)
        elif program in ("docker", "podman") and second == "exec":
            skipped = 3 + container_flags(words[2:])
        elif program == "docker-compose" or (
            program in ("docker", "podman") and second == "compose"
        ):
            start = 1 if first.endswith("-compose") else 2
            verb = start + container_flags(words[start:])
            if words[verb : verb + 1] not in (["exec"], ["run"]):
                return words
            skipped = verb + 2 + container_flags(words[verb + 1 :])
        else:
            return words
        words = words[skipped:]
        words = words[count_while(words, is_flag) :]
    return words


def check(words):
    """The kind of check that the words run."""
    if not words:
        return None
    first = words[0]
    name = first.rpartition("/")[2]
    while name.endswith(".exe"):
        name = name[:-4]
    kind = PLAIN.get(name)
    if not kind:
        rule = PROGRAMS.get(name)
        if name.startswith("python"):
            rule = of_python
        if rule:
            verb = next((word for word in words[1:] if word[:1] not in ("-", "+")), "")
            kind = rule(name, verb, words)
        elif len(words) <= 3 and (name.endswith(".sh") or "/" in first):
            kind = of_script(name.removesuffix(".sh"))
            kind = kind if kind == "tests" else None
    return kind if kind and IDLE.isdisjoint(words[1:]) else None


def of_script(script):
    script = script.lower()
    return next((kind for kind, rule in SCRIPTS if rule.search(script)), None)


def of_python(name, verb, words):
    if "-m" in words:
        at = words.index("-m") + 1
        return MODULES.get(words[at]) if at < len(words) else None
    script = verb.rpartition("/")[2]
    is_test = script in ("manage.py", "setup.py") and "test" in words[1:]
    return "tests" if is_test or script == "runtests.py" else None


def of_cargo(name, verb, words):
    runs = "--no-run" not in words
    if runs and (verb in ("test", "t") or (verb == "nextest" and "run" in words)):
        return "tests"
    if verb in ("build", "b", "check", "c", "test"):
        return "build"
    return "lint" if verb == "clippy" or (verb == "fmt" and "--check" in words) else None


def of_go(name, verb, words):
    return {"test": "tests", "build": "build", "install": "build", "vet": "lint"}.get(verb)


def of_packages(name, verb, words):
    at = next((at for at, word in enumerate(words) if word in ("run", "run-script", "task")), None)
    if at is not None:
        # Flags before it may have values: `pnpm --filter web run build`.
        script = next((word for word in words[at + 1 :] if not is_flag(word)), "")
    elif verb == "workspace":
        script = "".join([word for word in words[1:] if not is_flag(word)][2:3])
    else:
        script = verb
    if script in ("t", "tst", "jest", "vitest", "mocha"):
        return "tests"
    return {"tsc": "build", "eslint": "lint"}.get(script) or of_script(script)


def of_goals(name, verb, words):
    goals = {word.rpartition(":")[2] for word in words[1:]}
    skips = any(word == "-x" or "skipTests" in word for word in words)
    if not skips and not goals.isdisjoint(TEST_GOALS):
        return "tests"
    if not goals.isdisjoint(BUILD_GOALS):
        return "build"
    return "lint" if goals & {"analyze", "credo"} else None


def of_make(name, verb, words):
    goal = next((word for word in words[1:] if not is_flag(word) and "=" not in word), "all")
    if len(words) == 1 or goal == "all":
        return "build"
    return "tests" if goal == "check" else of_script(goal)


def of_others(name, verb, words):
    has = lambda word: word in words[1:]
    if name in ("vitest", "karma"):
        return "tests" if verb != "watch" else None
    if name in ("playwright", "cypress"):
        return "tests" if verb in ("test", "run") else None
    if name == "node":
        return "tests" if has("--test") else None
    if name == "cmake":
        return "build" if has("--build") else None
    if name in ("vite", "next", "nuxt", "astro"):
        return "build" if verb == "build" else None
    if name == "ruff":
        return "lint" if verb != "format" or has("--check") else None
    if name in ("black", "isort", "prettier"):
        return "lint" if has("--check") or has("-c") else None
    if name == "pre-commit":
        return "lint" if verb == "run" else None
    asks = (verb == "pr" and has("checks")) or (verb == "run" and has("watch"))
    return "ci" if asks else None


PROGRAMS = {"py": of_python, "pypy3": of_python, "cargo": of_cargo, "go": of_go}
PROGRAMS |= dict.fromkeys(("npm", "pnpm", "yarn", "bun", "deno"), of_packages)
PROGRAMS |= dict.fromkeys(GOALS, of_goals)
PROGRAMS |= dict.fromkeys(("make", "gmake", "just", "task", "ninja"), of_make)
PROGRAMS |= dict.fromkeys((
    "vitest", "karma", "playwright", "cypress", "node", "cmake", "vite", "next", "nuxt", "astro",
    "ruff", "black", "isort", "prettier", "pre-commit", "gh",
), of_others)


def targets(words):
    """The files and folders that a check is confined to."""
    found = []
    for word in words[1:]:
        path = word.partition("::")[0]
        stem, _, extension = path.rpartition(".")
        is_file = stem and 1 <= len(extension) <= 4 and "/" not in extension
        if is_file and not is_flag(word):
            found.append(path)
    return found[:20]


def is_merge(words):
    program = words[0] if words else ""
    if program == "gh":
        return words[1:3] == ["pr", "merge"] and "--auto" not in words[3:]
    if program == "glab":
        return words[1:3] == ["mr", "merge"]
    # Into the branch that others build on; the other way round is an update.
    return program == "git" and words[1:2] == ["merge"] and len(words) > 2 and not any(
        word.startswith(("--abort", "--no-commit")) or not TRUNKS.isdisjoint(word.split("/"))
        for word in words[2:]
    )


def changes(words, all_words):
    """Whether the words change files of the work."""
    if not words:
        return False
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in ("sed", "gsed"):
        return any(word.startswith(("-i", "--in-place")) for word in rest)
    if name == "perl":
        return any(word.startswith("-p") and "i" in word for word in rest)
    if name in ("tee", "touch", "rm", "mv", "truncate", "patch"):
        return any(matters(word) for word in rest if not is_flag(word))
    if name == "cp":
        paths = [word for word in rest if not is_flag(word)]
        return bool(paths) and matters(paths[-1])
    if name == "git":
        verb = rest[0] if rest else ""
        moves = verb == "checkout" and len(words) > 2
        return verb in GIT_CHANGES or (moves and not any(word.startswith("-b") for word in rest))
    if name.startswith("python") or name in ("node", "ruby"):
        return any(code in word for word in all_words for code in WRITING_CODE)
    return name == "apply_patch"
