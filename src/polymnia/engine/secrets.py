"""Recognize keys, tokens and passwords in a text, without mistaking ordinary prose for one."""

import re
from collections import Counter
from functools import cache
from math import log2
from typing import Literal

# What to do with text that looks like a key or token.
SecretRule = Literal["warn", "refuse", "off"]

# Unmistakable formats: the kind of secret, texts one of which every such secret contains, and its expression. The first
# group, or the whole match, is the secret. Searching for the texts first is much faster, because most texts have none.
_FORMATS = (
    ("a private key", ("PRIVATE KEY",), r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----"),
    (
        "an AWS access key",
        ("AKIA", "ASIA", "AROA", "AIDA"),
        r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",
    ),
    (
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9_]{40,}",
    ),
    (
        "a GitLab token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"),
        r"\bgl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_\-.]{20,}",
    ),
    (
        "a Slack token",
        ("xox", "xapp-"),
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}",
    ),
    ("an Anthropic key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_\-]{20,}"),
    ("an API key", ("sk-",), r"\bsk-(?:proj-|svcacct-|or-v1-)?[A-Za-z0-9_\-]{20,}"),
    ("a Stripe key", ("k_live_", "k_test_"), r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("a Google API key", ("AIza",), r"\bAIza[A-Za-z0-9_\-]{35}\b"),
    ("a Google OAuth token", ("ya29.",), r"\bya29\.[A-Za-z0-9_\-]{20,}"),
    ("an npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", ("pypi-",), r"\bpypi-[A-Za-z0-9_\-]{50,}"),
    ("a Hugging Face token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("a SendGrid key", ("SG.",), r"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
    ("a Twilio key", ("SK",), r"\bSK[0-9a-f]{32}\b"),
    ("a Telegram bot token", (":AA",), r"\b\d{8,10}:AA[A-Za-z0-9_\-]{33}\b"),
    ("a DigitalOcean token", ("_v1_",), r"\bdo[por]_v1_[a-f0-9]{64}\b"),
    (
        "a JSON web token",
        ("eyJ",),
        r"\beyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",
    ),
    ("an Azure storage key", ("AccountKey=",), r"\bAccountKey=[A-Za-z0-9+/]{60,}={0,2}"),
    (
        "a password in a URL",
        ("://",),
        r"\b[a-z][a-z0-9+.\-]*://[^\s:/@<>{}$*]+:([^\s:/@<>{}$*]{3,})@[\w\-]",
    ),
)
# `password = …`, `api_key: …`, `Authorization: Bearer …`: the value decides.
_ASSIGNED = (
    r"(?i)\b(?P<label>pass(?:word|wd|phrase)?|pwd|secret(?:[ _-]?key)?|(?:api|access|auth|private)[ _-]?(?:key|token)"
    r"|client[ _-]?secret|token|bearer|credentials?)['\"]?\s*(?:(?P<sign>[:=]+>?)|\bis\b)\s*"
    r"(?:bearer\s+)?[`'\"]?(?P<value>[^\s'\"`,;]{6,})"
)
# One of these is in every label.
_LABELS = ("pass", "pwd", "secret", "key", "token", "bearer", "credential")
# Values that stand for a secret or describe one.
_PLACEHOLDER = r"(?i)^(?:[<{$\[(*%].*|.*(?:example|placeholder|changeme|redacted|your[_-]|xxxx|\.\.\.|\*\*\*).*)$"
# A random value has more bits per character than words have; short ones cannot show it.
# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
_MIN_BITS = 3.0
_MIN_RANDOM_LENGTH = 16


def find_secret(text: str) -> str:
    """Return what kind of key or token the text seems to contain, for example "a GitHub token"; empty if none."""
    for kind, parts, expression in _FORMATS:
        if not any(part in text for part in parts):
            continue
        pattern = _compiled(expression)
        if any(
            not _compiled(_PLACEHOLDER).match(found[1] if pattern.groups else found[0])
            for found in pattern.finditer(text)
        ):
            return kind
    lowered = text.lower()
    if not any(label in lowered for label in _LABELS):
        return ""
    return (
        "a password or token"
        if any(map(_is_secret_value, _compiled(_ASSIGNED).finditer(text)))
        else ""
    )


def _is_secret_value(found: re.Match[str]) -> bool:
    """Return True if the value after a label looks random. In "the token is rotated" it is an ordinary word."""
    value = found["value"].rstrip(".!?)")
    if (
        _compiled(_PLACEHOLDER).match(value)
        or "/" in value[:1]
        or value.isalpha()
        or value.isdigit()
    ):
        return False
    kinds = sum(
        bool(re.search(pattern, value)) for pattern in (r"[a-z]", r"[A-Z]", r"\d", r"[^\w\s]")
    )
    if _is_password(found["label"]):
        # After `=` or `:` a mix of letters and digits is enough; in a sentence the value must look random.
        return (
            len(value) >= 6 and kinds >= (2 if found["sign"] else 3) and not _is_plain_phrase(value)
        )
    return (
        len(value) >= _MIN_RANDOM_LENGTH
        and bool(re.search(r"\d", value))
        and _bits(value) >= _MIN_BITS
    )


def _is_password(label: str) -> bool:
    return label.lower().startswith(("pass", "pwd", "credential"))


def _is_plain_phrase(value: str) -> bool:
    """Return True for words joined by punctuation: `min-length`, `users.password_hash`, `bcrypt/argon2`."""
    parts = [part for part in re.split(r"[\W_]+", value) if part]
    return all(
        part.isalpha() and (part.islower() or part.istitle() or part.isupper()) for part in parts
    ) or (not re.search(r"\d", value))


def _bits(value: str) -> float:
    """Return the entropy of the characters, in bits per character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)
