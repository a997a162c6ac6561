"""Tracers of EVM execution, named and built like geth's."""
