"""fsbl beside the tools that others measure with, in the same minutes: `scripts/compare-peers`."""
