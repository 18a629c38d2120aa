"""From a graph to code that runs: schedule, LLVM, C, and an interpreter as the reference."""
