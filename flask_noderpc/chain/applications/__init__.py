"""Applications that an embedded chain can run."""
