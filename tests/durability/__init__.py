"""Check that no acknowledged write is lost: to killed servers, concurrent processes, damaged files or failing disks."""
