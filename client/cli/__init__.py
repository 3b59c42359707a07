"""The command `mqns`: name servers at the command line, those of Java and ours. Needs the extra `cli`."""
