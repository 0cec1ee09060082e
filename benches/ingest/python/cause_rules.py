"""Class and cause of a failed tool call, by the rules of error_class.rs and error_cause.rs.

What errors say differs much in length: outputs of programs have thousands of characters. So each
pattern has hints, texts of which one stands in whatever the pattern matches: to look for them takes
a fraction of the time. Patterns that ignore case are in lower case, and so is what they search.
"""

import re

# Bytes at each end of an error that the class and the cause are read from.
CLASS_LOOKED_AT = 1500
CAUSE_LOOKED_AT = 3000

EXCEPTION = re.compile(
    r"""(?:^[ \t]*(?:E[ \t]+)?|: |["'])(?:[A-Za-z0-9_]+\.)*(FileNotFoundError|PermissionError|TimeoutError|TimeoutExpired|SyntaxError|IndentationError|TabError|JSONDecodeError|ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError)(?:[:("']|[ \t\r]*$)""",
    re.A | re.M,
)
CLASS_OF_EXCEPTION = {
    "FileNotFoundError": "file_not_found", "PermissionError": "permission_denied",
    "TimeoutError": "timeout", "TimeoutExpired": "timeout", "SyntaxError": "syntax_error",
    "IndentationError": "syntax_error", "TabError": "syntax_error",
    "JSONDecodeError": "syntax_error",
}

CLASSES = [
    (
        "tool_not_found", True, ("tool", "unknown function"),
        r"\b(unknown tool|no such tool|tool (\S+ )?(does not exist|not found|is not available)|unknown function|invalid tool name)\b",
    ),
    (
        "network_error", True,
        ("connection ", "resolve host", "service not known", "name resolution", "network is unre",
         "no route", "econn", "enotfound", "etimedout", "eai_again", "dns ", "getaddrinfo",
         "socket hang", "tls handshake", "certificate verify"),
        r"\b(connection (refused|reset|aborted|error|timed out|closed)|could not resolve host|name or service not known|temporary failure in name resolution|network is unreachable|no route to host|econnrefused|econnreset|enotfound|etimedout|eai_again|dns (error|lookup)|getaddrinfo|socket hang up|tls handshake|certificate verify failed)\b",
    ),
    (
        "file_not_found", True,
        ("no such file", "does not exist", "not found", "cannot find the", "enoent", "no file"),
        r"\b(no such file or directory|file(\s+\S+)? (does not exist|not found)|path (\S+ )?(does not exist|not found)|directory (\S+ )?(does not exist|not found)|cannot find the (file|path)|enoent|no files? found|does not exist on disk)\b",
    ),
    (
        "permission_denied", True,
        ("denied", "permitted", "eacces", "eperm", "read-only", "forbidden", "unauthori"),
        r"\b(permission denied|access (is )?denied|(operation|action|access|command|call) (is )?not permitted|not permitted (to|by)|eacces|eperm|read-only file system|forbidden|unauthori[sz]ed)\b",
    ),
    (
        "timeout", True,
        ("timed out", "timedout", "time out", "timeout", "deadline exceeded", "time limit"),
        r"\b(timed? ?out|timeout (expired|exceeded|reached|after|error)|deadline exceeded|time limit exceeded)\b",
    ),
    (
        "api_error", True,
        ("rate limit", "too many requests", "quota exceeded", "overloaded", "api error",
         "api_error", "internal server", "bad gateway", "service unavailable", "http", "status",
         " client error", " server error"),
        r"\b(rate limit(s|ed)?|too many requests|quota exceeded|overloaded(_error)?|api[ _]error|internal server error|bad gateway|service unavailable|(http|status)([ _]?(code|error))?[ :=]+[45]\d\d|[45]\d\d (client|server) error)\b",
    ),
    (
        "syntax_error", True,
        ("syntax", "indentationerror", "parse error", "parsing error", "unexpected ",
         "jsondecodeerror", "json.decoder", "unterminated", "unmatched", "failed to parse"),
        r"\b(syntax ?error|invalid syntax|indentationerror|parse error|parsing error|unexpected (token|eof|end of (file|input|json))|jsondecodeerror|json\.decoder|unterminated string|unmatched|failed to parse)\b",
    ),
]
EXIT_CODE = [
    (
        "command_failed", True, ("exit", "returncode", "command failed", "command not found"),
        r'("exit_code"|exit(ed with)?( code| status)|returncode)\D{0,12}-?[1-9]|\bcommand failed\b|command not found',
    ),
]

