"""What coding agents get: the cost of hooks and imports, and the replies of the native tools."""
