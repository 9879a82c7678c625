"""Removes objects whose owners are gone: the owner-reference garbage collector."""
