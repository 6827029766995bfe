"""Bytes and JSON to values and back, pure: no socket, clock, task or await."""
