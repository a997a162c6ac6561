"""Packed rows of a SQL store: MessagePack with a checksum in front."""
