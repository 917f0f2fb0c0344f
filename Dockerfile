# The service as an image: see docs/docker.md. Built twice from one base, so that no compiler is in what runs.
# To pin the base to the byte, name its digest: --build-arg PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:...
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# The suite of the base decides the compiler's version; a pinned patch level is gone from the archive in a month.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
# All that is installed here and below, and what it is built with: the locked versions, each with the hash that was seen.
COPY deploy/docker/requirements.lock ./
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip download --require-hashes --no-deps --only-binary :all: --dest /wheels --requirement requirements.lock \
    && /opt/build/bin/pip install --no-index --find-links /wheels cyclonedx-bom
COPY pyproject.toml README.md LICENSE ./
COPY ext ext
COPY codec_core codec_core
COPY server server
RUN /opt/build/bin/pip wheel --no-deps --no-index --find-links /wheels --wheel-dir /wheels .
# With what the store of snapshots in Redis needs. An environment does not move: it is made where it will run. Nothing that runs needs
# pip, or the tests of other packages.
RUN python3 -m venv --without-pip /opt/mimi \
    && /opt/build/bin/pip --python /opt/mimi/bin/python3 install --no-index --find-links /wheels 'mimi-server[redis]' \
    && find /opt/mimi -type d -name tests -prune -exec rm -rf {} +
# What is in it, for whoever looks for known holes: CycloneDX, in the image.
RUN /opt/build/bin/cyclonedx-py environment --output-reproducible --output-format JSON \
    --output-file /opt/mimi/sbom.cdx.json /opt/mimi/bin/python3

FROM ${PYTHON_IMAGE} AS runtime
LABEL org.opencontainers.image.title="mimi-server" \
      org.opencontainers.image.description="Live neural audio codes: an exact, streaming Mimi codec as a service" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 mimi \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin mimi
COPY --from=build /opt/mimi /opt/mimi
ENV PATH=/opt/mimi/bin:${PATH} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# 0.0.0.0 is the container's own network; the service refuses to listen there unless MIMI_API_KEYS is set.
ENV MIMI_HOST=0.0.0.0 MIMI_PORT=8000 MIMI_MODEL=default MIMI_LOG_FORMAT=json
# With the time for draining, 5 s, no more than the 10 s that `docker stop` waits.
ENV MIMI_STOP_TIMEOUT_MS=5000
WORKDIR /models
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-c", "import http.client, os, ssl, sys; where = {'host': '127.0.0.1', 'port': int(os.environ['MIMI_PORT']), 'timeout': 4}; probe = http.client.HTTPSConnection(**where, context=ssl._create_unverified_context()) if os.environ.get('MIMI_TLS_CERT') else http.client.HTTPConnection(**where); probe.request('GET', '/readyz'); sys.exit(probe.getresponse().status != 200)"]
ENTRYPOINT ["mimi", "serve"]
