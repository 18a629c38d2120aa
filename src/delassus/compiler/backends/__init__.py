"""Back ends: a scheduler, LLVM, C99, and an interpreter as the reference."""
