"""The Delassus matrix: by recursion, as an operator, and the scales that follow from it."""
