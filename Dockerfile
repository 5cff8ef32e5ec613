# Serve projects in /data over HTTP: the project dialect at /mcp, the graph and reference dialects at their own paths.
#
#   docker build -t polymnia .
#   docker run -v memory:/data polymnia token create me --can admin --data-dir /data
#   docker run -v memory:/data -p 8081:8081 polymnia

FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY docs/man/polymnia.1 ./docs/man/
COPY src ./src
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels '.[oauth]'

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN python -m pip install --no-cache-dir --no-index --find-links /wheels 'polymnia[oauth]' \
    && rm -rf /wheels \
    && useradd --uid 1000 --create-home polymnia \
    && install -d -o polymnia -g polymnia -m 700 /data
USER polymnia
WORKDIR /home/polymnia
VOLUME /data
EXPOSE 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8081/healthz', timeout=4)"]
ENTRYPOINT ["polymnia"]
CMD ["serve", "--transport", "http", "--bind", "0.0.0.0", "--port", "8081", "--data-dir", "/data", \
     "--dialect", "project", "--also", "graph", "--also", "reference"]
