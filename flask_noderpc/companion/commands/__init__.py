"""Commands of the companion: ``noderpc conform``, ``import`` and ``follow``."""
