"""From Flask's requests to the sans-I/O core and back."""
