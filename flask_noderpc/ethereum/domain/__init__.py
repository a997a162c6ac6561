"""Values of Ethereum: its transactions, logs and headers, and what code runs on."""
