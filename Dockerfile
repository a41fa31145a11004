# Build: compiles the Wasm core and the program, then leaves only what the program needs at run time on this platform.
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY assembly assembly
COPY src src
COPY tools tools
COPY page page
COPY scripts scripts
COPY bin bin
RUN npm run -s build \
 && npm prune --omit=dev --no-audit --no-fund \
 && node scripts/image-files.ts

# Run: Node.js and the program, nothing that builds. Writes no files, so the root file system may be read-only.
FROM ${NODE_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Pointsman" \
      org.opencontainers.image.description="An endpoint picker for LLM inference gateways" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production POINTSMAN_COMMIT=${REVISION}
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/bin bin
COPY LICENSE NOTICE ./
USER 65532:65532
# ext_proc, gRPC health, metrics
EXPOSE 9002 9003 9090
ENTRYPOINT ["node", "/app/bin/pointsman.js"]
