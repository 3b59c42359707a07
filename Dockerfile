# The name server (target namesrv, which is the default) and the pipeline with Spark and Java (target pipeline).
# docs/container.md tells how to build and run them. Tags pin the bases; pin digests where your registry shows them.
# Both bases must have the same Python; BUILD_BASE adds a C compiler, Python's headers and venv.
ARG BUILD_BASE=python:3.13.11-bookworm
ARG BASE=python:3.13.11-slim-bookworm

FROM ${BUILD_BASE} AS builder
# what pip is told comes as secrets, so that no layer has it; both are optional
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/redis-namesrv
WORKDIR /src
COPY requirements/build.txt requirements/namesrv.txt requirements/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt,target=/run/secrets/ca.crt \
    /build/bin/pip install -q --no-deps --require-hashes -r requirements/build.txt \
    && /build/bin/pip --python /opt/redis-namesrv/bin/python install -q --no-compile --no-deps --require-hashes \
       --only-binary :all: -r requirements/namesrv.txt
COPY . .
RUN tools/wheels.sh /build/bin/python /wheels \
    && /build/bin/pip --python /opt/redis-namesrv/bin/python install -q --no-compile --no-deps --no-index \
       /wheels/mqns-*.whl /wheels/redis_namesrv-*.whl \
    && /opt/redis-namesrv/bin/python -c 'import worker.transport.epoll'

FROM builder AS namesrv-builder
RUN container/finish.sh /opt/redis-namesrv

FROM ${BASE} AS runtime
# Hadoop refuses to work for a user without a name; nothing here is to gain rights by being run
RUN echo 'namesrv:x:10001:' >>/etc/group \
    && echo 'namesrv:x:10001:10001::/tmp:/usr/sbin/nologin' >>/etc/passwd \
    && install -d -m 750 -o 10001 -g 10001 /data \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} +
ENV PATH=/opt/redis-namesrv/bin:$PATH HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1 \
    ROCKETMQ_HOME=/data MQNS_DATA_DIR=/data MQNS_ENABLE_SHUTDOWN_GRACEFULLY=true \
    MQNS_HTTP_BIND_ADDRESS=0.0.0.0
WORKDIR /opt/redis-namesrv
STOPSIGNAL SIGTERM
USER 10001:10001

FROM runtime AS namesrv
COPY --from=namesrv-builder /opt/redis-namesrv /opt/redis-namesrv
ARG VERSION REVISION
LABEL org.opencontainers.image.title="redis-namesrv" \
      org.opencontainers.image.description="Apache RocketMQ's NameServer as stateless gunicorn workers over Redis" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
EXPOSE 9876 8080
CMD ["mqnamesrv"]

FROM builder AS pipeline-builder
COPY requirements/pipeline.txt requirements/
# Spark comes as a source distribution of jars, of which the tools of build.txt make a wheel
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt,target=/run/secrets/ca.crt \
    /build/bin/pip wheel -q --no-build-isolation --no-deps --require-hashes -r requirements/pipeline.txt -w /spark \
    && /build/bin/pip --python /opt/redis-namesrv/bin/python install -q --no-compile --no-deps --no-index \
       /spark/*.whl /wheels/mqpipeline-*.whl /wheels/pyspark_redis_stream-*.whl
# where the chart and the manifests look for Spark and for what is submitted, whichever Python this is
RUN /opt/redis-namesrv/bin/python -c \
      'from pathlib import Path; from mqpipeline.java import java_home; java_home({}, Path("/opt/redis-namesrv"))' \
    && ln -s /opt/redis-namesrv/lib/python3*/site-packages/pyspark /opt/spark \
    && ln -s lib/python3*/site-packages/mqpipeline /opt/redis-namesrv/mqpipeline \
    && container/finish.sh /opt/redis-namesrv

FROM runtime AS pipeline
COPY --from=pipeline-builder /opt /opt
ARG VERSION REVISION
LABEL org.opencontainers.image.title="redis-namesrv-pipeline" \
      org.opencontainers.image.description="Tables and reports of a name server's events, with Spark" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV JAVA_HOME=/opt/redis-namesrv/java
CMD ["mqpipeline", "run"]

# the last one is built where none is asked for
FROM namesrv
