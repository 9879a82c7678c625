"""Fills the Secrets that hold tokens of service accounts, and removes them with their account."""
