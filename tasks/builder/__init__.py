"""Running the user's build: the command, the lock, the log, what went wrong. Knows no receipt and no verdict."""
