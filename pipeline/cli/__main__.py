"""`python -m pipeline.cli`: as `mqpipeline`."""

from pipeline.cli.main import main

main()
