"""Snapshots, receipts and the chain of evidence. Judges; knows no build file, binary format or process."""
