# Every wheel that requirements.lock names is fetched and checked by its hash. What the service needs of
# them is then installed from that folder alone, so the tools of development stay behind.
FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements.lock ./
RUN pip download --require-hashes --no-deps --dest /wheels -r requirements.lock
COPY . .
RUN python -m venv /opt/millstream \
    && /opt/millstream/bin/pip install --no-index --find-links /wheels .

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin millstream \
    && install -d -o millstream -g millstream -m 0700 /data
COPY --from=build /opt/millstream /opt/millstream
ENV PATH=/opt/millstream/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MILLSTREAM_DATA=/data \
    MILLSTREAM_HOST=0.0.0.0
USER millstream
WORKDIR /home/millstream
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/livez', timeout=2)"]
ENTRYPOINT ["millstream"]
# Nobody is asked who they are: publish the port on loopback, `-p 127.0.0.1:8080:8080`, or behind something that asks.
CMD ["up", "--insecure"]
