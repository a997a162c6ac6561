"""Rows of a SQL store as bytes: MessagePack behind a checksum."""
