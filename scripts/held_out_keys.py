#!/usr/bin/env python3
"""Makes up keys of kinds that the author of the redaction rules has not seen: of each rule that Betterleaks
has and gitleaks has not, one random value of its pattern in a line as people write it. What is no secret by
its name (ids, hosts, users) is left out.

    pip install rstr pyyaml; cargo info kingfisher-rules@3.0.1   # which brings Betterleaks' rules
    python3 scripts/held_out_keys.py KINGFISHER-RULES/generated/rules/betterleaks.yml gitleaks.toml \\
        > tests/it/fixtures/held_out_keys.tsv

Half of the list (`tune`) was looked at afterwards, the other half (`test`) never. Keys and lines are written
backwards, so that no scanner takes the fixture for a leak.
"""

import json
import random
import re
import signal
import sys
import tomllib

import rstr
import yaml

NO_SECRET = re.compile(
    r"(^|-)(id|ids|host|hostname|url|uri|domain|username|user|name|account|sid|email|endpoint|region|tenant)"
    r"(\.\d+)?$"
)


def group(text,start):
    depth=0;esc=False;cls=False
    for i in range(start,len(text)):
        c=text[i]
        if esc: esc=False
        elif c=='\\': esc=True
        elif cls: cls = c!=']'
        elif c=='[': cls=True
        elif c=='(': depth+=1
        elif c==')':
            depth-=1
            if depth==0: return text[start+1:i]
    return None


def clean(p):
    p=p.replace('\\z','').replace('[[:alnum:]]','[A-Za-z0-9]').replace('\\x60','`')
    flags='(?i)' in p or '(?i:' in p
    p=re.sub(r'\(\?-?[a-z]+\)','',p); p=re.sub(r'\(\?-?[a-z]+:','(?:',p); p=re.sub(r'\(\?P<\w+>','(',p)
    p=p.replace('\\w','[A-Za-z0-9_]') if False else p
    return p


def value(p):
    p=p.strip()
    # the last capturing group that is not followed by much, else the whole
    caps=[m.start() for m in re.finditer(r'(?<!\\)\((?!\?)|\(\?P<\w+>',p)]
    cands=[]
    for s in caps:
        q=p if True else p
        gtxt=group(p,s)
        if gtxt: cands.append(gtxt)
    body=max(cands,key=len) if cands else p
    return clean(body)


def main():
    rules = yaml.safe_load(open(sys.argv[1], encoding="utf8"))["rules"]
    with open(sys.argv[2], "rb") as file:
        known = {rule["id"] for rule in tomllib.load(file)["rules"]}
    draw = rstr.Rstr(random.Random(20261123))
    keys = []
    for rule in rules:
        name = rule["id"].removeprefix("betterleaks.")
        if any(one in name for one in known):
            continue
        key = drawn(draw, rule["pattern"])
        if key is not None:
            keys.append((name, key, line(name, key, len(keys) % 5)))
    random.Random(1).shuffle(keys)
    print("# Made by scripts/held_out_keys.py; see there. half<TAB>rule<TAB>key<TAB>line, both backwards")
    for place, (name, key, text) in enumerate(keys):
        if not NO_SECRET.search(name):
            half = "tune" if place < len(keys) // 2 else "test"
            print(half, name, key[::-1], json.dumps(text[::-1]), sep="\t")


def drawn(draw, pattern):
    signal.alarm(2)
    try:
        body = re.sub(r"^\\b|\\b$", "", value(pattern))
        for _ in range(40):
            key = draw.xeger(body)
            plain = all(33 <= ord(c) < 127 for c in key) and not any(c in key for c in "\"'`\\ ")
            if plain and 8 <= len(key) <= 2000:
                return key
    except Exception:  # A pattern that the library cannot read makes no key.
        pass
    finally:
        signal.alarm(0)
    return None


def line(name, key, form):
    words = re.sub(r"\.\d+$", "", name).split("-")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return [
        f"{'_'.join(word.upper() for word in words)}={key}\nDEBUG=1\n",
        json.dumps({camel: key, "retries": 3}),
        f'const {camel} = "{key}";',
        f"  {'_'.join(words)}: {key}\n  region: eu\n",
        f'curl -H "X-{"-".join(word.capitalize() for word in words)}: {key}" https://api.example.org/v1/me',
    ][form]


if __name__ == "__main__":
    main()
