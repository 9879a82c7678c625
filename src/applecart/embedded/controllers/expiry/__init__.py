"""Expiry of embedded mode: Events that are old or too many, and Leases of hosts that left."""
