#!/usr/bin/env bash
# Runs a PostgreSQL server and the service on it, from one folder that is made if it is not there.
#
#   deploy/serve_with_postgres.sh FOLDER BUNDLES [further options of `reticent serve`]
#
# The first run makes the database, the ledger and the signing key; later ones go on with them. Grant
# budgets and make keys from another terminal, with the ledger's URL that is printed and stays the same
# as long as FOLDER does. Anchors are kept
# in FOLDER/anchors: keep a copy of them elsewhere, where a restored FOLDER does not take them back.
set -euo pipefail
umask 077

if [ $# -lt 2 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
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
sockets=$folder/sockets
if [ "$(printf %s "$sockets/.s.PGSQL.5432" | wc -c)" -gt 107 ]; then
    echo "error: FOLDER is too long for the name of a socket, which has room for 107 bytes" >&2
    exit 1
fi
mkdir -p "$folder/anchors" "$sockets"
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$data"
    chown postgres: "$data" "$sockets"
    chmod 711 "$sockets"
fi
stop() {
    "${as[@]}" "$programs/pg_ctl" -D "$data" -m fast -w stop >/dev/null || true
}
if [ ! -f "$data/PG_VERSION" ]; then
    "${as[@]}" "$programs/initdb" -D "$data" -E UTF8 -A trust -U reticent >/dev/null
fi
trap stop EXIT
# Reached by the socket alone, which is for its owner and root: there is no port and no password.
(cd / && "${as[@]}" "$programs/pg_ctl" -D "$data" -l "$data/log" -w \
    -o "-k $sockets -c listen_addresses='' -c unix_socket_permissions=0700" start >/dev/null)
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
