#!/bin/sh
# Make bubblewrap available: the system's, or apt as root, or the one binary of its package in $1.
set -eu
folder=${1:?usage: get-sandbox.sh FOLDER}
command -v bwrap >/dev/null && exit 0
[ -x "$folder/bin/bwrap" ] && exit 0
command -v apt-get >/dev/null || {
    echo "bubblewrap is missing and this is no Debian or Ubuntu: install the package 'bubblewrap'." >&2
    exit 0
}
if [ "$(id -u)" = 0 ]; then
    echo "Installing bubblewrap (the sandbox that candidates run in) ..."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq bubblewrap >/dev/null && exit 0
fi
echo "Unpacking bubblewrap (the sandbox that candidates run in) into $folder ..."
mkdir -p "$folder"
(cd "$folder" && apt-get download -qq bubblewrap && dpkg -x bubblewrap_*.deb unpacked &&
    mkdir -p bin && cp unpacked/usr/bin/bwrap bin/ && rm -rf unpacked bubblewrap_*.deb) ||
    echo "bubblewrap could not be fetched: install the package 'bubblewrap'." >&2
