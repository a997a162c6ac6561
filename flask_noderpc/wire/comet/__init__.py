"""Wire formats of CometBFT 0.34 to 1.0."""
