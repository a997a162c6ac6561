"""Values of Ethereum: transactions, logs, headers, and the input and output of executions."""
