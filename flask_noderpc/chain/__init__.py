"""The embedded chain: application, home, producer."""
