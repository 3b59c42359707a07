"""The command `mqns` for name servers of Java and of this project. Needs the extra `cli`."""
