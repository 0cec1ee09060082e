"""Whether a message of a person objects to the answer before it, by the rules of objection.rs,
frustration.rs, place.rs and words.rs: it complains, corrects, has the work taken back, or asks for
the same again.
"""

import re
from itertools import dropwhile

from cause_rules import beginning, ending
from complaint_rules import complains

# Bytes at each end of a message that are looked at.
LOOKED_AT = 256

# An order to take work back, and a correction, at the beginning of a message.
REVERTS = re.compile(
    r"^(?:(?:no|nope|please|pls|ok|okay|just|then|actually|so|wait|stop|hmm)[,.! ]+){0,3}(?:revert|undo|roll ?back|take (?:that|it|this) back|put (?:it|that|this) back)\b",
    re.A,
)
CORRECTS = re.compile(
    r"^(?:(?:no|nope|wait|hmm|hey|stop|ok|okay|but|sorry|well)[,.! ]+){0,3}(?:no[,.! ]+(?:you (?:should|need|have to|must|forgot|missed)|i (?:meant|said|asked|want|wanted|told|need)|it(?:'s| is) (?:not|still|wrong)|use|don't|do not|instead|stop|not (?:that|this|like|the)|(?:that's|that is|this is) (?:not|wrong))\b|not (?:that|this|like (?:that|this)|the|in|there|what)\b|that's not|that is not|this is not|it's not|it is not|i (?:meant|said|asked|told|wanted)\b|you (?:forgot|missed|didn't|did not|haven't|have not|broke|removed|deleted|changed the wrong|misread|ignored|skipped|used the wrong|put it)|why (?:did|didn't|are|aren't|have|would) you\b|actually,? i (?:meant|wanted)|wrong (?:file|place|one|branch|folder|function|line)|stop\b|don't do (?:that|this)|there(?:'s| is| are) still\b|still (?:not|doesn't|broken|failing|wrong|the same|get|see)|it (?:doesn't|does not|didn't|still|isn't|is still|crashes|fails)\b)",
    re.A,
)

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
SENTENCE_END = re.compile("[.!?;:\n\r…。！？；：\x85\u2028\u2029]")
CLAUSE_END = re.compile("[,()–—，、（）-]")
# How many words back one can look.
BACK = 8
STOPWORDS = set(
    "the a an is was are were do does did can could would should please just me my i".split()
)
POSSESSIVE = {"s", "m", "d", "re", "ve", "ll"}
QUOTES = set('"“”„«»`')
JOINED_BEFORE = QUOTES | set("-_/\\@#$%&=<>|~+^{:")
JOINED_AFTER = QUOTES | set("_/\\@=<>|+}")
ANSWERS = set("yes yeah yep yup y sure ok okay correct continue proceed".split())
# Words after which a remark begins as well as at the beginning of a clause.
BEGINS_CLAUSE = set(
    "no nope nah but and so because cause since ok okay well hmm sorry think believe again wait "
    "yeah yes oh actually dude man bro hey still please ugh".split()
)
ADVERBS = set(
    "just completely totally all so also plain clearly simply obviously entirely very absolutely "
    "even still definitely".split()
)
# How much somebody feels.
DEGREES = ADVERBS | set("really being getting pretty extremely super quite".split())
CONDITIONS = set("if unless whether when whenever".split())


def objects(message, previous):
    """Whether a message objects, and its words for the one behind it; `previous` are those of what
    the same person said before it."""
    head, tail = ends(message)
    words = WORD.findall(head)
    tail_words = WORD.findall(tail) if tail else []
    counted = words_that_count(words + tail_words)
    found = (
        remarks(head, words) or (tail and remarks(tail, tail_words))
        or complains(head) or (tail and complains(tail))
    )
    if not found:
        start = head.lstrip()
        found = REVERTS.match(start) or CORRECTS.match(start)
    if not found and previous is not None:
        found = is_repeated(words, counted, previous)
    # Of a long one its end counts for the comparison with the one before it only.
    return bool(found), request_of(message) if tail else counted


def request_of(message):
    """The words of a message, as far as a later one may repeat it."""
    return words_that_count(WORD.findall(fold(beginning(message, 2 * LOOKED_AT))))


