"""All scenarios; importing this package fills `SCENARIOS`."""

from tests.campaign.scenarios import builds, edits, headers, options, records, state, upstream  # noqa: F401
