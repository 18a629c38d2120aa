"""Contact problems as data: created, checked, saved, solved; and measures of their solutions."""