def is_repeated(words, counted, previous):
    if words and words[0] in ANSWERS:
        return False
    common = len(counted & previous)
    union = len(counted) + len(previous) - common
    return union > 0 and common / union >= 0.5


def ends(message):
    """Both ends of a message, folded, without the halves of words; one of a short message."""
    head = beginning(message, 2 * LOOKED_AT)
    if len(head) == len(message):
        return fold(message), ""
    head, tail = beginning(message, LOOKED_AT), ending(message, LOOKED_AT)
    end = len(head)
    while end and (head[end - 1].isalnum() or head[end - 1] in "'’"):
        end -= 1
    start = 0
    while start < len(tail) and (tail[start].isalnum() or tail[start] in "'’"):
        start += 1
    return fold(head[:end]), fold(tail[start:])


def fold(text):
    return text.lower() if text.isascii() else text.replace("’", "'").lower()


def words_that_count(words):
    counted = set(words) - STOPWORDS
    for word in [word for word in counted if "'" in word]:
        counted.remove(word)
        counted.update(parts(word))
    return counted - STOPWORDS


def parts(word):
    """The words in a word with an apostrophe."""
    base, _, end = word.rpartition("'")
    if end in POSSESSIVE:
        return (base,)
    if end == "t" and base in ("can", "won", "shan"):
        return ("not",)
    if end == "t" and base.endswith("n"):
        return ("not", base[:-1])
    return (word,)


def remarks(text, words):
    """Whether a folded text has a remark of frustration."""
    if CUES.keys().isdisjoint(words):
        return False
    places = [hit.span() for hit in WORD.finditer(text)]
    return any(
        CUES[word](Place(text, words, places, at))
        for at, word in enumerate(words)
        if word in CUES and stands_alone(text, *places[at])
    )


class Place:
    """A word with the words around it."""

    def __init__(self, text, words, places, at):
        self.text, self.words, self.places, self.at = text, words, places, at

    def gap(self, at):
        """How much parts a word from the one behind it: 0, 1 a clause, 2 a sentence."""
        between = self.text[self.places[at][1] : self.places[at + 1][0]]
        if between == " ":
            return 0
        return 2 if SENTENCE_END.search(between) else int(CLAUSE_END.search(between) is not None)

    def before(self):
        """The words before it in the same clause, the nearest first."""
        for at in range(self.at - 1, max(self.at - 1 - BACK, -1), -1):
            if self.gap(at):
                return
            yield self.words[at]

    def behind(self):
        """The words behind it, each with what parts it from the one before it."""
        for at in range(self.at + 1, len(self.words)):
            yield self.words[at], self.gap(at - 1)

    def after(self):
        """The words after it in the same clause."""
        for word, gap in self.behind():
            if gap:
                return
            yield word


def stands_alone(text, start, end):
    """Whether it is neither quoted nor a part of a name such as `nice.py`."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 2]
    if before == ".":
        # The third dot of an ellipsis is no part of a name.
        if start < 2 or text[start - 2] != ".":
            return False
    elif before in JOINED_BEFORE:
        return False
    if after[:1] in ("-", ".", ":"):
        if after[1:].isalnum():
            return False
    elif after[:1] in JOINED_AFTER:
        return False
    return "```" not in text or not is_fenced(text[:start])


def is_fenced(before):
    fenced = False
    while "```" in before:
        fenced = not fenced
        before = before[before.index("```") :].lstrip("`")
    return fenced


def among(words):
    return set(words.split())


def is_conditional(place):
    return not CONDITIONS.isdisjoint(place.before())


def begins(words):
    word = next(words, None)
    return word is None or word in BEGINS_CLAUSE


def without(words, left_out):
    return dropwhile(left_out.__contains__, words)


IS = among("is was looks seems")
CONTRACTED = among("that's thats it's this's")
SUBJECTS = among("that this it")


def is_wrong(place):
    """*That's wrong*, *this is all wrong*; not *the file that's wrong*."""
    if is_conditional(place):
        return False
    before = without(place.before(), ADVERBS)
    word = next(before, None)
    if word in CONTRACTED:
        return begins(before)
    return word in IS and next(before, None) in SUBJECTS and begins(before)


FAILING = among("wrong incorrect broken failing fails failed crashing crashes")
DENIED = among("not doesn't doesnt isn't isnt don't dont won't wont can't cant didn't didnt")
HARDLY = among("seem to quite really be")
GOOD = among("work works working right correct fixed good it what")
HAS = among("get getting gets gives seeing see have having has the")
TROUBLE = among("same error errors issue issues problem problems")


def is_still_failing(place):
    """*Still wrong*, *still doesn't work*, *still the same error*."""
    if is_conditional(place):
        return False
    after = without(place.after(), ADVERBS)
    word = next(after, None)
    if word in FAILING:
        return True
    if word in DENIED or (word in ("does", "do", "did", "is") and next(after, None) == "not"):
        return next(without(after, HARDLY), None) in GOOD
    return word in HAS and any(next(after, None) in TROUBLE for _ in range(3))


