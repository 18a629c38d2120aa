"""Arrays bound to a kernel once: one robot in a loop, and small batches."""
