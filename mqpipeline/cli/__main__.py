"""`python -m mqpipeline.cli`: as `mqpipeline`. `spark-submit` takes this file."""

from mqpipeline.cli.main import main

if __name__ == "__main__":
    main()
