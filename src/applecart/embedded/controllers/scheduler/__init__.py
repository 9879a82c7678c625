"""The scheduler of embedded mode: which node each Pod gets, decided in plain values and carried out as an ordinary client."""
