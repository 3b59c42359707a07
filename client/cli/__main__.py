"""`python -m client.cli`: as `mqns`."""

from client.cli.main import main

main()
