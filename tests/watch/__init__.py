"""Whether what watchers are sent is what docs/watch.md promises."""
