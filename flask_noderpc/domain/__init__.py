"""Values of a chain: frozen dataclasses of bytes and integers.

This package has no hex, base64, JSON or Flask. Times are integer nanoseconds since 1970
(:mod:`.time`), hashes and keys are raw bytes, amounts are integers.
"""