HOLDERS = among("is was it's its this's that's thats you're youre")


def is_annoying(place):
    """*This is annoying*; not *fix the annoying bug*."""
    holder = next(without(place.before(), DEGREES), None)
    return (holder is None or holder in HOLDERS) and not is_conditional(place)


def is_annoyed(place):
    """*I'm really unhappy with …*; not *users are unhappy*."""
    before = without(place.before(), DEGREES)
    word = next(before, None)
    by_me = next(before, None) == "i" if word == "am" else word in ("i'm", "im")
    return by_me and not is_conditional(place)


EXACTLY = among("do really quite exactly even at all")
NOT = among("not isn't isnt wasn't wasnt didn't didnt don't doesn't")


def is_not_what_i(place):
    """*Not what I asked for*, *you didn't do what I wanted*."""
    before = place.before()
    if next(before, None) != "i" or next(before, None) != "what":
        return False
    return next(without(before, EXACTLY), None) in NOT and not is_conditional(place)


YOU = among("you u you've youve you're youre")


def is_misunderstood(place):
    before = without(place.before(), ADVERBS)
    word = next(before, None)
    by_you = word in YOU or (word in ("have", "are") and next(before, None) in ("you", "u"))
    return by_you and not is_conditional(place)


ASKING = among("please pls plz and now just then no nope so but ok okay")
LATER = among("later in after when once until if tomorrow")


def is_try_again(place):
    """As an order to the agent; not *let it try again* and not *please try again later*."""
    before = place.before()
    if next(before, None) != "try":
        return False
    word = next(before, None)
    return (word is None or word in ASKING) and next(place.after(), None) not in LATER


HARMLESS = among("necessary needed required important problem issue concern blocker priority")


def is_no_that_is_not(place):
    """*No, that's not …*; not *no, that's not necessary*."""
    behind = place.behind()
    words = (word for word, _ in behind)
    subject, verb = next(words, None), next(words, None)
    if verb is None:
        return False
    if subject in ("that's", "thats"):
        denied = verb == "not"
    else:
        denied = subject == "that" and (
            verb in ("isn't", "isnt", "wasn't", "wasnt")
            or (verb in ("is", "was") and next(words, None) == "not")
        )
    word, gap = next(behind, ("", 2))
    if not gap and word in ("a", "an"):
        word = next(words, word)
    return denied and word not in HARMLESS


def is_come_on(place):
    is_whole = place.words[place.at] != "come" or next(place.after(), None) == "on"
    return is_whole and begins(place.before())


def is_what_the(place):
    """*What the hell*."""
    before = place.before()
    return next(before, None) == "the" and next(before, None) == "what"


def is_asked(place):
    """*Seriously?* and *seriously?!*; not *seriously consider it*."""
    rest = place.text[place.places[place.at][1] :]
    return rest.lstrip("!").startswith(("?", "？"))


CUES = {}
for words, rule in (
    ("needed wanted asked meant said requested", is_not_what_i),
    ("wrong", is_wrong),
    ("still", is_still_failing),
    ("no nope nah", is_no_that_is_not),
    ("misunderstood misunderstand misunderstanding", is_misunderstood),
    ("again", is_try_again),
    ("come c'mon cmon", is_come_on),
    ("hell heck fuck", is_what_the),
    ("ugh ughh ughhh uggh ugggh argh arghh wtf ffs fgs", lambda place: True),
    ("seriously", is_asked),
    ("annoying frustrating ridiculous", is_annoying),
    ("annoyed frustrated unhappy upset disappointed", is_annoyed),
):
    CUES |= dict.fromkeys(words.split(), rule)
