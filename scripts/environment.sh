# Sourced by the other scripts: makes .venv hold exactly what requirements.lock says, and moves to the project's root.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    # 3.11 first: it is the version that the lock is checked with.
    local candidate
    for candidate in python3.11 python3.12 python3.13 python3; do
        # Asked to run and not merely looked up: a pyenv shim is there also where its version is not.
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11, 3.12 or 3.13 is needed, and none was found on the PATH." >&2
    return 1
}

ensure_environment() {
    # The stamp is written last, so that an interrupted installation is done again.
    local stamp=.venv/installed wanted python
    wanted="$(cat requirements.lock pyproject.toml | sha256sum) $PWD"
    [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && return
    python=$(find_python)
    echo "Preparing the Python environment in .venv (a few minutes the first time) ..." >&2
    if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
        if ! "$python" -m venv --clear .venv; then
            echo "$python cannot make virtual environments; on Debian and Ubuntu: apt-get install ${python}-venv" >&2
            return 1
        fi
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
    # Ray starts a handful of Python processes; were each to compile what it imports, a start would take a minute.
    .venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null || true # some packages ship files for other Pythons
    echo "$wanted" > "$stamp"
}
