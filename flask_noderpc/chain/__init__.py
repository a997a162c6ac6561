"""The embedded chain: application, home and block producer."""
