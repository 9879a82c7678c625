"""Node lifecycle of embedded mode: which hosts are lost, what their Nodes say then, and which Pods must leave them."""
