#!/bin/sh
# What the tests start themselves: Redis, PostgreSQL, Chromium and the sandbox; apt as root.
set -eu
missing=""
command -v redis-server >/dev/null || missing="$missing redis-server"
command -v chromium >/dev/null || missing="$missing chromium"
command -v bwrap >/dev/null || missing="$missing bubblewrap"
command -v g++ >/dev/null || missing="$missing g++"
command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ||
    missing="$missing postgresql"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "The tests need these packages; install them as root and run again:$missing" >&2
    exit 1
fi
echo "Installing what the tests start:$missing"
apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
