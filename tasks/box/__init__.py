"""The box that builds run on: free space, build folders and what they hold, which of them may be cleaned."""
