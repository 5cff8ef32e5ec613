"""Recognize keys, tokens and passwords in a text, without mistaking ordinary prose for one."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import log2
from typing import Literal

from polymnia.errors import BadInput

# What to do with text that looks like a key or token.
SecretRule = Literal["warn", "refuse", "off"]

# Unmistakable formats: the kind of secret, texts (every such secret contains one), and its
# expression. The first group, or the whole match, is the secret. Searching for the texts first is
# much faster, because most texts have none. Repetitions that may fail are bounded, or a long text
# could take quadratic time.
_FORMATS = (
    ("a private key", ("PRIVATE KEY",), r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("a private key", ("AGE-SECRET-KEY-1",), r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("a Polymnia token", ("ply_",), r"\bply_[0-9a-f]{12}_[A-Za-z0-9_\-]{40,}"),
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
        r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",
    ),
    (
        "a Discord token",
        (".",),
        r"\b[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}",
    ),
    (
        "a password for curl",
        ("curl ",),
        r"\bcurl [^\n]{0,200}?(?<=\s)(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,60}:([^\s'\"]{3,})",
    ),
    ("an Azure storage key", ("AccountKey=",), r"\bAccountKey=[A-Za-z0-9+/]{60,}={0,2}"),
    (
        "a password in a URL",
        ("://",),
        r"\b[a-z][a-z0-9+.\-]{0,30}://[^\s:/@<>{}$*]*:([^\s/@<>{}$*]{3,})@[\w\-]",
    ),
    (
        "a password in a connection string",
        ("assword=", "ASSWORD=", "wd=", "WD="),
        r"(?i)\b(?:host|server|data source|user id|uid|user|dbname) ?=[^;\s]{1,100}[;\s]"
        r"(?:[^\n]{0,300}[;\s])?(?:password|pwd)=['\"]?([^;\s'\"]{3,})",
    ),
)
# `password = …`, `AWS_SECRET_ACCESS_KEY=…`, `Authorization: Bearer …`: the value decides.
_ASSIGNED = (
    r"(?i)(?<![a-z0-9])(?:[a-z0-9_\-]{0,40}[_\-]|pg)?"
    r"(?P<label>pass(?:word|wd|phrase)?|pwd|secret(?:[ _-]?(?:access[ _-]?)?key)?"
    r"|(?:api|access|auth|private|account)[ _-]?(?:key|token)"
    r"|client[ _-]?secret|token|bearer|credentials?|authorization)['\"]?"
    # "password for admin is …", but not "password policy is …".
    r"(?:\s+(?:for|of|to|on|in|at|from|we|used)(?:\s+[^\s:=;,]{1,40}){1,5}?)?"
    r"(?:\s*(?P<sign>[:=]+>?)\s*|\s+is:?\s+|(?<=bearer)\s+)"
    r"(?:(?:bearer|basic|token):?\s+)?[`'\"]?(?P<value>[^\s'\"`,;]{3,})"
    r"(?P<more>\s+[^\s,;])?"
)
# One of these is in every label.
_LABELS = ("pass", "pwd", "secret", "key", "token", "bearer", "credential", "authorization")
# Values that stand for a secret or describe one.
_PLACEHOLDER = (
    r"(?i)^(?:[<{$\[(*%].*"
    r"|.*(?:example|placeholder|changeme|redacted|your[_-]|xxxx|\.\.\.|\*\*\*).*"
    r"|(?:true|false|none|null|required|optional|string|secret|password))$"
)
# Words with digits that say how a password is stored: "the password is argon2id-hashed".
_METHOD = r"(?i)^(?:sha-?\d|md5|base64|argon2|pbkdf2|utf-?8|aes-?\d|oauth2|1password)"
# Compiled at the first use: a server's start does not need them.
_compiled = cache(re.compile)
# What people say of a password: "the password is shared", "pwd is empty".
_STATE = (
    r"(?i)(?:ed|en|ing|[ai]ble|ful|less|al|ic|ive|ary|ous|ory|ent|ant|ly|ect|id|own|ure)$"
    r"|^(?:strong|wrong|missing|public|unique|elsewhere|plaintext|below|above|nowhere)$"
)


def find_secret(text: str) -> str:
    """Return the kind of secret in the text, such as "a GitHub token"; empty if there is none."""
    for kind, parts, expression in _FORMATS:
        if not any(part in text for part in parts):
            continue
        pattern = _compiled(expression)
        if any(
            not _compiled(_PLACEHOLDER).match(match[pattern.groups])
            for match in pattern.finditer(text)
        ):
            return kind
    lowered = text.lower()
    if not any(label in lowered for label in _LABELS):
        return ""
    assignments = _compiled(_ASSIGNED).finditer(text)
    return "a password or token" if any(map(_is_secret_value, assignments)) else ""


def mask_secret(text: str) -> str:
    """Return the text, or what kind of secret it contains: receipts and errors repeat none."""
    kind = find_secret(text)
    return f"[hidden: {kind}]" if kind else text


def refuse_secrets(texts: Iterable[str]) -> None:
    """Raise BadInput if one of the texts contains a secret."""
    for text in texts:
        if kind := find_secret(text):
            raise BadInput(
                f"a text looks like {kind}, so nothing was stored; "
                "remember where it is kept instead"
            )


def _is_secret_value(assignment: re.Match[str]) -> bool:
    """Return True if the value after a label looks like a secret.

    In "the token is rotated" it is an ordinary word.
    """
    value = assignment["value"].rstrip(".!?)")
    if value.startswith("/") or _compiled(_PLACEHOLDER).match(value):
        return False
    is_password = assignment["label"].lower().startswith(("pass", "pwd", "credential"))
    # A shell sets a variable: its value is meant literally.
    is_variable = assignment["label"].isupper() and assignment["sign"] == "="
    # A value may call or read something, as in `TOKEN=os.environ[`.
    is_literal = not value.isdigit() and not re.search(r"[.(\[$]", value)
    if is_variable and (is_password or is_literal):
        return True
    if not is_password:
        has_digit = bool(re.search(r"\d", value))
        # A random value has more bits per character than words have; short ones cannot show it.
        shares = [count / len(value) for count in Counter(value).values()]
        bits = -sum(share * log2(share) for share in shares)
        return len(value) >= 16 and has_digit and bits >= 3.0
    if len(value) < 6 or value.isdigit():  # in a sentence an ordinary word
        return False
    if value.isalpha():
        # True for "pwd is swordfish": a word that ends its sentence and is not a state.
        if assignment["sign"] or assignment["label"].lower() == "pass":
            return False
        goes_on = assignment["more"] and assignment["value"] == value
        return not goes_on and not _compiled(_STATE).search(value)
    return not _compiled(_METHOD).match(value) and not _is_plain_phrase(value)


def _is_plain_phrase(value: str) -> bool:
    """Return True for words joined by punctuation: `min-length`, `users.password_hash`."""
    parts = [part for part in re.split(r"[\W_]+", value) if part]
    return all(
        part.isalpha() and (part.islower() or part.istitle() or part.isupper()) for part in parts
    ) or (not re.search(r"\d", value))
