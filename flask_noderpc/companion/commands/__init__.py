"""Commands of the companion: ``noderpc conform``, ``import``, ``follow`` and ``status``."""
