"""What must not get lost: killed servers, several processes, damaged files, disks that fail."""
