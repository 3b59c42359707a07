"""Settings of both kinds of gunicorn."""

import os

# No setting of gunicorn's: what a remoting worker needs behind shutdownWaitTimeSeconds.
STOP_AFTER_DRAIN_S = 3

control_socket_disable = True  # gunicorn 27 opens one in the home directory
accesslog = None
loglevel = "warning"
timeout = 30
if os.access("/dev/shm", os.W_OK):
    worker_tmp_dir = "/dev/shm"  # workers report to their master by touching a file; a disk may block them
