"""Elementary functions as programs of plain arithmetic."""
