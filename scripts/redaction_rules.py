#!/usr/bin/env python3
"""Restates the facts of gitleaks' published rules (prefixes, alphabets, lengths, entropies, names of
providers) as the table that crates/text reads: crates/text/src/redact/published_rules.tsv.

    python3 scripts/redaction_rules.py gitleaks.toml > crates/text/src/redact/published_rules.tsv

gitleaks.toml is config/gitleaks.toml of https://github.com/gitleaks/gitleaks. What stands around a secret
there (the words before it, the characters that may follow) is left out: the program has its own way for
both, since its texts are JSON inside of JSON.
"""

import re
import sys
import tomllib

# What stands before the value of a name there.
ASSIGNED = r"""[\x60'"\s=]{0,5}"""

# Shapes of our own stand for these, or they are no text at all.
LEFT_OUT = {
    "curl-auth-header", "curl-auth-user", "generic-api-key", "hashicorp-tf-password", "jwt",
    "jwt-base64", "kubernetes-secret-yaml", "pkcs12-file", "private-key", "nuget-config-password",
    "freemius-secret-key", "facebook-access-token",
}

# Patterns that are found by something else than how they begin, or that need a boundary said.
RESTATED = {
    "airtable-personnal-access-token": ("pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    "atlassian-api-token": ("ATATT3", r"ATATT3[A-Za-z0-9_=-]{186}"),
    "aws-access-token": ("A3T,AKIA,ASIA,ABIA,ACCA", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    "aws-amazon-bedrock-api-key-short-lived": (
        "bedrock-api-key-", r"bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=]*"),
    "azure-ad-client-secret": ("Q~@4", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    "cisco-meraki-api-key": ("meraki", None),
    "cohere-api-token": ("cohere,co_api_key", None),
    "flyio-access-token": (
        "fo1_,fm1a_,fm1r_,fm2_", r"fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3}"),
    "github-app-token": ("ghu_,ghs_", r"gh[us]_[0-9a-zA-Z]{36}"),
    "gocardless-api-token": ("gocardless", None),
    "hashicorp-tf-api-token": ("atlasv1@15", r"(?i)[a-z0-9]{14}\.atlasv1\.[a-z0-9_=-]{60,70}"),
    "linkedin-client-id": ("linkedin,linked_in,linked-in", None),
    "linkedin-client-secret": ("linkedin,linked_in,linked-in", None),
    "lob-api-key": ("lob", None),
    "lob-pub-api-key": ("lob", None),
    "mailchimp-api-key": ("mailchimp", None),
    "maxmind-license-key": ("_mmk@36", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    "messagebird-api-token": ("messagebird,message_bird,message-bird", None),
    "messagebird-client-id": ("messagebird,message_bird,message-bird", None),
    "new-relic-browser-api-token": ("NRJS-", r"(?i)NRJS-[a-f0-9]{19}"),
    "new-relic-insert-key": ("NRII-", r"(?i)NRII-[a-z0-9-]{32}"),
    "new-relic-user-api-key": ("NRAK-", r"(?i)NRAK-[a-z0-9]{27}"),
    "new-relic-user-api-id": ("new-relic,newrelic,new_relic", None),
    "nytimes-access-token": ("nytimes,new-york-times,newyorktimes", None),
    "okta-access-token": ("okta", None),
    "openai-api-key": (
        "sk-", r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{58,74}T3BlbkFJ[A-Za-z0-9_-]{58,74}"
        r"|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})"),
    "openshift-user-token": ("sha256~", r"sha256~[A-Za-z0-9_-]{43}"),
    "perplexity-api-key": ("pplx-", r"pplx-[A-Za-z0-9]{48}"),
    "privateai-api-token": ("privateai,private_ai,private-ai", None),
    "sentry-org-token": ("sntrys_", r"sntrys_eyJpYXQiO[A-Za-z0-9+/=]{20,400}_[A-Za-z0-9+/]{43}"),
    "sidekiq-secret": (
        "bundle_enterprise__contribsys__com,bundle_gems__contribsys__com", None),
    "sidekiq-sensitive-url": None,
    "snyk-api-token": ("snyk", None),
    "sonar-api-token": ("sonar", None),
    "sourcegraph-access-token": (
        "sgp_", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    "square-access-token": ("EAAA,sq0atp-", r"(?:EAAA|sq0atp-)[A-Za-z0-9_-]{22,60}"),
    "sumologic-access-id": ("sumo", None),
    "telegram-bot-api-token": ("telegr", None),
    "twilio-api-key": ("SK", r"SK[0-9a-fA-F]{32}"),
    "typeform-api-token": ("tfp_", r"(?i)tfp_[a-z0-9_.=-]{59}"),
    "vault-service-token": ("hvs.", r"hvs\.[A-Za-z0-9_-]{90,120}"),
    "slack-webhook-url": (
        "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}"),
    "microsoft-teams-webhook": (
        "webhook.office.com/", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{100,}"),
}

LITERAL = re.compile(r"(?:[A-Za-z0-9_-]|\\[.-])+")


def main():
    with open(sys.argv[1], "rb") as file:
        rules = tomllib.load(file)["rules"]
    print("# Restated from the facts of gitleaks' rules (v8.30.1, config/gitleaks.toml) by")
    print("# scripts/redaction_rules.py; see there. Not to be edited: rules of our own are in own_rules.tsv.")
    print("# gitleaks: MIT License, Copyright (c) 2019 Zachary Rice; the notice is in LICENSE-gitleaks.")
    print("# name<TAB>kind<TAB>keywords<TAB>pattern of the secret<TAB>least entropy")
    for rule in rules:
        line = restated(rule)
        if line is not None:
            print("\t".join(line))


def restated(rule):
    name = rule["id"]
    if name in LEFT_OUT or RESTATED.get(name, "") is None:
        return None
    entropy = f"{rule.get('entropy', 0):g}"
    keywords, pattern = RESTATED.get(name, (None, None))
    kind = "token" if pattern else None
    if pattern is None:
        pattern = rule["regex"]
        if r"[\w.-]{0,50}?(" in pattern:
            kind = "named"
            start = pattern.rindex(ASSIGNED + "(") + len(ASSIGNED)
            pattern = "(?i)" + group(pattern[start:])
        else:
            kind = "token"
            pattern = bare(pattern)
    if keywords is None:
        keywords = ",".join(rule["keywords"]) if kind == "named" else beginning(pattern)
    return name, kind, keywords, ascii_classes(pattern), entropy


def group(text):
    """The inside of the group that begins the text."""
    depth = 0
    escaped = in_class = False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return text[1:at]
    raise SystemExit(f"no group: {text}")


def bare(pattern):
    """A pattern without what stands around the secret."""
    flags = ""
    if pattern.startswith("(?i)"):
        flags, pattern = "(?i)", pattern[4:]
    pattern = pattern.removeprefix(r"\b").removesuffix(r"\b")
    pattern = re.sub(r"\(\?:\[\\x60.*$", "", pattern)
    if pattern.startswith("(") and not pattern.startswith("(?") and group(pattern) == pattern[1:-1]:
        pattern = pattern[1:-1]
    if pattern.startswith("((") and group(pattern) == pattern[1:-1]:
        pattern = pattern[1:-1]
    return flags + pattern


def beginning(pattern):
    """The literal that every text of the pattern begins with, or all of them."""
    pattern = pattern.removeprefix("(?i)")
    while pattern.startswith("(") and not pattern.startswith("(?"):
        pattern = pattern[1:]
    choice = re.match(r"\(\?:([A-Za-z0-9_|]+)\)(_|\\\.)?", pattern)
    if choice:
        end = (choice[2] or "").replace("\\", "")
        return ",".join(one + end for one in choice[1].split("|"))
    literal = LITERAL.match(pattern)
    text = literal[0] if literal else ""
    rest = pattern[len(text):]
    if rest[:1] in ("{", "?", "*"):
        text = text[:-1]
    classed = re.match(r"\[([a-z]+)\]", rest)
    text = text.replace("\\", "")
    if classed and len(text) < 4:
        return ",".join(text + one + "-" for one in classed[1])
    if len(text) < 2:
        raise SystemExit(f"no beginning: {pattern}")
    return text


def ascii_classes(pattern):
    """Without classes that hold letters of all scripts."""
    def members(found):
        return found[0].replace(r"\w", "A-Za-z0-9_").replace(r"\d", "0-9").replace(r"\S", "!-~")
    pattern = re.sub(r"\[[^\]]*\]", members, pattern)
    return pattern.replace(r"\d", "[0-9]").replace(r"\w", "[A-Za-z0-9_]").replace(r"\x60", "`")


if __name__ == "__main__":
    main()
