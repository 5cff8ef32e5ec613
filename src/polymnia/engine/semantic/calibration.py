"""Measure the cosines of a model: what unrelated texts have, and how far they spread.

Models differ: unrelated texts have a cosine of 0.0 with one and of 0.5 with another. The ranking
counts in units of the local model, so the cosines of every other model are put on its scale. They
are measured once, with texts of unlike kinds, not with those of the store: these are more or less
alike, and a ranking must not depend on what else is stored.
"""

from itertools import combinations
from typing import Protocol

from polymnia.model import CosineScale

# Texts of one kind may be alike; texts of two kinds are not.
_TEXTS = """
I had such a great time at the lake with the kids last weekend!
Thanks for listening, it really means a lot to me.
My sister just adopted a puppy, she is over the moon.
We should grab coffee soon and catch up.
I've been feeling a bit tired since I started the new job.
Did you see the pictures from the wedding?
He finally passed his driving test on the third try.
I'm learning to play the violin, it's harder than I thought.

The request times out after thirty seconds when the connection pool is exhausted.
Use a feature flag to roll out the new checkout page.
Migrations run before the container starts, in one transaction.
The parser raises an error for a key without a value.
Nightly builds are stored for two weeks in the artifact bucket.
Set the log level with an environment variable.
The cache is invalidated whenever a row of the table changes.
Unit tests must not open network connections.

Experiments in a wind tunnel determined the pressure distribution on a slender wing.
The reaction yields a crystalline product at low temperature.
Samples of river sediment were analysed for heavy metals.
A mathematical model describes how the population grows.
The survey covers forty patients who were treated over two years.
Radiation of distant galaxies is shifted towards longer wavelengths.
The enzyme binds two molecules and changes its shape.
Observed heat transfer agrees with the theory of the boundary layer.

Simmer the onions until they are soft, then add the tomatoes.
Let the dough rest for an hour under a damp cloth.
A pinch of nutmeg brings out the flavour of spinach.
Serve the soup with toasted bread and grated cheese.
Marinate the chicken overnight in yoghurt and lemon.
Beat the egg whites until they form stiff peaks.
The lentils need twenty minutes without soaking.
Roast the almonds in a dry pan.

The council voted to close the bridge for repairs until autumn.
Shares of the airline fell after it announced lower profits.
The two countries signed a treaty on fishing rights.
Firefighters brought the blaze under control in the evening.
The museum opens an exhibition of medieval manuscripts.
Turnout at the election was the highest in thirty years.
The team won the final with a goal in extra time.
Heavy snow closed several mountain passes.

The tenant gives notice in writing three months in advance.
Each party bears its own costs of the proceedings.
The warranty does not cover damage caused by misuse.
Payment is due within fourteen days of the invoice.
Employees accrue two days of leave for each month of service.
The insurer is liable up to the sum stated in the policy.
This agreement is governed by the laws of the seller's country.
Personal data is erased when the purpose has ended.
"""
# Where the zero of the scale lies above the mean of unrelated texts, and what one unit is, in
# deviations: with these the local model has the scale that its weights were chosen with.
_ZERO_DEVIATIONS, _UNIT_DEVIATIONS = 1.04, 1.7
# A model that gives every text nearly the same vector must not make its noise count.
_MIN_DEVIATION = 0.005


class Embed(Protocol):
    """Embeds texts, or questions, which some models give a prompt."""

    def __call__(self, texts: list[str], *, asking: bool = False) -> list[bytes]: ...


def measure_scale(embed: Embed) -> CosineScale:
    """Return the scale of a model's cosines, measured with texts of unlike kinds.

    One text of each pair is embedded as a question: a prompt moves all cosines.
    """
    import numpy as np  # comes with the extra that has a model

    pairs = []
    for one, other in combinations(_TEXTS.strip().split("\n\n"), 2):
        asked = [np.frombuffer(vector, "<f4") for vector in embed(one.splitlines(), asking=True)]
        texts = [np.frombuffer(vector, "<f4") for vector in embed(other.splitlines())]
        pairs.append((np.array(asked) @ np.array(texts).T).ravel())
    cosines = np.concatenate(pairs)
    deviation = max(float(cosines.std()), _MIN_DEVIATION)
    zero = float(cosines.mean()) + _ZERO_DEVIATIONS * deviation
    return CosineScale(zero, _UNIT_DEVIATIONS * deviation)
