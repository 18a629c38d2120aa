"""What is left of learning: pages, films, policies for other places."""
