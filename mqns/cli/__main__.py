"""`python -m mqns.cli` runs `mqns`."""

from mqns.cli.main import main

main()
