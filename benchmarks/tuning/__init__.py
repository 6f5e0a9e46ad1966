"""What tuning finds, natively."""
