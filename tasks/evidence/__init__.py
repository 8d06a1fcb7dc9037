"""Snapshots, receipts and the chain of evidence. Judges; knows no build file, binary format or process."""

# The folder in the build directory that holds everything this project keeps about it.
STATE_NAME = ".fmha"
