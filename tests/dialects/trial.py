"""What a new user remembered and asked."""

from typing import Any

# The memory of the trial, and its questions with the fact that must come first.
REMEMBERED: list[dict[str, Any]] = [
    {
        "name": "Ada",
        "type": "person",
        "facts": ["drinks dark coffee without sugar", "prefers Python to Java"],
    },
    {
        "name": "Ben",
        "type": "person",
        "facts": ["is allergic to peanuts", "moved to Lisbon in March 2026"],
    },
    {
        "name": "deployment",
        "type": "process",
        "facts": ["We deploy with make release every Friday after the review"],
    },
    {
        "name": "billing service",
        "type": "service",
        "facts": ["uses PostgreSQL 16", "owner is the payments team"],
    },
    {
        "name": "style",
        "type": "rule",
        "facts": ["Commit messages are in the imperative", "Lines have 120 characters"],
    },
    {
        "name": "incident 42",
        "type": "incident",
        "facts": ["The outage of May 3 was caused by an expired certificate"],
    },
]
QUESTIONS = {
    "What does Ada drink?": "dark coffee",
    "dark coffee": "dark coffee",
    "how do we deploy": "make release",
    "Which database does billing use?": "PostgreSQL",
    "Who is allergic to peanuts?": "allergic to peanuts",
    "Where does Ben live now?": "Lisbon",
    "what caused the outage": "expired certificate",
    "how long may lines be": "120 characters",
    "How should I write commit messages?": "imperative",
    "Which language does Ada prefer?": "Python",
}
