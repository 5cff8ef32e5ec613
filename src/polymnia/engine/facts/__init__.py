"""The verbs of an agent: remember, revise and forget facts, and a briefing on them."""
