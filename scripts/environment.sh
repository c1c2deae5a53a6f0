# Sourced by the other scripts: makes .venv hold exactly what a lock file says, and moves to the project's root.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    # PYTHON names another. The distribution's own comes first: it is built with optimisations, and a service is a tenth
    # faster with it than with what pyenv builds by default. 3.11 first: it is the version that the locks are checked with.
    local candidate candidates=(/usr/bin/python3.{11,12,13} python3.{11,12,13} python3)
    [[ -n ${PYTHON:-} ]] && candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        # Asked to run and not merely looked up: a pyenv shim is there also where its version is not, and Debian's cannot
        # make virtual environments before its own package for that is installed.
        if "$candidate" -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11, 3.12 or 3.13 with its module ensurepip is needed, and none was found${PYTHON:+ as PYTHON=$PYTHON}." \
        "On Debian and Ubuntu: apt-get install python3-venv" >&2
    return 1
}

lock_of() {
    [[ $1 == test ]] && echo requirements-test.lock || echo requirements.lock
}

state_of() {
    echo "$(cat "$(lock_of "$1")" pyproject.toml scripts/uv.lock | sha256sum) $PWD"
}

is_installed() {
    [[ -f .venv/installed-$1 && $(<".venv/installed-$1") == "$(state_of "$1")" ]]
}

# Of the kernels alone: most changes of the program leave the machine code of a former start valid.
kernels() {
    grep -rlZ --include='*.py' '@compiled(' graphdb | sort -z | xargs -0 cat | sha256sum
}

# What `git pull` or an edit has changed is compiled here, or the first searches would wait for it. A service waits for
# what most searches need; what few need, half a minute more, is compiled beside it.
ensure_compiled() { # service|test
    local wanted
    wanted=$(kernels)
    [[ -f .venv/compiled && $(<.venv/compiled) == "$wanted" ]] && return
    echo "Compiling what searches run (a minute the first time) ..." >&2
    if [[ $1 == service ]]; then
        compile --usual
        (renice -n 19 "$BASHPID"; compile && echo "$wanted" >.venv/compiled) >/dev/null 2>&1 &
    else
        compile
        echo "$wanted" >.venv/compiled
    fi
}

compile() {
    env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m serve.deployments.precompile "$@"
}

# ensure_environment service: what the service needs. ensure_environment test: that, and what the tests, the notebooks
# and the benchmarks need.
ensure_environment() {
    local wanted=$1
    is_installed test || { [[ $wanted == service ]] && is_installed service; } || install_environment "$wanted"
    ensure_compiled "$wanted"
}

install_environment() {
    local wanted=$1 python
    [[ -f .venv/installed-test ]] && wanted=test # who has the larger one keeps it
    python=$(find_python)
    echo "Preparing the Python environment in .venv (a minute the first time) ..." >&2
    if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
        "$python" -m venv --clear .venv
    fi
    # uv downloads side by side; it stands beside the packages, so that it can go without them.
    if ! [[ -x .venv/uv/bin/uv ]] || ! cmp -s scripts/uv.lock .venv/uv/lock; then
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --upgrade \
            --target .venv/uv -r scripts/uv.lock
        cp scripts/uv.lock .venv/uv/lock
    fi
    # The stamps are removed first and written last, so that an interrupted installation is done again.
    rm -f .venv/installed-* .venv/compiled
    .venv/uv/bin/uv --quiet pip sync --python .venv/bin/python --require-hashes "$(lock_of "$wanted")"
    .venv/uv/bin/uv --quiet pip install --python .venv/bin/python --no-deps -e .
    # Now, or the dozen processes of the first start would each compile what they import, which takes a minute.
    .venv/bin/python -m compileall -q -j 0 graphdb actors serve >/dev/null
    state_of "$wanted" > ".venv/installed-$wanted"
}
