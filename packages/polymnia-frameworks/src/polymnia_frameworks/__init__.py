"""Memory interfaces of agent frameworks over a Polymnia memory.

Each module imports its framework, so import the one you use. All of them take what
`polymnia.open()` or `polymnia.connect()` returns.
"""
