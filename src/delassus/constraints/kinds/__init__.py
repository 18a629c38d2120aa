"""The constraints that users meet, one file a kind."""
