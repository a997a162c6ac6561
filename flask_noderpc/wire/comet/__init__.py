"""What nodes of CometBFT send and take, from 0.34 to 1.0."""
