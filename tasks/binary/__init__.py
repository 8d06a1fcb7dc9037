"""Reads linked files and objects: ELF, fat binaries, fingerprints, containment, kernels.

Knows nothing of builds, receipts or verdicts. Whatever is malformed is a :class:`BadFatbin`, never a
shorter list.
"""
