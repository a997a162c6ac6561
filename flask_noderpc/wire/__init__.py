"""Encodings of results: fields, schemas, envelopes, dialects."""
