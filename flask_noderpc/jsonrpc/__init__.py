"""The sans-I/O core: routes, parameters, messages, dispatch. It uses neither sockets nor
Flask."""
