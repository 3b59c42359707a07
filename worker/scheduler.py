"""`python -m worker.scheduler`, as manifests of 0.1 start it: `worker.jobs.scheduler`. Goes with the next release."""

from worker.jobs.scheduler import main

if __name__ == "__main__":
    main()
