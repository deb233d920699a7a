#!/bin/sh
# Install into .venv what a lock names, each file checked by its hash.
#
#   install.sh runtime        what the service needs, and this project in place
#   install.sh spark          what the Spark worker needs besides
#   install.sh spark PID      the same beside a running process: reports each step, ends when PID ends
#   install.sh dev            what tests and linters need, which includes both
#
# uv installs where it can be had: from PATH, or fetched once by pip into the user's cache. Otherwise pip installs;
# UV=no asks for that. PySpark is a source archive: its wheel is built once per user, not per clone.
set -eu
cd "$(dirname "$0")/.."
kind=$1 companion=${2:-}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/millstream
bin=.venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK=1

main() {
    case $kind in
        runtime | dev) ;;
        spark) if is_current spark; then exit; fi ;;
        *) fail "unknown: $kind" ;;
    esac
    if [ -n "$companion" ]; then
        rm -f .venv/lib/python*/site-packages/pyspark-*.dist-info/INSTALLER # an outdated one: not to be used meanwhile
        beside_companion &
        exit
    fi
    "install_$kind"
}

install_runtime() {
    say "Installing into .venv what requirements.lock names: some 350 MB, seconds when the network is fast"
    prepare
    install --require-hashes -r requirements.lock
    install --no-deps --no-build-isolation -e .
    touch .venv/.runtime
}

install_dev() {
    say "Installing into .venv what requirements-dev.lock names: some 1.8 GB, up to two minutes"
    prepare
    install_with_pyspark requirements-dev.lock
    install --no-deps --no-build-isolation -e .
    touch .venv/.runtime .venv/.spark .venv/.dev
}

install_spark() {
    prepare
    say "Spark: installing what it needs (130 MB)"
    install_with_pyspark requirements-spark.lock
    say "Spark: installed"
    nice -n 10 "$bin/python" -m spark_worker.build_class_archive # the worker has started meanwhile
    touch .venv/.spark
}

# PySpark last: who waits for it can then use the rest.
install_with_pyspark() {
    entries "$1" others pyspark >.venv/others.lock
    entries "$1" only pyspark >.venv/pyspark.lock
    install --require-hashes -r .venv/others.lock
    wheels=$cache/wheels/$(sed -n 's/.*--hash=sha256:\([0-9a-f]*\).*/\1/p' .venv/pyspark.lock | head -n 1)
    (cd "$wheels" && sha256sum --check --status SHA256SUMS) 2>/dev/null || build_pyspark "$wheels"
    say "Spark: unpacking PySpark"
    install --no-deps "$wheels"/pyspark-*.whl
}

build_pyspark() {
    say "Spark: downloading PySpark and building its wheel (450 MB, a minute or two; once per user)"
    mkdir -p "$cache/wheels"
    new=$(mktemp -d "$cache/wheels/.new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    TMPDIR=$new "$bin/python" -m pip wheel --quiet --require-hashes --no-deps --no-build-isolation --no-cache-dir \
        --wheel-dir "$new" -r .venv/pyspark.lock
    (cd "$new" && sha256sum pyspark-*.whl >SHA256SUMS)
    rm -rf "$1"
    mv "$new" "$1"
    trap - EXIT
}

# The installation ends with the process that it accompanies; the next one completes it.
beside_companion() {
    setsid deploy/install.sh spark &
    while kill -0 $! 2>/dev/null && kill -0 "$companion" 2>/dev/null; do sleep 1; done
    kill -- -$! 2>/dev/null || wait $! || say "Spark could not be installed (see above): the archive and large replays wait for it"
}

prepare() {
    uv=$(find_uv)
    if [ -n "$uv" ]; then
        [ -x $bin/python ] || "$uv" venv --quiet .venv
        return
    fi
    create_venv
    [ "${UV:-}" = no ] || uv=$(fetch_uv)
}

find_uv() {
    [ "${UV:-}" = no ] || command -v uv || { [ -x "$(cached_uv)" ] && cached_uv; } || true
}

cached_uv() {
    echo "$cache/uv-$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements-dev.lock)/bin/uv"
}

create_venv() {
    [ -n "${PYTHON:-}" ] || fail "Millstream needs Python 3.11 to 3.14, or uv"
    [ -x $bin/pip ] || "$PYTHON" -m venv .venv || fail "python3 -m venv does not work here: install python3-venv, or uv"
}

# Prints its path, or nothing where there is none for this machine.
fetch_uv() {
    folder=$(dirname "$(dirname "$(cached_uv)")")
    mkdir -p "$cache"
    new=$(mktemp -d "$cache/.new-XXXXXX")
    entries requirements-dev.lock only uv >"$new/uv.lock"
    if "$bin/pip" install --quiet --require-hashes --only-binary uv --target "$new" -r "$new/uv.lock" >&2; then
        mv -T "$new" "$folder" 2>/dev/null || rm -rf "$new"
        cached_uv
    else
        rm -rf "$new"
        say "uv could not be fetched: pip installs instead, which takes longer"
    fi
}

install() {
    if [ -n "$uv" ]; then
        "$uv" pip install --quiet --python $bin/python "$@"
    else
        "$bin/python" -m pip install --quiet "$@"
    fi
}

# Prints the entries of a lock: the one of a package (only), or the others.
entries() {
    awk -v package="$3==" -v which="$2" '/^[a-z0-9]/ { is_it = index($0, package) == 1 } is_it == (which == "only")' "$1"
}

is_current() {
    [ ".venv/.$1" -nt "requirements-$1.lock" ]
}

say() {
    echo "$1" >&2
}

fail() {
    say "$1"
    exit 1
}

main
