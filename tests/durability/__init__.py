"""Check that no acknowledged write is lost.

To killed servers, concurrent processes, damaged files or failing disks.
"""
