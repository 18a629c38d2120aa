"""Selection of shapes that may touch the ground and each other, by names and by the model's file; their friction."""
