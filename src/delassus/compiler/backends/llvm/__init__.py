"""LLVM IR as text: the body of a kernel, and the loop around it that NumPy calls."""
