"""Contact problems as data: built, checked, saved, solved, and their solutions measured."""
