"""Find sentences in a conversation that may be worth remembering, without a model.

Few and certain ones: a candidate that nobody wants costs a reader's time. What users say counts
for preferences, rules, decisions and facts; what agents say only for the causes of problems and
for where things are. Code, quotations, questions, pasted output and secrets are left out.
"""

import re
from collections.abc import Iterator, Sequence

from polymnia.engine.facts.candidates import CandidateDraft, CandidateKind
from polymnia.engine.facts.secrets import find_secret
from polymnia.importers.conversation import Turn

# What one checkpoint offers at most.
MAX_CANDIDATES = 5
MIN_WORDS, MAX_CHARACTERS = 3, 300
# A longer turn is a pasted document, whose beginning says what it is for.
MAX_TURN_CHARACTERS = 4_000
_NOT_PROSE = re.compile(
    r"```.*?(?:```|\Z)|^\s*[>|].*$|^\s*Traceback .*\Z", re.DOTALL | re.MULTILINE
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\w`\"'(])|\n+|;\s+(?=I )")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_SUFFIX = r"toml|ya?ml|json|ini|cfg|env|md|sql|py|ts|js|go|rs"
_PATH = rf"`?(?:[\w.~-]+/)+[\w.-]*`?|`?\b[\w-]+\.(?:{_SUFFIX})\b`?"
_OPENING = r"^(?:(?:ok|okay|please|and|but|so|also|well)[,:]? )*"
_POINTER = r"(?!it\b|that\b|this\b|the (?:next|plan|first|last|other)\b)"
# "We never got an answer" reports, "we never squash" demands.
_PAST = r"(?!mind\b|seen\b|heard\b|had\b|been\b|got\b|was\b|were\b|did\b|\w+ed\b)"
_REMIND = r"(?:remember|keep in mind|be aware|note|don't forget)(?: that|:)"
_FYI = r"(?:fyi|for your information)"


def _patterns(kind: CandidateKind, *texts: str) -> list[tuple[CandidateKind, re.Pattern[str]]]:
    return [(kind, re.compile(text, re.IGNORECASE)) for text in texts]


# Patterns of what users say, the surest first. A group is what to keep, else it is the sentence.
_USER = (
    *_patterns(
        "fact",
        rf"{_OPENING}{_REMIND} (?!you\b|I\b)(?P<rest>.+)",
        r"^(?P<rest>.+?),? (?:please )?remember (?:that|this)[.!]?$",
        rf"^{_FYI}[:,] (?P<rest>.+)",
        rf"^(?P<rest>.+), {_FYI}[.!]?$",
    ),
    *_patterns(
        "decision",
        r"\bwe(?:'ve| have)? (?:decided|agreed|settled|chose)\b",
        r"\bI(?:'ve| have)? decided\b|\bdecision: ",
        rf"{_OPENING}let's (?:go with|switch to|move to|stick with|standardi[sz]e on) "
        rf"{_POINTER}\w+",
        rf"{_OPENING}let's (?:use|drop|keep|stop using)\b.+"
        r"\b(?:instead of|from now on|for all|everywhere)\b",
        r"\bwe(?:'re| are) (?:going to (?:use|drop|move|switch)|dropping|moving to|switching to)\b",
        rf"{_OPENING}we (?:only )?use .+, (?:not|never)\b",
        rf"{_OPENING}we (?:don't|do not|no longer) use {_POINTER}",
    ),
    *_patterns(
        "rule",
        rf"{_OPENING}from now on\b(?!,? you are\b)",
        rf"{_OPENING}(?:in this \w+,? )?(?:you (?:must|should) |we (?:must )?)?"
        rf"(?:always|never) {_PAST}\w+",
        rf"{_OPENING}(?:do not|don't) (?:ever|use any|use|commit|push|touch|add any)\b.{{4,}}"
        r"\b(?:tests?|ever|any|again|without|in this|hate|never)\b",
        r"^(?:all|every|each|no)\b.+"
        r"\b(?:must(?: not| never)?|may not|has to|have to) (?!have\b)\w+",
    ),
    *_patterns(
        "preference",
        r"\bI(?:'d| would)? (?:really |strongly |much )?(?:prefer|rather)\b(?! not\b).{6,}",
        r"\bI (?:don't|do not|really don't) like \w+ \w+",
        r"^I (?:like|love|want) (?:all|every|my|it when|to have|short|long|small)\b .{4,}",
        r"^(?:please )?call me \w+|^my name is \w+",
    ),
)
_WHERE = re.compile(
    r"^(?!I\b|let|open|look|see\b)[\w`'. -]{3,60}"
    r"\b(?:lives?|(?:is|are) (?:stored |kept |defined |documented |configured |read )?) ?"
    rf"(?:in|from|at|under) (?:{_PATH})",
    re.IGNORECASE,
)
_PROBLEM = re.compile(
    r"\b(?:errors?|fail\w*|crash\w*|time-?outs?|flaky|bug|problem|exception|cause|race|leak"
    r"|deadlock|[45]\d\d)\b|`[A-Z]{4,}",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:root cause|cause of|caused by|because|came from|problem was|due to|went away after)\b",
    re.IGNORECASE,
)
_REMEDY = re.compile(
    r"\b(?:fix(?:ed|es)|resolv(?:ed|es)|solv(?:ed|es)|went away|so I"
    r"|I (?:added|set|raised|pinned|changed|moved)|it now|now (?:asks|uses|waits))\b",
    re.IGNORECASE,
)


def notice(turns: Sequence[Turn], source: str) -> list[CandidateDraft]:
    """Return what may be worth remembering of the turns, the first ones."""
    drafts: dict[str, CandidateDraft] = {}
    for turn in turns:
        find = _notice_user if turn.speaker == "user" else _notice_agent
        for kind, text in find(_sentences(turn.text)):
            if text not in drafts and not find_secret(text):
                drafts[text] = CandidateDraft(kind, text, turn.at, source)
    return list(drafts.values())[:MAX_CANDIDATES]


def _sentences(text: str) -> list[str]:
    """Return the statements of a turn: no code, quotations or questions."""
    prose = _NOT_PROSE.sub("\n", text[:MAX_TURN_CHARACTERS])
    sentences = []
    for part in _SENTENCE_END.split(prose):
        sentence = " ".join(_BULLET.sub("", part).split())
        is_statement = sentence and not sentence.endswith(("?", ":"))
        if is_statement and len(sentence) <= MAX_CHARACTERS:
            sentences.append(sentence)
    return sentences


def _notice_user(sentences: Sequence[str]) -> Iterator[tuple[CandidateKind, str]]:
    for sentence in sentences:
        if len(sentence.split()) < MIN_WORDS:
            continue
        for kind, pattern in _USER:
            match = pattern.search(sentence)
            if match is not None:
                yield kind, match.groupdict().get("rest") or sentence
                break
        else:
            if _WHERE.search(sentence):
                yield "file", sentence


def _notice_agent(sentences: Sequence[str]) -> Iterator[tuple[CandidateKind, str]]:
    for number, sentence in enumerate(sentences):
        following = " ".join(sentences[number : number + 2])[:MAX_CHARACTERS]
        if _CAUSE.search(sentence) and _PROBLEM.search(sentence):
            if _REMEDY.search(sentence):
                yield "fix", sentence
            elif _REMEDY.search(following):
                yield "fix", following
        elif _WHERE.search(sentence):
            yield "file", sentence
