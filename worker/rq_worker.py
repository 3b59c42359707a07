"""`python -m worker.rq_worker`, as manifests of 0.1 start it: `worker.jobs.rq_worker`. Goes with the next release."""

from worker.jobs.rq_worker import main

if __name__ == "__main__":
    main()
