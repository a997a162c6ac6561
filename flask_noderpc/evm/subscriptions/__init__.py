"""Polled filters and subscriptions."""
