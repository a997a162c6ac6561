"""The applications that an embedded chain runs."""
