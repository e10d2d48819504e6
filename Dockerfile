# Builds the service and puts it, with its models, into a small image that runs as an ordinary user.
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN cargo build --release --locked --bin vat-classification

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --create-home service
COPY --from=build /build/target/release/vat-classification /usr/local/bin/
COPY --from=build /build/models /app/models
WORKDIR /app
USER service
VOLUME /data
ENV DATA_DIR=/data BIND_ADDR=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["vat-classification"]
CMD ["serve"]
