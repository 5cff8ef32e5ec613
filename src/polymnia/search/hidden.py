"""Characters that a person does not see but a model reads or a terminal obeys."""

import re

# Invisible characters: controls, marks that change the direction of text, TAG characters,
# spaces without width and soft hyphens. Persian needs zero-width non-joiners, and emojis need
# joiners; between ASCII characters they only hide something.
HIDDEN = (
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    r"|[\u200c\u200d](?![^\x00-\x7f])|(?<![^\x00-\x7f])[\u200c\u200d]"
)


def without_hidden(text: str) -> str:
    """Return a text without the characters that a person would not see but a model would read.

    All text for a model goes through this function.
    """
    return re.sub(HIDDEN, "", text)
