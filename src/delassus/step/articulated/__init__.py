"""Steps whose joint laws and contacts are solved inside the articulated-body recursion, without a Delassus matrix."""
