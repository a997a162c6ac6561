"""Queries for parameters that modules of earlier versions had, like the SDK's x/params."""