NUMBER = re.compile(r"[45]\d\d", re.A)
HTTP_STATUS = re.compile(
    r"status (?:code )?[45]\d\d\b|\bhttp(?:/[\d.]+)? [45]\d\d\b|\b[45]\d\d (?:client|server) error|(?:error|code|status)[ :=]+[45]\d\d\b|\b40[134] (?:unauthori|forbidden|not found)|returned error: [45]\d\d",
    re.A,
)
HTTP_ERROR = re.compile(r"internal server error|bad gateway|service unavailable")
CAUSES = [
    (
        "edit_mismatch", True,
        ("string to replace", "no replacement was", "appear verbatim", "not found", "not unique",
         "could not find", "failed to find", "failed to apply", "hunk ", "patch failed",
         "patch does not apply", "occurrences", "no changes to make", "new_string are",
         "invalid context", "similar match"),
        r"string to replace not found|matches of the string to replace|no replacement was performed|did not appear verbatim|old_?(?:str|string|text)\S* (?:was )?not (?:found|unique)|could not find (?:the )?(?:exact )?(?:old|string|text|match|context|expected)|failed to (?:find|apply) (?:context|expected|patch|hunk|edit)|hunk #?\d+ failed|patch (?:failed|does not apply)|search (?:block|string|text|content) (?:was |is )?not found|0 occurrences found|multiple occurrences|no changes to make|old_string and new_string are|invalid context|no sufficiently similar match",
    ),
    (
        "not_read_yet", True, ("file has not been read yet", "must ", "need to ", "read it first"),
        r"file has not been read yet|(?:must|need to) (?:first )?(?:read|view|open) (?:the |this )?file|read it first before",
    ),
    (
        "stale_file", True, ("modified ", "changed ", "unexpectedly modified"),
        r"(?:has been |was )(?:modified|changed) (?:since|externally|by)|file (?:content )?(?:has )?changed since|unexpectedly modified",
    ),
    (
        "refused", True,
        ("user doesn", "user rejected", "user declined", "user denied", "user cancelled",
         "user refused", "user chose not", "rejected by ", "granted", "requires approval",
         "user did not ", "cancelled by user"),
        r"^\W*(?:the )?user (?:doesn.t want|rejected|declined|denied|cancelled|refused|chose not)|rejected by (?:the )?user|you haven.t granted|requires approval|user did not (?:allow|approve)|operation cancelled by user",
    ),
    (
        "bad_arguments", True,
        ("inputvalidationerror", "required ", "invalid ", "parameter ", "argument ", "property ",
         "keyword argument", "params must have", "not have additional properties", "validation error", "invalid_type",
         "failed to parse "),
        r"inputvalidationerror|required parameter|missing (?:a )?required (?:argument|param|property|field)|invalid (?:arguments?|parameters?|params|tool input|input) (?:for|to|:)|(?:parameter|argument|property) `?\w+`? (?:is missing|is required|must be)|unexpected keyword argument|params must have|must not have additional properties|validation errors? for|invalid_type|failed to parse (?:tool|function) (?:arguments|call)",
    ),
    (
        "too_large", True, ("exceeds", "too large", "too many "),
        r"exceeds (?:the )?maximum (?:allowed )?(?:tokens|size|length|limit)|file (?:content|is) (?:too large|\([\d.]+ ?[km]b\) exceeds)|output too large|response too large|too many (?:lines|results|matches)",
    ),
    (
        "tool_not_found", True, ("tool", "unknown function"),
        r"no such tool|unknown tool|tool (?:\S+ )?(?:does not exist|not found|is not available)|unknown function|invalid tool name",
    ),
    (
        "rate_limit", True, ("limit", "too many requests", "quota exceeded", "overloaded", "429"),
        r"rate.?limit|too many requests|quota exceeded|overloaded|\b429\b.{0,40}(?:status|error|request)|(?:status|http|code)\D{0,12}\b429\b",
    ),
    (
        "missing_dependency", True,
        ("not found", "no module named", "modulenotfounderror", "cannot find ",
         "could not find ", "could not resolve ",
         "recognized as an internal", "no such command", "no such subcommand", "unresolved ",
         " is not in", "none of pytorch", "missing dependenc", "missing script", "fatal error: ",
         "no required module"),
        r"command not found|: not found\s*\Z|no module named|modulenotfounderror|cannot find (?:module|package)|could not (?:find|resolve) (?:module|package|dependency)|is not recognized as an internal|no such (?:command|subcommand)|unresolved (?:import|module)|package \S+ is not (?:installed|in)|none of pytorch|missing dependenc|missing script|cannot find -l|fatal error: \S+\.h: no such file|executable (?:file )?not found|no required module provides",
    ),
    (
        "container_failure", True,
        ("docker", "response from daemon", "pull access denied", "no such container",
         "no such image", "no such service", "failed to solve", "podman: "),
        r"docker daemon|docker: |error response from daemon|pull access denied|no such (?:container|image|service)|failed to solve|docker-compose: |podman: ",
    ),
    (
        "test_failure", False,
        ("failed", "FAIL", " ERRORS ", "failing", "short test summary info", "failure"),
        r"(?m)^error: (?:test failed, to rerun|\d+ targets? failed)|\b[1-9]\d* (?:tests? |specs? )?failed\b|=+ (?:FAILURES|ERRORS) =+|^FAILED |^--- FAIL|^FAIL\s|test result: FAILED|FAILED \((?:failures|errors)=|\b[1-9]\d* failing\b|Tests: +[1-9]\d* failed|short test summary info|[1-9]\d* failures?\b|There (?:was|were) \d+ failures?",
    ),
    # Before what compilers say in the same shape.
    (
        "git_failure", False,
        ("error: your local changes", "error: failed to push", "error: pathspec '",
         "error: cannot "),
        r"(?m)^error: (?:your local changes|failed to push|pathspec '|cannot (?:lock ref|pull|rebase|delete branch))",
    ),
    (
        "compile_error", False,
        ("error TS", "error:", "error[", "could not compile", "undefined reference",
         "cannot find symbol", "COMPILATION ERROR", "BUILD FAIL", "Failed to ", "Build failed",
         "build failed", ".go:", "npm ERR! code"),
        r"(?m)\berror TS\d+|^error(?:\[E\d+\])?: |could not compile|: error: |undefined reference to|\bcannot find symbol\b|COMPILATION ERROR|BUILD FAILED|BUILD FAILURE|Failed to (?:build|compile)|Build failed|Module build failed|^\S+\.go:\d+:\d+: |Type error: |error\[call-non-callable\]|error\[[a-z-]+\]: |npm ERR! code ELIFECYCLE",
    ),
    (
        "lint_failure", False,
        (" problem", "Found ", "would reformat", "Code style issues", "clippy::", "eslint",
         "rubocop", "]", "shellcheck", "pylint", "flake8", "--fix"),
        r"(?m)✖ \d+ problems?|\b\d+ problems? \(\d+ errors?|Found \d+ (?:errors?|diagnostics?)\b|would reformat|Code style issues|clippy::|eslint|rubocop|\[[a-z-]+/[a-z-]+\]$|shellcheck|pylint|flake8|--fix`? option",
    ),
    ("lint_failure", False, (), r"(?m)^\s*(?:\S+:\d+:\d+:? )?[A-Z]{1,4}\d{3,4} "),
    (
        "syntax_error", True,
        ("syntax", "indentationerror", "unexpected ", "jsondecodeerror", "parse error",
         "unterminated", "unmatched", "failed to parse"),
        r"syntaxerror|indentationerror|syntax error|invalid syntax|unexpected (?:token|eof|end of)|jsondecodeerror|parse error|unterminated string|unmatched|failed to parse|unexpected indent",
    ),
    (
        "http_status", True,
        ("status", "http", "client error", "server error", "error ", "error:", "error=", "code ",
         "code:", "code=", "bad gateway", "service unavailable", "40"),
        lambda text: HTTP_ERROR.search(text) or (NUMBER.search(text) and HTTP_STATUS.search(text)),
    ),
    (
        "git_failure", True,
        ("fatal: ", "nothing to commit", "merge conflict", "conflict (", "git repository",
         "failed to push", "non-fast-forward", "pathspec ", "index.lock", "no pr found",
         "no pull request"),
        r"(?m)^fatal: |nothing to commit|merge conflict|conflict \(|not a git repository|failed to push|non-fast-forward|pathspec .* did not match|index\.lock|no pr found|no pull requests? found",
    ),
    (
        "killed", True,
        ("out of memory", "memoryerror", "heap limit", "oom", "killed", "signal 9", "sigkill",
         "sigterm", "segmentation fault", "core dumped"),
        r"out of memory|memoryerror|heap limit|oom-?kill|\bkilled\b|signal 9|sigkill|sigterm|segmentation fault|core dumped|is not running, so cannot be killed",
    ),
    (
        "file_not_found", True, ("directory", "eisdir", "enotdir", "no such file"),
        r"eisdir|is a directory|enotdir|not a directory|no such file",
    ),
    (
        "exception", False,
        ("Traceback (most recent", "Error", "Exception", " at ", "\tat ", "\nat ", "panicked",
         "Uncaught", "Unhandled"),
        r"(?m)^Traceback \(most recent call last\)|^(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception)\b:?|^\s+at \S+ \(.*:\d+:\d+\)|panicked at|Uncaught|Unhandled|thread '.*' panicked",
    ),
    (
        "command_failed", True, ("command failed", "exit"),
        r"\bcommand failed\b|exit(?:ed with)?(?: code| status)\D{0,4}[1-9]",
    ),
]


