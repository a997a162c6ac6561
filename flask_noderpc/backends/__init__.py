"""Where chain data comes from: the abstract roles and the backends of this package."""
