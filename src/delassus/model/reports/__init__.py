"""What there is to say about a model: masses, differences, physical sense."""
