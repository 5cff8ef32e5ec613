# Serve every dialect over HTTP, from a directory of workspaces in /data, with search by meaning.
#
#   docker build -t polymnia .
#   docker run --rm -v memory:/data polymnia token create me --can admin --data-dir /data
#   docker run -v memory:/data -p 8765:8765 polymnia
#
# Or for one client, which starts it and talks to it on standard input and output:
#
#   docker run --rm -i -v memory:/data polymnia serve --store /data/memory.db

FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY docs/man/polymnia.1 ./docs/man/
COPY src ./src
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels '.[oauth,postgres,semantic]'

FROM python:3.13-slim
LABEL io.modelcontextprotocol.server.name="io.github.polymnia/polymnia"
COPY --from=build /wheels /wheels
RUN python -m pip install --no-cache-dir --no-index --find-links /wheels 'polymnia[oauth,postgres,semantic]' \
    && rm -rf /wheels \
    && useradd --uid 1000 --create-home polymnia \
    && install -d -o polymnia -g polymnia -m 700 /data
USER polymnia
WORKDIR /home/polymnia
VOLUME /data
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=4)"]
ENTRYPOINT ["polymnia"]
CMD ["serve", "--transport", "http", "--bind", "0.0.0.0", "--port", "8765", "--data-dir", "/data", "--also", "all"]
