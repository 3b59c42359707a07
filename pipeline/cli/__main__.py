"""`python -m pipeline.cli`: as `mqpipeline`. `spark-submit` takes this file."""

from pipeline.cli.main import main

if __name__ == "__main__":
    main()
