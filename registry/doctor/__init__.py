"""The findings of a name server about itself: what its store shows, and an operator should know (docs/cli.md)."""
