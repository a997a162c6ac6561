"""The sans-I/O core: routes, parameters, messages, dispatch. No socket and no Flask."""
