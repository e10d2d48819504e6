# syntax=docker/dockerfile:1
# Builds the service and puts it, with its models, into a small image that runs as an ordinary user.
#
# The caches keep the built dependencies: after a change of the service alone, only that is built again.
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin vat-classification \
    && cp target/release/vat-classification /vat-classification

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="vat-classification" \
      org.opencontainers.image.description="Finds the customs product class, and so the VAT rate, of merchants' products" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /data --create-home service
COPY --from=build /vat-classification /usr/local/bin/
COPY models /app/models
WORKDIR /app
# A number, so that whoever runs it can tell that it is not root.
USER 10001
VOLUME /data
# The first token goes into a file, not into the log of the container.
ENV DATA_DIR=/data BIND_ADDR=0.0.0.0:8080 FIRST_TOKEN_FILE=/data/first-token
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /health/live HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '200 OK' <&3"]
ENTRYPOINT ["vat-classification"]
CMD ["serve"]