def compiled(rules):
    return [
        (name, caseless, hints, rule if callable(rule) else re.compile(rule, re.A).search)
        for name, caseless, hints, rule in rules
    ]


CLASSES, EXIT_CODE, CAUSES = compiled(CLASSES), compiled(EXIT_CODE), compiled(CAUSES)

# From the narrowest to the widest: of two that were found the narrower one counts.
RANK = {name: rank for rank, name in enumerate((
    "edit_mismatch", "not_read_yet", "stale_file", "bad_arguments", "too_large", "tool_not_found",
    "refused", "missing_dependency", "test_failure", "lint_failure", "compile_error",
    "syntax_error", "rate_limit", "http_status", "network_error", "permission_denied",
    "file_not_found", "timeout", "killed", "git_failure", "container_failure", "exception",
    "command_failed", "unknown",
))}
OWN_SHAPES = {name for name, rank in RANK.items() if rank < RANK["syntax_error"]}
OWN_SHAPES |= {"rate_limit", "container_failure"}
DID_NOT_RUN = {"missing_dependency", "refused", "bad_arguments", "container_failure"}
OF_CHECK = {"tests": "test_failure", "build": "compile_error", "lint": "lint_failure"}
OF_CLASS = {
    "file_not_found": "file_not_found", "permission_denied": "permission_denied",
    "timeout": "timeout", "api_error": "http_status", "syntax_error": "syntax_error",
    "network_error": "network_error", "tool_not_found": "tool_not_found",
}
OF_CODE = {
    124: "timeout", 137: "killed", 139: "killed", 143: "killed", 126: "permission_denied",
    127: "missing_dependency",
}


