"""Search over schedules: sampling, measuring, keeping the best."""
