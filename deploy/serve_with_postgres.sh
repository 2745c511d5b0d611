#!/usr/bin/env bash
# Runs a PostgreSQL server and the service on it, from one folder that is made if it is not there.
#
#   deploy/serve_with_postgres.sh FOLDER BUNDLES [further options of `reticent serve`]
#
# The first run makes the database, the ledger and the signing key; later ones go on with them. Grant
# budgets and make keys from another terminal, with the ledger's URL that is printed. Anchors are kept
# in FOLDER/anchors: keep a copy of them elsewhere, where a restored FOLDER does not take them back.
set -euo pipefail
umask 077

if [ $# -lt 2 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
folder=$(realpath -m "$1") bundles=$(realpath "$2")
shift 2
programs=$(dirname "$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -1)")
if [ ! -x "$programs/initdb" ]; then
    echo "error: no PostgreSQL here; install Debian's package postgresql" >&2
    exit 1
fi
mkdir -p "$folder"
as=()
if [ "$(id -u)" = 0 ]; then  # the server refuses to run as root
    as=(setpriv --reuid postgres --regid postgres --init-groups env HOME=/tmp)
    chmod 711 "$folder"
fi
data=$folder/database
sockets=$(mktemp -d /tmp/reticent.XXXXXX)  # the name of a socket has room for 107 bytes
mkdir -p "$folder/anchors"
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$data"
    chown postgres: "$data" "$sockets"
    chmod 711 "$sockets"
fi
stop() {
    "${as[@]}" "$programs/pg_ctl" -D "$data" -m fast -w stop >/dev/null || true
    rm -rf "$sockets"
}
if [ ! -f "$data/PG_VERSION" ]; then
    "${as[@]}" "$programs/initdb" -D "$data" -E UTF8 -A trust -U reticent >/dev/null
fi
trap stop EXIT
# Reached by the socket alone: no port, and nobody but this user may enter its folder as it is listed.
(cd / && "${as[@]}" "$programs/pg_ctl" -D "$data" -l "$data/log" -w \
    -o "-k $sockets -c listen_addresses=''" start >/dev/null)
url="postgresql://reticent@/postgres?host=$sockets&anchor=$folder/anchors"
if [ ! -f "$folder/signing-key.pem" ]; then
    openssl genpkey -algorithm ed25519 -out "$folder/signing-key.pem"
    openssl pkey -in "$folder/signing-key.pem" -pubout -out "$folder/signing-key.pub.pem"
fi
reticent=${RETICENT:-reticent}
$reticent ledger init --ledger "$url" >/dev/null
echo "ledger: $url"
$reticent serve --bundles "$bundles" --ledger "$url" --signing-key "$folder/signing-key.pem" "$@" &
service=$!
trap 'kill -TERM $service 2>/dev/null || true' INT TERM
wait "$service" || status=$?
# A signal ends the first wait before the service has finished what is under way.
wait "$service" 2>/dev/null || true
exit "${status:-0}"
