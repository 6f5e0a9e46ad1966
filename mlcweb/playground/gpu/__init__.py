"""What a GPU does with a kernel: memory transactions, bank conflicts, phases, occupancy."""