def beginning(text, size):
    """At most so many bytes, without half a character."""
    part = text[:size]
    if not part.isascii():
        part = part.encode(errors="replace")[:size].decode(errors="ignore")
    return part


def ending(text, size):
    part = text[-size:]
    if not part.isascii():
        part = part.encode(errors="replace")[-size:].decode(errors="ignore")
    return part


def first(rules, text):
    """The name of the first rule that a text matches."""
    lowered = text.lower()
    for name, caseless, hints, search in rules:
        searched = lowered if caseless else text
        for hint in hints:
            if hint in searched:
                break
        else:
            if hints:
                continue
        if search(searched):
            return name
    return None


def ends_of(words, size):
    """Both ends of a text; only one where it is short."""
    head = beginning(words, size)
    return (head, None) if len(head) == len(words) else (head, ending(words, size))


def raised(text):
    """The class of the last exception that stands as such in a text."""
    if "Error" not in text and "TimeoutExpired" not in text:
        return None
    name = None
    for hit in EXCEPTION.finditer(text):
        name = hit[1]
    return name and CLASS_OF_EXCEPTION.get(name, "network_error")


def error_class(words, code):
    head, tail = ends_of(words, CLASS_LOOKED_AT)
    found = tail and raised(tail)
    found = found or raised(head) or first(CLASSES, head) or (tail and first(CLASSES, tail))
    if found:
        return found
    if code == 124:
        return "timeout"
    if code or first(EXIT_CODE, head):
        return "command_failed"
    return "unknown"


def error_cause(words, class_, code, is_shell, check):
    head, tail = ends_of(words, CAUSE_LOOKED_AT)
    found = first(CAUSES, head)
    other = tail and first(CAUSES, tail)
    if other and (not found or RANK[other] < RANK[found]):
        found = other
    if check and found not in DID_NOT_RUN and class_ != "timeout":
        return OF_CHECK[check]
    if found in OWN_SHAPES:
        return found
    found = OF_CLASS.get(class_) or found
    if found:
        return found
    if code:
        return OF_CODE.get(code, "command_failed")
    return "command_failed" if is_shell or class_ == "command_failed" else "unknown"
