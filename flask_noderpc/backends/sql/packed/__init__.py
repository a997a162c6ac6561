"""Packed rows of a SQL store: MessagePack after a checksum."""
