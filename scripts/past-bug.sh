#!/bin/sh
# Runs tests of a cure on the program before it, in a worktree of its own: they show the fault.
#   sh scripts/past-bug.sh COMMIT TEST…        COMMIT: the cure
set -eu

cure=$1
shift
folder=$(mktemp -d)
git worktree add --quiet --detach "$folder" "$cure^"
root=$(pwd)
trap 'cd / && git -C "$root" worktree remove --force "$folder"' EXIT
trap 'exit 130' INT TERM
cd "$folder"
git checkout --quiet "$cure" -- "$@"
npm ci --prefer-offline --no-audit --no-fund
npm run --silent build
npx vitest run "$@"
