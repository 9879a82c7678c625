"""A Kubernetes-native fleet manager for macOS CI on Apple silicon."""

__version__ = "0.1.0.dev0"
