"""New coins by inflation, like the SDK's x/mint."""
