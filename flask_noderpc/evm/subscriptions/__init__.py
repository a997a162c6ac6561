"""What tells of news: filters that are polled, and subscriptions."""
