"""A feature for flask-noderpc: a chain of words."""
