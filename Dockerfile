# Build: compiles the Wasm core and the program, then leaves only what the program needs at run time.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY assembly assembly
COPY src src
COPY scripts scripts
COPY bin bin
RUN npm run -s build && npm prune --omit=dev --no-audit --no-fund

# Run: Node.js and the program, nothing that builds. Writes no files, so the root file system may be read-only.
FROM node:24-bookworm-slim
ENV NODE_ENV=production
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
