"""Models and states from and to other people's libraries."""
