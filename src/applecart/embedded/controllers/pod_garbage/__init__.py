"""Pod garbage of embedded mode: Pods that nobody is left to finish, and finished Pods that are too many."""
