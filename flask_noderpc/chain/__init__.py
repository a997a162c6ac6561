"""Embedded chain: its applications, its home folder with keys, and its block producer."""
