"""Values as Ethereum writes them: parameters, results, and objects in them."""
