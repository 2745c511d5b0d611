"""Private pictures to an untrusted server."""
