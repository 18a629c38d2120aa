"""Which shapes may touch the ground and each other, by names and by the model's file, and their friction."""
