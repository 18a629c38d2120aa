"""Arrays that are bound to a kernel once: of one robot in a loop, and of small batches."""
