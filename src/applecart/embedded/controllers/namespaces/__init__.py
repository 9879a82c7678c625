"""Empties and ends deleted namespaces, and gives living ones what every namespace has."""
