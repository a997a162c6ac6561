"""Values of a chain: frozen dataclasses of bytes and integers.

No hex, no base64, no JSON and no Flask here. Times are integer nanoseconds
since 1970 (:mod:`.time`), hashes and keys are raw bytes, amounts are integers.
"""
